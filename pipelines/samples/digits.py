"""scikit-learn's scanned digits as images with an import file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_digits

from pipelines.samples import USES, write_csv, write_image

IMPORT_FILE = "digits.csv"
_SIDE = 8  # of a scan, in pixels
_CANVAS = 64  # side of an image of scattered digits

Pixels: TypeAlias = npt.NDArray[np.float64]  # [height, width], 0..16
# The fields of an image's rows after the path.
_Fields: TypeAlias = Sequence[tuple[str, ...]]
# scikit-learn's digits, the numbers of some of them, and a random generator → an image of these.
_Draw: TypeAlias = Callable[
    [Any, npt.NDArray[np.int64], np.random.Generator], tuple[_Fields, Pixels]
]


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
    return _write_drawn(folder, 1800 if images is None else images, _group)


def write_scattered_digits(folder: str, images: int | None = None) -> str:
    """Write images of up to eight scattered digits; return the import file.

    Each digit is a row with its label and the box around its ink,
    ``TRAIN,images/0000.png,6,0.515625,0.609375,,,0.703125,0.859375,,``; an image without digits is
    ``TRAIN,images/0023.png,,,,,,,,,``.
    """
    return _write_drawn(folder, 1200 if images is None else images, _scene)


def _group(
    digits: Any, own: npt.NDArray[np.int64], random: np.random.Generator
) -> tuple[_Fields, Pixels]:
    scans = random.choice(own, random.integers(1, 3, endpoint=True))
    pixels = np.zeros((_SIDE, 3 * _SIDE))
    pixels[:, : len(scans) * _SIDE] = np.hstack(digits.images[scans])
    return [tuple(sorted({str(label) for label in digits.target[scans]}))], pixels


def _scene(
    digits: Any, own: npt.NDArray[np.int64], random: np.random.Generator
) -> tuple[_Fields, Pixels]:
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
    return rows or [("",) * 9], pixels


def _write_drawn(folder: str, images: int, draw: _Draw) -> str:
    """Write images that are drawn of scans, each scan only in images of one split."""
    digits = load_digits()
    # In their own order, every tenth scan shows the same digit.
    shuffled = np.random.default_rng(0).permutation(len(digits.images))
    drawn = (
        (
            USES[number % 10],
            *draw(digits, shuffled[number % 10 :: 10], np.random.default_rng(number)),
        )
        for number in range(images)
    )
    return _write(folder, drawn)


def _write(folder: str, pictures: Iterable[tuple[str, _Fields, Pixels]]) -> str:
    rows = []
    for number, (use, fields_of_rows, pixels) in enumerate(pictures):
        name = f"images/{number:04d}.png"
        rows += [(use, name, *fields) for fields in fields_of_rows]
        write_scan(os.path.join(folder, name), pixels)
    return write_csv(os.path.join(folder, IMPORT_FILE), rows)


def write_scan(path: str, pixels: Pixels) -> None:
    """Write pixels as a PNG file, unless it exists."""
    write_image(path, Image.fromarray((pixels * (255 / 16)).round().astype("uint8")), "PNG")
