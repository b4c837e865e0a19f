"""Pictures of shapes for training: each shape differs in place, size, turn, colour and texture.

Shapes lie on a ground of soft colours with meaningless strokes, under noise. A class is a form,
never a colour or a place, so a model that weighs single pixels cannot learn it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

Pixels = npt.NDArray[np.float32]
Random = np.random.Generator

_FINE = 4  # masks are drawn this many times larger, for smooth edges
_STROKES = 5
_NOISE = 14.0  # standard deviation, in levels of 255
_LEAST_VISIBLE = 0.5  # least share of a shape that others leave visible
_TRIES = 20


class Box(NamedTuple):
    """A shape's class and corners in pixels; right and bottom are exclusive."""

    label: str
    left: int
    top: int
    right: int
    bottom: int


def _regular(corners: int, *radii: float) -> npt.NDArray[np.float64]:
    """Return corners [n, 2] at equal angles; their distances from the centre repeat ``radii``."""
    angles = np.arange(corners) * 2 * np.pi / corners
    points = np.stack([np.sin(angles), -np.cos(angles)], 1)
    scaled: npt.NDArray[np.float64] = points * np.resize(radii, corners)[:, None]
    return scaled


_DISC = _regular(40, 1)
_SQUARE = _regular(4, 1)
_CROSS = [(1, 3), (1, 1), (3, 1), (3, -1), (1, -1), (1, -3)]
_ARROW = [(0, -1), (0.8, 0), (0.3, 0), (0.3, 1), (-0.3, 1), (-0.3, 0), (-0.8, 0)]
_BOW = [(-1, -0.7), (1, 0.7), (1, -0.7), (-1, 0.7)]

#: By class: the outline, and the hole if any; [n, 2], at most 1 from the centre.
OUTLINES: Mapping[str, Sequence[npt.NDArray[np.float64]]] = {
    "arrow": [np.array(_ARROW)],
    "bow": [np.array(_BOW) * 0.8],
    "crescent": [_DISC, _DISC * 0.8 + (0.45, 0)],
    "cross": [np.array(_CROSS + [(-x, -y) for x, y in _CROSS]) / 3.2],
    "disc": [_DISC],
    "frame": [_SQUARE, _SQUARE * 0.6],
    "ring": [_DISC, _DISC * 0.6],
    "square": [_SQUARE],
    "star": [_regular(10, 1, 0.45)],
    "triangle": [_regular(3, 1)],
}


def one_shape(label: str, side: int, random: Random) -> Image.Image:
    """Return a square picture with one shape, completely inside."""
    pixels = _ground(side, random)
    radius = side * random.uniform(0.25, 0.45)
    _lay(pixels, _mask(label, side, radius, random), random)
    return _noisy(pixels, random)


def several_shapes(
    labels: Sequence[str], side: int, most: int, random: Random
) -> tuple[Image.Image, list[Box]]:
    """Return a square picture with one to ``most`` shapes that partly cover each other, and boxes.

    A box contains the whole shape, even if another shape covers a part.
    """
    pixels, boxes = _ground(side, random), []
    masks: list[Pixels] = []
    for label in random.choice(labels, random.integers(1, most, endpoint=True)):
        for _ in range(_TRIES):
            # Sizes with a density of 1 / radius: small shapes are more frequent than large ones.
            radius = side * 0.06 * (0.25 / 0.06) ** random.random()
            mask = _mask(str(label), side, radius, random)
            left = [_visible(masks, mask, number) for number in range(len(masks))]
            if all(share >= _LEAST_VISIBLE for share in left):
                _lay(pixels, mask, random)
                masks.append(mask)
                down, across = np.nonzero(mask > 0.5)
                ends = across.max() + 1, down.max() + 1
                boxes.append(Box(str(label), *map(int, (across.min(), down.min(), *ends))))
                break
    return _noisy(pixels, random), boxes


def _visible(masks: Sequence[Pixels], new: Pixels, number: int) -> float:
    """Return the visible share of one shape under all later shapes and ``new``."""
    left = np.prod([1 - mask for mask in [*masks[number + 1 :], new]], axis=0)
    return float((masks[number] * left).sum() / masks[number].sum())


def _mask(label: str, side: int, radius: float, random: Random) -> Pixels:
    """Return the coverage of each pixel by a turned and stretched shape, [side, side], 0..1."""
    angle = random.uniform(0, 2 * np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    stretch = np.diag([random.uniform(0.75, 1), 1])
    centre = random.uniform(radius, side - radius, 2)
    mask = Image.new("L", (side * _FINE, side * _FINE))
    draw = ImageDraw.Draw(mask)
    for outline, fill in zip(OUTLINES[label], (255, 0), strict=False):
        corners = (outline @ stretch @ turn * radius + centre) * _FINE
        draw.polygon([(float(x), float(y)) for x, y in corners], fill=fill)
    return np.asarray(mask.resize((side, side), Image.Resampling.BOX), np.float32) / 255


def _ground(side: int, random: Random) -> Pixels:
    """Return soft colours with strokes, float32 [side, side, 3], in levels of 255."""
    coarse = Image.fromarray(random.integers(80, 176, (4, 4, 3), np.uint8))
    image = coarse.resize((side, side), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    for _ in range(_STROKES):
        start, length = random.uniform(0, side, 2), random.normal(0, side / 4, 2)
        red, green, blue = (int(level) for level in random.integers(0, 256, 3))
        ends = (*map(float, start), *map(float, start + length))
        draw.line(ends, fill=(red, green, blue), width=1 + int(random.integers(side // 16)))
    return np.asarray(image, np.float32).copy()


def _lay(pixels: Pixels, mask: Pixels, random: Random) -> None:
    """Paint a shape with soft stripes."""
    side = len(pixels)
    across, down = random.normal(0, 2 * np.pi * 3 / side, 2)
    waves = np.sin(np.arange(side) * across + np.arange(side)[:, None] * down)[..., None]
    # Each channel is darker or lighter than the ground, which has medium levels.
    middle = 128 + random.choice((-1, 1), 3) * random.uniform(50, 127, 3)
    colour = middle + waves * random.uniform(-60, 60, 3)
    pixels += mask[..., None] * (colour.astype(np.float32) - pixels)


def _noisy(pixels: Pixels, random: Random) -> Image.Image:
    noise = random.normal(0, _NOISE, pixels.shape)
    return Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))
