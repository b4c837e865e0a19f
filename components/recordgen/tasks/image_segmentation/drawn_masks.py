"""Outlines and runs of objects → the mask of their image.

A pixel belongs to a polygon if its centre does; a polygon that crosses itself has holes. Large
objects are painted first, so that small ones before them stay visible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.core.image_settings import Limits
from recordgen.core.records.class_masks import Mask, seen_through
from recordgen.core.records.run_lengths import pixels_of, runs_of
from recordgen.core.rows.details import Details
from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

_WHOLE = (0.0, 0.0, 1.0, 1.0)

# Crossings of edges and rows that are computed at once.
_AT_ONCE = 1 << 20

# Shares of what an image may take that its pixels and each byte of its annotation allow: a small
# document may describe many images. An object has some bytes besides those of each coordinate.
_SHARE_PER_PIXEL, _SHARE_PER_BYTE, _OBJECT_BYTES, _COORDINATE_BYTES = 5e-10, 1e-6, 60, 4

# Processor time on a current machine: of a polygon, of a row that one of its edges crosses, of a
# filled pixel, and of one that runs are unpacked to.
_POLYGON, _CROSSING, _FILLED, _UNPACKED = 1e-4, 3e-7, 1e-10, 4e-9


def paint(
    objects: Sequence[tuple[int, Details]], background: int, size: tuple[int, int], limit: Limits
) -> Mask:
    """Return the mask of an image: the class of each object in its outline, else the background.

    Raises: PayloadError: runs do not fill their picture, an outline has a point that is none, or
        drawing would take too long.
    """
    drawn = [(number, details, _columns_of(details)) for number, details in objects]
    seconds = sum(_seconds(details, columns, size) for _, details, columns in drawn)
    size_bytes = sum(map(_bytes_of, (details for _, details, _ in drawn)))
    share = math.prod(size) * _SHARE_PER_PIXEL + size_bytes * _SHARE_PER_BYTE
    limit.check_seconds(seconds, "drawing its mask", share)
    mask = np.full(size, background, np.uint8)
    flat = mask.reshape(-1)
    for number, details, columns in sorted(drawn, key=lambda each: -_area(*each[1:])):
        if columns is not None:
            columns.paint(mask, number)
            continue
        for points in details.polygons.arrays():
            for start, end in _spans(points, size):
                flat[start:end] = number
    return mask


class _Columns(NamedTuple):
    """The columns of a mask that have pixels of its object."""

    runs: Sequence[int]  # of these columns
    left: int
    width: int
    whole: tuple[int, int]  # height and width of the mask

    @property
    def share(self) -> float:
        """The share of the mask that belongs to the object."""
        return sum(self.runs[1::2]) / math.prod(self.whole)

    def paint(self, mask: Mask, number: int) -> None:
        """Set the pixels of the object in a mask of any size."""
        pixels = pixels_of(self.runs, self.whole[0], self.width)
        if mask.shape == self.whole:
            mask[:, self.left : self.left + self.width][pixels == 1] = number
        else:
            whole = np.zeros(self.whole, np.uint8)
            whole[:, self.left : self.left + self.width] = pixels
            mask[seen_through(whole, _WHOLE, mask.shape) == 1] = number


def _columns_of(details: Details) -> _Columns | None:
    """Return the mask of an object; None if it has polygons. Raises: PayloadError."""
    if details.mask is None or details.polygons:
        return None
    counts, height, width = details.mask
    runs = runs_of(counts)
    if sum(runs) != height * width:
        raise PayloadError(
            RejectCode.BAD_ANNOTATION,
            f"the mask of an object: its runs have {sum(runs):,} pixels, but it {height}×{width}",
        )
    before, behind = runs[0] // height, runs[-1] // height if len(runs) % 2 else 0
    if len(runs) == 1:
        before, behind = 0, width - 1  # empty
    runs[0] -= before * height
    runs[-1] -= behind * height
    return _Columns(runs, before, width - before - behind, (height, width))


def _seconds(details: Details, columns: _Columns | None, size: tuple[int, int]) -> float:
    """Return about how much processor time it takes to draw an object. Raises: PayloadError."""
    height, width = size
    if columns is not None:
        others = 0 if columns.whole == size else math.prod(size) + math.prod(columns.whole)
        return (columns.whole[0] * columns.width + others) * _UNPACKED
    seconds = 0.0
    for points in details.polygons.arrays():
        if not np.isfinite(points).all():
            message = "an outline has a coordinate that is no finite number"
            raise PayloadError(RejectCode.BAD_ANNOTATION, message)
        inside = np.clip(points, 0, 1)
        across, down = inside.max(0) - inside.min(0)
        y = inside[:, 1]
        crossings = float(np.abs(y - np.roll(y, -1)).sum()) * height + len(y)
        area = float(across * down) * height * width
        seconds += _POLYGON + crossings * _CROSSING + area * _FILLED
    return seconds


def _bytes_of(details: Details) -> int:
    """Return about how many bytes a document needs for an outline or for runs."""
    if details.mask is not None:
        return _OBJECT_BYTES + len(details.mask.counts)
    numbers = sum(points.size for points in details.polygons.arrays())
    return _OBJECT_BYTES + _COORDINATE_BYTES * numbers


def _area(details: Details, columns: _Columns | None) -> float:
    if columns is not None:
        return columns.share
    return sum(abs(_twice_area(points)) for points in details.polygons.arrays()) / 2


def _twice_area(points: npt.NDArray[np.float64]) -> float:
    x, y = points.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _spans(points: npt.NDArray[np.float64], size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield where the pixels of a polygon begin and end in each row, counted along the rows."""
    height, width = size
    x0, y0 = points[:, 0] * width, points[:, 1] * height
    x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
    # An edge crosses the rows whose centres are between its ends, or at its upper end.
    firsts, ends = (
        np.clip(np.ceil(each - 0.5), 0, height).astype(np.int64)
        for each in (np.minimum(y0, y1), np.maximum(y0, y1))
    )
    step = max(1, height * _AT_ONCE // max(1, int((ends - firsts).sum())))
    for start in range(int(firsts.min()), int(ends.max()), step):
        first, end = (np.clip(each, start, start + step) for each in (firsts, ends))
        counts = end - first
        edges = np.repeat(np.arange(len(counts)), counts)
        rows = np.arange(len(edges)) + (first - np.cumsum(counts) + counts)[edges]
        slope = (x1 - x0)[edges] / (y1 - y0)[edges]
        x = x0[edges] + slope * (rows + 0.5 - y0[edges])
        places = np.sort(rows * width + np.clip(np.ceil(x - 0.5), 0, width).astype(np.int64))
        # Each row is crossed an even number of times: inside and outside change places.
        yield from places.reshape(-1, 2).tolist()
