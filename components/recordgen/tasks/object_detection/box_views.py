"""Compares a row's boxes with a record whose image was cropped or padded.

    row     cat 0.1 0.2 0.5 0.6                       an image of 160×80, stored in a square
    record  cat 0.1 0.35 0.5 0.55                     fit: all of it, above and below it bars
    record  cat 0.0 0.2 0.5 0.6                       center_crop: its middle

No record holds the original size of the image. But the centre and one of the two axes do not
change. Along the other axis all boxes are scaled by the same factor: at most 1 with bars, at least
1 in a crop, which clips boxes and drops boxes outside of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_CENTER = 0.5

# Coordinates in records are float32; the factors are not.
_ROUNDED = 1e-5


class Extent(NamedTuple):
    """A box along the scaled axis (start, end) and along the other axis (others)."""

    label: str
    start: float
    end: float
    others: tuple[float, float]


def may_be_stored(
    boxes: Sequence[Extent], stored: Sequence[Extent], *, pixels: int, is_crop: bool
) -> bool:
    """Return whether one factor turns each box into a stored one, or clips it away.

    Args:
        boxes: boxes of the row, in shares of the upright image.
        stored: boxes of the record.
        pixels: the stored image's pixels along the axis; its centre may be off by half a pixel.
        is_crop: whether the image was cropped; else it was padded with bars.
    """
    tolerance = 1 / pixels + _ROUNDED
    return any(
        all(_is_there(box, stored, factor, tolerance, is_crop=is_crop) for box in boxes)
        for factor in {round(factor, 6) for factor in _factors(boxes, stored, is_crop=is_crop)}
    )


def _factors(
    boxes: Sequence[Extent], stored: Sequence[Extent], *, is_crop: bool
) -> Iterator[float]:
    """Yield 1, and each factor that gives a box the width or an edge of a stored one.

    A centre that is half a pixel off changes no width. For a tiny box, and for a box that is cut
    off, an edge is more precise.
    """
    yield 1.0
    for box in boxes:
        alike = [other for other in stored if _are_alike(box, other)]
        lengths = [(box.end - box.start, other.end - other.start) for other in alike]
        lengths += [(box.start - _CENTER, other.start - _CENTER) for other in alike]
        lengths += [(box.end - _CENTER, other.end - _CENTER) for other in alike]
        if is_crop:
            edges = (box.start - _CENTER, box.end - _CENTER)
            lengths += [(edge, math.copysign(_CENTER, edge)) for edge in edges]
        for length, there in lengths:
            if abs(length) > _ROUNDED:
                factor = there / length
                if factor >= 1 if is_crop else 0 < factor <= 1:
                    yield factor


def _is_there(
    box: Extent, stored: Sequence[Extent], factor: float, tolerance: float, *, is_crop: bool
) -> bool:
    start, end = (_CENTER + (edge - _CENTER) * factor for edge in (box.start, box.end))
    if is_crop:
        start, end = (min(1.0, max(0.0, edge)) for edge in (start, end))
    width = box.others[1] - box.others[0]
    if end - start <= (tolerance if is_crop else _ROUNDED) or width <= _ROUNDED:
        return True  # nothing of it is left
    return any(
        _are_alike(box, other)
        and abs(start - other.start) <= tolerance
        and abs(end - other.end) <= tolerance
        for other in stored
    )


def _are_alike(box: Extent, other: Extent) -> bool:
    """Return whether two boxes have the same label and agree along the axis not scaled."""
    return box.label == other.label and all(
        abs(one - there) <= _ROUNDED for one, there in zip(box.others, other.others, strict=True)
    )
