"""Drawn circles and squares on grounds of other colours, with masks."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
from PIL import Image

from pipelines.samples import USES, write_csv, write_image

_SIDE = 48
_CIRCLE, _SQUARE, _EDGE = 1, 2, 255

Mask = npt.NDArray[np.uint8]


def write_shapes(folder: str, images: int | None = None) -> str:
    """Write images, masks and rows such as ``TRAIN,images/0000.png,masks/0000.png``.

    Pixels of a mask are 0 for the ground, 1 in circles, 2 in squares, and 255 along their edges.

    Returns:
        The import file.
    """
    rows = []
    for number in range(400 if images is None else images):
        image, mask = f"images/{number:04d}.png", f"masks/{number:04d}.png"
        pixels, classes = _drawn(np.random.default_rng(number))
        write_image(os.path.join(folder, image), Image.fromarray(pixels), "PNG")
        write_image(os.path.join(folder, mask), Image.fromarray(classes), "PNG")
        rows.append((USES[number % 10], image, mask))
    return write_csv(os.path.join(folder, "shapes.csv"), rows)


def _drawn(random: np.random.Generator) -> tuple[npt.NDArray[np.uint8], Mask]:
    """Return the pixels of an image with a circle and a square, one before the other."""
    mask = np.zeros((_SIDE, _SIDE), np.uint8)
    pixels = np.tile(random.integers(0, 100, 3), (_SIDE, _SIDE, 1))
    down, across = np.mgrid[:_SIDE, :_SIDE]
    for label in random.permutation((_CIRCLE, _SQUARE)):
        radius, *centre = random.integers((7, 10, 10), (13, _SIDE - 10, _SIDE - 10))
        away = np.abs(down - centre[0]), np.abs(across - centre[1])
        distance = np.hypot(*away) if label == _CIRCLE else np.maximum(*away)
        mask[distance < radius + 1] = _EDGE
        mask[distance < radius] = label
        pixels[distance < radius] = random.integers(130, 230, 3)
    noise = random.integers(-20, 20, pixels.shape)
    return (pixels + noise).clip(0, 255).astype(np.uint8), mask
