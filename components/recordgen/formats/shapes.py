"""Shapes that are no upright rectangles → the boxes around them, and their outlines.

outlined([(4, 5), (8, 5), (6, 10)])       →  (4, 5, 8, 10), and the polygon
ellipse(6, 7, 2, 1, 90)                   →  (5, 5, 7, 9), and a polygon of 32 points
rectangle((0, 0, 4, 2), 90, (0, 0))       →  (-2, 0, 0, 4), and the polygon
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from recordgen.core.records.run_lengths import text_of
from recordgen.core.rows.details import NOTHING, Details, Mask
from recordgen.core.rows.picture import Corners
from recordgen.core.rows.polygons import Polygons

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    #: Numbers of pixels, counted down each column from left to right.
    Pixels: TypeAlias = npt.NDArray[np.int64]

Point: TypeAlias = tuple[float, float]

#: A box, and the outline of what is in it.
Region: TypeAlias = tuple[Corners, Details]

# They cover 99.4 % of the ellipse.
_ELLIPSE_POINTS = 32

#: Name in ``rows.adjusted``: rotated boxes; the upright ones around them are stored.
BOXES_ROTATED = "boxes_rotated"

#: Name in ``rows.adjusted``: points and lines, which have no box.
SHAPES_DROPPED = "shapes_dropped"


def around(points: Iterable[Sequence[float]]) -> Corners:
    """Return the box around points, each an x and a y. Raises: ValueError: there are none."""
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def outlined(points: Iterable[Sequence[float]]) -> Region:
    """Return the box around points, each an x and a y, and their outline if there are 3 or more.

    Raises: ValueError: there are none.
    """
    points = list(points)
    flat = tuple(value for point in points for value in point)
    return around(points), Details(polygons=Polygons.of([flat])) if len(points) >= 3 else NOTHING


def ellipse(x: float, y: float, across: float, down: float, degrees: float = 0.0) -> Region:
    """Return an ellipse with this center and these radii, turned clockwise."""
    angle = math.radians(degrees)
    half_width = math.hypot(across * math.cos(angle), down * math.sin(angle))
    half_height = math.hypot(across * math.sin(angle), down * math.cos(angle))
    box = x - half_width, y - half_height, x + half_width, y + half_height
    turns = [2 * math.pi * at / _ELLIPSE_POINTS for at in range(_ELLIPSE_POINTS)]
    upright = [(x + across * math.cos(turn), y + down * math.sin(turn)) for turn in turns]
    return box, outlined(turned(upright, degrees, (x, y)))[1]


def rectangle(box: Corners, degrees: float, center: Point) -> Region:
    """Return a rectangle that is turned clockwise around a center; an outline only if it is."""
    xmin, ymin, xmax, ymax = box
    corners = (xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax)
    return outlined(turned(corners, degrees, center)) if degrees else (box, NOTHING)


def turned(points: Iterable[Point], degrees: float, center: Point) -> Sequence[Point]:
    """Return points that are turned clockwise, as seen with y downwards, around a center."""
    angle = math.radians(degrees)
    cosine, sine = math.cos(angle), math.sin(angle)
    x0, y0 = center
    return [
        (
            x0 + (x - x0) * cosine - (y - y0) * sine,
            y0 + (x - x0) * sine + (y - y0) * cosine,
        )
        for x, y in points
    ]


def placed(xs: Pixels, ys: Pixels, width: int, height: int) -> Pixels:
    """Return the numbers of the pixels that lie in a picture of this size."""
    is_inside = (xs >= 0) & (xs < width) & (ys >= 0) & (ys < height)
    return (xs * height + ys)[is_inside]


def mask_of(pixels: Sequence[Pixels], width: int, height: int) -> Mask:
    """Return the mask of all these pixels of a picture."""
    import numpy as np

    found = np.unique(np.concatenate(pixels))
    end = width * height
    is_first, is_last = np.diff(found, prepend=-2) > 1, np.diff(found, append=end + 1) > 1
    edges = np.stack([found[is_first], found[is_last] + 1], axis=1).ravel()
    return Mask(text_of(np.diff(edges, prepend=0, append=end).tolist()), height, width)


def shape_notes(dropped: Sequence[str], rotated: int = 0) -> list[tuple[str, str]]:
    """Return the notes about the shapes of one image.

    Args:
        dropped: the kinds of shapes without an area.
        rotated: the number of boxes that were drawn rotated.
    """
    notes = []
    if dropped:
        kinds = ", ".join(sorted(set(dropped)))
        notes.append(
            (
                SHAPES_DROPPED,
                f"{len(dropped)} shapes without an area or a class ({kinds}) were dropped",
            )
        )
    if rotated:
        notes.append(
            (BOXES_ROTATED, f"{rotated} boxes are rotated; the upright boxes around them were kept")
        )
    return notes
