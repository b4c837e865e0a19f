"""Outlines and runs of objects → the mask of their image.

A pixel belongs to a polygon if its centre does; a polygon that crosses itself has holes. Large
objects are painted first, so that small ones before them stay visible.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from recordgen.core.records.class_masks import Mask, seen_through
from recordgen.core.records.run_lengths import pixels_of, runs_of
from recordgen.core.rows.details import Details
from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

_WHOLE = (0.0, 0.0, 1.0, 1.0)

# Crossings of edges and rows that are computed at once.
_AT_ONCE = 1 << 20


def paint(objects: Sequence[tuple[int, Details]], background: int, size: tuple[int, int]) -> Mask:
    """Return the mask of an image: the class of each object in its outline, else the background.

    Raises: PayloadError: runs do not fill their picture.
    """
    mask = np.full(size, background, np.uint8)
    for number, details in sorted(objects, key=lambda each: -_area(each[1])):
        for points in details.polygons.arrays():
            top, inside = _filled(points, size)
            mask[top : top + len(inside)][inside] = number
        if details.mask is not None and not details.polygons:
            mask[_pixels(details, size)] = number
    return mask


def _area(details: Details) -> float:
    if details.mask is not None and not details.polygons:
        runs = runs_of(details.mask.counts)
        return sum(runs[1::2]) / max(1, sum(runs))
    return sum(abs(_twice_area(points)) for points in details.polygons.arrays()) / 2


def _twice_area(points: npt.NDArray[np.float64]) -> float:
    x, y = points.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _pixels(details: Details, size: tuple[int, int]) -> npt.NDArray[np.bool_]:
    assert details.mask is not None  # noqa: S101 -- the caller checks it
    counts, height, width = details.mask
    try:
        pixels = pixels_of(runs_of(counts), height, width)
    except ValueError as exc:
        raise PayloadError(RejectCode.BAD_ANNOTATION, f"the mask of an object: {exc}") from exc
    return seen_through(pixels, _WHOLE, size) == 1


def _filled(
    points: npt.NDArray[np.float64], size: tuple[int, int]
) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return the first row of a polygon, and its pixels in the rows from there on."""
    height, width = size
    x0, y0 = points[:, 0] * width, points[:, 1] * height
    x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
    top, end = (int(row) for row in np.clip((np.floor(y0.min()), np.ceil(y0.max())), 0, height))
    inside = np.zeros((end - top, width), np.bool_)
    step = max(1, _AT_ONCE // len(x0))
    for start in range(top, end, step):
        centers = np.arange(start, min(start + step, end)) + 0.5
        crosses = (y0[:, None] <= centers) != (y1[:, None] <= centers)
        edges, rows = np.nonzero(crosses)
        slope = (x1 - x0)[edges] / (y1 - y0)[edges]
        x = x0[edges] + slope * (centers[rows] - y0[edges])
        first = np.clip(np.ceil(x - 0.5), 0, width).astype(int)
        changes = np.zeros((len(centers), width + 1), np.int32)
        np.add.at(changes, (rows, first), 1)
        # From each edge on to the right, inside and outside change places.
        filled = changes.cumsum(1)[:, :width] % 2 == 1
        inside[start - top : start - top + len(centers)] = filled
    return top, inside
