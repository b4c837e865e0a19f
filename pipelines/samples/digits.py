"""scikit-learn's scanned digits as images with an import file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import cycle

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_digits

from pipelines.samples import Sample, write_csv, write_image
from recordgen.training import TrainingConfig

IMPORT_FILE = "digits.csv"
_SIDE = 8  # of a scan, in pixels
_CANVAS = 64  # side of an image of scattered digits
_NO_BOX = ("",) * 9

Pixels = npt.NDArray[np.float64]  # [height, width], 0..16
# An image: its ML use, the fields of each of its rows after the path, and its pixels.
_Picture = tuple[str, Sequence[tuple[str, ...]], Pixels]


def write_digits(folder: str, images: int | None = None) -> str:
    """Write the scans, and rows such as ``TRAIN,images/0000.png,0``; return the import file.

    Three of ten images name their split.
    """
    digits = load_digits()
    uses = cycle(("TRAIN", "VALIDATION", "TEST", "", "", "", "", "UNASSIGNED", "", ""))
    scans = zip(uses, digits.images[:images], digits.target[:images], strict=False)
    return _write(folder, ((use, [(str(label),)], scan) for use, scan, label in scans))


def write_digit_groups(folder: str, images: int | None = None) -> str:
    """Write images of one to three digits side by side; return the import file.

    An image's labels are its digits, each once: ``TRAIN,images/0003.png,0,6,8``.
    """
    return _write(folder, _groups(1800 if images is None else images))


def write_scattered_digits(folder: str, images: int | None = None) -> str:
    """Write images of up to eight scattered digits; return the import file.

    Each digit is a row with its label and the box around its ink,
    ``TRAIN,images/0000.png,6,0.515625,0.609375,,,0.703125,0.859375,,``; an image without digits is
    ``TRAIN,images/0023.png,,,,,,,,,``.
    """
    return _write(folder, _scenes(1200 if images is None else images))


def _groups(images: int) -> Iterator[_Picture]:
    digits = load_digits()
    for use, own, random in _scans_of_images(images):
        scans = random.choice(own, random.integers(1, 3, endpoint=True))
        pixels = np.zeros((_SIDE, 3 * _SIDE))
        pixels[:, : len(scans) * _SIDE] = np.hstack(digits.images[scans])
        yield use, [tuple(sorted({str(label) for label in digits.target[scans]}))], pixels


def _scenes(images: int) -> Iterator[_Picture]:
    digits = load_digits()
    for use, own, random in _scans_of_images(images):
        pixels = np.zeros((_CANVAS, _CANVAS))
        rows = []
        for scan in random.choice(own, random.integers(0, 8, endpoint=True)):
            scale = int(random.choice((2, 3)))
            top, left = random.integers(0, _CANVAS - _SIDE * scale, 2, endpoint=True)
            place = pixels[top : top + _SIDE * scale, left : left + _SIDE * scale]
            if place.any():
                continue  # occupied by another digit
            place[:] = np.kron(digits.images[scan], np.ones((scale, scale)))
            down, across = np.nonzero(place)  # the ink: scans have empty margins
            x, y = left + across, top + down
            corners = (x.min(), y.min(), x.max() + 1, y.max() + 1)
            xmin, ymin, xmax, ymax = (f"{corner / _CANVAS:g}" for corner in corners)
            rows.append((str(digits.target[scan]), xmin, ymin, "", "", xmax, ymax, "", ""))
        yield use, rows or [_NO_BOX], pixels


def _scans_of_images(
    images: int,
) -> Iterator[tuple[str, npt.NDArray[np.int64], np.random.Generator]]:
    """Yield each image's ML use, the scans that it may show, and its random generator."""
    # In their own order, every tenth scan shows the same digit.
    shuffled = np.random.default_rng(0).permutation(len(load_digits().images))
    for number in range(images):
        # Each scan is only in images of one split.
        own = shuffled[number % 10 :: 10]
        use = ("TRAIN", "VALIDATION", "TEST")[max(0, number % 10 - 7)]
        yield use, own, np.random.default_rng(number)


def _write(folder: str, pictures: Iterator[_Picture]) -> str:
    rows = []
    for number, (use, fields_of_rows, pixels) in enumerate(pictures):
        name = f"images/{number:04d}.png"
        rows += [(use, name, *fields) for fields in fields_of_rows]
        write_scan(os.path.join(folder, name), pixels)
    return write_csv(os.path.join(folder, IMPORT_FILE), rows)


def write_scan(path: str, pixels: Pixels) -> None:
    """Write pixels as a PNG file, unless it exists."""
    write_image(path, Image.fromarray((pixels * (255 / 16)).round().astype("uint8")), "PNG")


DIGITS = Sample(
    name="digits",
    data="scanned digits",
    write=write_digits,
    # Digits of 8 by 8 pixels are enlarged, because the small CNN halves images.
    training=TrainingConfig(image_size=(16, 16), batch_size=32, epochs=12, learning_rate=3e-3),
    options={"split": "100"},  # eval and test are chosen
    min_score=0.95,
)

DIGIT_GROUPS = Sample(
    name="digit-groups",
    data="scanned digits, one to three per image",
    write=write_digit_groups,
    training=TrainingConfig(image_size=(16, 48), batch_size=32, epochs=10, learning_rate=3e-3),
    min_score=0.95,
)

SCATTERED_DIGITS = Sample(
    name="scattered-digits",
    data="scanned digits, none to eight per image",
    write=write_scattered_digits,
    training=TrainingConfig(
        image_size=(64, 64), batch_size=8, epochs=8, learning_rate=3e-3, top_k=10
    ),
    min_score=0.9,
)
