"""scikit-learn's scanned digits as images with an import file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_digits

from pipelines.samples import Sample, write_csv, write_image
from recordgen.training import TrainingConfig

IMPORT_FILE = "digits.csv"

_SIDE = 8  # of a scan, in pixels
_SCALE = 255 / 16  # the scans have 17 levels of gray
# Three of ten images name their split; Recordgen assigns the splits of the others.
_ML_USE = ("TRAIN", "VALIDATION", "TEST", "", "", "", "", "UNASSIGNED", "", "")

_GROUPS = 1800
_MOST_DIGITS = 3
_ML_USE_OF_GROUPS = ("TRAIN",) * 8 + ("VALIDATION", "TEST")

_SCENES = 1200
_CANVAS = 64
_MOST_TRIES = 8
_MAGNIFIED = (2, 3)  # a scan becomes 16 or 24 pixels high
_NO_BOX = ("",) * 9


class Picture(NamedTuple):
    """One image and its rows in the import file.

    Attributes:
        ml_use: its split, as AutoML names it.
        annotations: the fields of each row after the path.
        pixels: float64 [height, width], 0..16.
    """

    ml_use: str
    annotations: Sequence[tuple[str, ...]]
    pixels: npt.NDArray[np.float64]


def write_digits(folder: str, images: int | None = None) -> str:
    """Write the digits as PNG files, and ``digits.csv``, which names them; return its path.

    ``TRAIN,images/0000.png,0`` is the import file's first line.
    """
    digits = load_digits()
    scans = zip(cycle(_ML_USE), digits.images[:images], digits.target[:images], strict=False)
    return _write(folder, (Picture(use, [(str(label),)], scan) for use, scan, label in scans))


def write_digit_groups(folder: str, images: int | None = None) -> str:
    """Write images of one to three digits side by side, and ``digits.csv``; return its path.

    An image's labels are its digits, each once: ``TRAIN,images/0003.png,0,6,8``.
    """
    return _write(folder, _groups(_GROUPS if images is None else images))


def write_scattered_digits(folder: str, images: int | None = None) -> str:
    """Write images of up to eight scattered digits, and ``digits.csv``; return its path.

    Each digit is a row with its label and the box around its ink,
    ``TRAIN,images/0000.png,6,0.515625,0.609375,,,0.703125,0.859375,,``; an image without digits is
    ``TRAIN,images/0023.png,,,,,,,,,``.
    """
    return _write(folder, _scenes(_SCENES if images is None else images))


DIGITS = Sample(
    name="digits",
    data="scanned digits",
    write=write_digits,
    # Digits of 8 by 8 pixels are enlarged, because the small CNN halves images.
    training=TrainingConfig(image_size=(16, 16), batch_size=32, epochs=12, learning_rate=3e-3),
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


def _groups(images: int) -> Iterator[Picture]:
    digits = load_digits()
    for ml_use, own, random in _scans_of_images(images):
        scans = random.choice(own, random.integers(1, _MOST_DIGITS, endpoint=True))
        pixels = np.zeros((_SIDE, _MOST_DIGITS * _SIDE))
        pixels[:, : len(scans) * _SIDE] = np.hstack(digits.images[scans])
        labels = sorted({str(label) for label in digits.target[scans]})
        yield Picture(ml_use, [tuple(labels)], pixels)


def _scenes(images: int) -> Iterator[Picture]:
    digits = load_digits()
    for ml_use, own, random in _scans_of_images(images):
        pixels = np.zeros((_CANVAS, _CANVAS))
        rows = []
        for scan in random.choice(own, random.integers(0, _MOST_TRIES, endpoint=True)):
            scale = int(random.choice(_MAGNIFIED))
            top, left = random.integers(0, _CANVAS - _SIDE * scale, 2, endpoint=True)
            place = pixels[top : top + _SIDE * scale, left : left + _SIDE * scale]
            if place.any():
                continue  # occupied by another digit
            place[:] = np.kron(digits.images[scan], np.ones((scale, scale)))
            down, across = np.nonzero(place)  # the ink: scans have empty margins
            corners = (
                *(left + across.min(), top + down.min()),
                *(left + across.max() + 1, top + down.max() + 1),
            )
            xmin, ymin, xmax, ymax = (f"{corner / _CANVAS:g}" for corner in corners)
            rows.append((str(digits.target[scan]), xmin, ymin, "", "", xmax, ymax, "", ""))
        yield Picture(ml_use, rows or [_NO_BOX], pixels)


def _scans_of_images(
    images: int,
) -> Iterator[tuple[str, npt.NDArray[np.int64], np.random.Generator]]:
    """Yield each image's ML use, the scans that it may show, and its random generator."""
    # In their own order, every tenth scan shows the same digit.
    shuffled = np.random.default_rng(0).permutation(len(load_digits().images))
    parts = len(_ML_USE_OF_GROUPS)
    for number in range(images):
        # Each scan is only in images of one split.
        own = shuffled[number % parts :: parts]
        yield _ML_USE_OF_GROUPS[number % parts], own, np.random.default_rng(number)


def _write(folder: str, pictures: Iterable[Picture]) -> str:
    """Write pictures as PNG files, and the import file."""
    rows = []
    for number, picture in enumerate(pictures):
        name = f"images/{number:04d}.png"
        rows += [(picture.ml_use, name, *fields) for fields in picture.annotations]
        write_scan(os.path.join(folder, name), picture.pixels)
    return write_csv(os.path.join(folder, IMPORT_FILE), rows)


def write_scan(path: str, pixels: npt.NDArray[np.float64]) -> None:
    """Write pixels (float64 [height, width], 0..16) as a PNG file, unless it exists."""
    write_image(path, Image.fromarray((pixels * _SCALE).round().astype("uint8")), "PNG")
