"""Shapes that are no upright rectangles → the boxes around them, and their outlines.

outlined([(4, 5), (8, 5), (6, 10)])       →  (4, 5, 8, 10), and the polygon
ellipse(6, 7, 2, 1, 90)                   →  (5, 5, 7, 9), and a polygon of 32 points
rectangle((0, 0, 4, 2), 90, (0, 0))       →  (-2, 0, 0, 4), and the polygon
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from recordgen.core.limits import MASK_RUNS
from recordgen.subjects.details import NOTHING, Details, Mask, Polygons
from recordgen.subjects.masks import text_of
from recordgen.subjects.picture import Corners

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    #: The pixels of a part of a picture that an object has, [rows, columns].
    Pixels: TypeAlias = npt.NDArray[np.bool_] | npt.NDArray[np.uint8]

    #: The first pixel of each run and the one behind it, [runs, 2], counted down each column from
    #: left to right.
    Runs: TypeAlias = npt.NDArray[np.int64]

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

    Raises: ValueError: there are none, or a coordinate is no finite number.
    """
    points = list(points)
    flat = tuple(value for point in points for value in point)
    if not math.isfinite(sum(flat)):
        raise ValueError(f"an outline needs finite numbers (got {flat!r:.80})")
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
    offsets = ((x - x0, y - y0) for x, y in points)
    return [(x0 + dx * cosine - dy * sine, y0 + dx * sine + dy * cosine) for dx, dy in offsets]


def runs_below(rows: Pixels, left: int, top: int, width: int, height: int) -> Runs:
    """Return the runs in a part of a picture, given its pixels and its place.

    Pixels outside of the picture are left out. Raises: ValueError: there are too many runs.
    """
    import numpy as np

    rows = rows[max(0, -top) : max(0, height - top), max(0, -left) : max(0, width - left)]
    left, top = max(0, left), max(0, top)
    around = np.zeros((rows.shape[0] + 2, rows.shape[1]), rows.dtype)
    around[1:-1] = rows
    changes = around[1:] != around[:-1]
    MASK_RUNS.check(np.count_nonzero(changes) // 2)
    down, across = np.divmod(np.flatnonzero(changes), max(1, rows.shape[1]))
    return np.sort((left + across) * height + top + down).reshape(-1, 2)


def mask_of(parts: Sequence[Runs], width: int, height: int) -> Mask:
    """Return the mask of all runs of a picture. Raises: ValueError: there are too many."""
    import numpy as np

    runs = np.concatenate(parts)
    MASK_RUNS.check(len(runs))
    runs = runs[runs[:, 0] < runs[:, 1]]
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    # A run ends where no run before it goes on; columns without a gap are one run.
    ends = np.maximum.accumulate(runs[:, 1])
    is_first = np.ones(len(runs), np.bool_)
    is_first[1:] = runs[1:, 0] > ends[:-1]
    is_last = np.roll(is_first, -1)
    edges = np.stack([runs[is_first, 0], ends[is_last]], axis=1).ravel()
    lengths = np.diff(edges, prepend=0, append=width * height)
    return Mask(text_of(lengths.tolist()), height, width)


def shape_notes(dropped: Sequence[str], rotated: int = 0) -> list[tuple[str, str]]:
    """Return the notes about the shapes of one image.

    Args:
        dropped: the kinds of shapes without an area.
        rotated: the number of boxes that were drawn rotated.
    """
    notes = []
    if dropped:
        kinds = ", ".join(sorted(set(dropped)))
        what = f"shapes without an area or a class were dropped: {len(dropped)} ({kinds})"
        notes.append((SHAPES_DROPPED, what))
    if rotated:
        notes.append((BOXES_ROTATED, f"{rotated} boxes are rotated; upright ones were kept"))
    return notes
