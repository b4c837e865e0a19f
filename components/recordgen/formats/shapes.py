"""The box around a shape that is no upright rectangle.

around([(4, 5), (8, 5), (6, 10)])                      →  (4, 5, 8, 10)
around_ellipse(6, 7, 2, 1, 90)                         →  (5, 5, 7, 9)
around(turned(corners_of((0, 0, 4, 2)), 90, (0, 0)))   →  (-2, 0, 0, 4)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from recordgen.core.rows.details import NOTHING, Details
from recordgen.core.rows.picture import Corners

Point: TypeAlias = tuple[float, float]

#: Name in ``rows.adjusted``: rotated boxes; the upright ones around them are stored.
BOXES_ROTATED = "boxes_rotated"

#: Name in ``rows.adjusted``: points and lines, which have no box; see :func:`dropped`.
SHAPES_DROPPED = "shapes_dropped"


def around(points: Iterable[Sequence[float]]) -> Corners:
    """Return the box around points, each an x and a y. Raises: ValueError: there are none."""
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def outline(points: Iterable[Sequence[float]]) -> Details:
    """Return points, each an x and a y, as the outline of an object; nothing for less than 3."""
    flat = tuple(value for point in points for value in point)
    return Details(polygons=(flat,)) if len(flat) >= 6 else NOTHING


def around_ellipse(x: float, y: float, across: float, down: float, degrees: float = 0.0) -> Corners:
    """Return the box around an ellipse with this center and these radii, turned clockwise."""
    angle = math.radians(degrees)
    half_width = math.hypot(across * math.cos(angle), down * math.sin(angle))
    half_height = math.hypot(across * math.sin(angle), down * math.cos(angle))
    return x - half_width, y - half_height, x + half_width, y + half_height


def corners_of(box: Corners) -> Sequence[Point]:
    """Return the four corners of a box."""
    xmin, ymin, xmax, ymax = box
    return (xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax)


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
            (SHAPES_DROPPED, f"{len(dropped)} shapes without an area ({kinds}) were dropped")
        )
    if rotated:
        notes.append(
            (BOXES_ROTATED, f"{rotated} boxes are rotated; the upright boxes around them were kept")
        )
    return notes
