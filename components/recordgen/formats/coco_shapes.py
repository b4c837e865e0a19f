"""The segmentations and keypoints of COCO's annotations.

"segmentation": [[10, 20, 40, 20, 40, 60]]                           polygons
"segmentation": {"size": [480, 640], "counts": [272, 2, 4, …]}       runs; or COCO's text of them
"keypoints": [25, 22, 2, 0, 0, 0, …]                                 x, y, visibility
"""

from __future__ import annotations

import math
from array import array
from collections.abc import KeysView, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from recordgen.core.limits import KEYPOINTS, MASK_PIXELS, MASK_RUNS
from recordgen.core.records.run_lengths import runs_of, text_of
from recordgen.core.rows.details import KEYPOINT, Mask
from recordgen.core.rows.picture import are_numbers, is_size
from recordgen.core.rows.polygons import NO_POLYGONS, Points, Polygons

# Numbers of the smallest polygon, a triangle.
_TRIANGLE = 6


@dataclass(eq=False)
class Shapes:
    """The shapes of annotations by index. Each number of a point takes 4 bytes."""

    _points: array[float] = field(default_factory=lambda: array("f"))
    _ends: array[int] = field(default_factory=lambda: array("q", [0]))  # of each polygon
    _polygons: array[int] = field(default_factory=lambda: array("q", [0]))  # up to each annotation
    _masks: dict[int, Mask | str] = field(default_factory=dict)  # or why there is none
    _keypoints: dict[int, array[float]] = field(default_factory=dict)

    def add(self, item: Any) -> None:
        """Add the shapes of the next annotation."""
        at = len(self._polygons) - 1
        shape = item.get("segmentation")
        for points in polygons_in(shape):
            self._points += points
            self._ends.append(self._ends[-1] + len(points))
        self._polygons.append(len(self._ends) - 1)
        try:
            if (mask := mask_in(shape)) is not None:
                self._masks[at] = mask
        except ValueError as exc:
            self._masks[at] = str(exc)
        keypoints = item.get("keypoints")
        if keypoints and are_numbers(keypoints) and any(keypoints):
            self._keypoints[at] = array("f", keypoints)

    @property
    def most_keypoints(self) -> int:
        """The largest number of keypoints of an annotation that does not exceed the limit."""
        counts = (len(numbers) // KEYPOINT for numbers in self._keypoints.values())
        return max((count for count in counts if count <= KEYPOINTS.most), default=0)

    @property
    def keypoints_of(self) -> KeysView[int]:
        """The annotations that have keypoints."""
        return self._keypoints.keys()

    def polygons(self, at: int) -> Polygons:
        """Return the polygons of an annotation."""
        first, last = self._polygons[at], self._polygons[at + 1]
        if first == last:
            return NO_POLYGONS
        ends = self._ends[first : last + 1]
        sizes = tuple((end - start) // 2 for start, end in pairwise(ends))
        return Polygons(sizes, self._points[ends[0] : ends[-1]].tobytes())

    def mask(self, at: int) -> Mask | None:
        """Return the mask of an annotation. Raises: ValueError: it is damaged."""
        found = self._masks.get(at)
        if isinstance(found, str):
            raise ValueError(found)
        return found

    def keypoints(self, at: int, count: int) -> Points:
        """Return ``count`` numbers of keypoints. Raises: ValueError: there are more."""
        found = tuple(self._keypoints.get(at, ()))
        if found:
            KEYPOINTS.check(count // KEYPOINT)
        if len(found) % KEYPOINT or len(found) > count:
            raise ValueError(
                f"keypoints need x, y and visibility of each of {count // KEYPOINT} names (got "
                f"{len(found)} numbers)"
            )
        return found + (0.0,) * (count - len(found)) if found else ()


def polygons_in(shape: Any) -> Sequence[array[float]]:
    """Return the polygons of a segmentation; none if it is something else, or one is damaged."""
    if not isinstance(shape, list):
        return ()
    found = []
    for each in shape:
        try:
            points = array("f", each if isinstance(each, list) else ())
        except (TypeError, OverflowError):
            return ()
        # Numbers that are none, or too large, have no finite sum.
        if len(points) < _TRIANGLE or not math.isfinite(sum(points)):
            return ()
        found.append(points[:-1] if len(points) % 2 else points)
    return found


def mask_in(shape: Any) -> Mask | None:
    """Return the mask of a segmentation; None if it has polygons or nothing.

    Raises: ValueError: the runs do not fill the picture, or exceed a limit.
    """
    if not isinstance(shape, dict):
        return None
    size, counts = shape.get("size"), shape.get("counts")
    if not (are_numbers(size) and len(size) == 2):
        raise ValueError(f"the size of a mask must be its height and width (got {size!r:.40})")
    height, width = map(int, size)
    if not is_size((width, height)):
        raise ValueError(f"the size of a mask must be its height and width (got {size!r:.40})")
    MASK_PIXELS.check(height * width)
    if isinstance(counts, list) and all(isinstance(count, int) for count in counts):
        runs = counts
    elif isinstance(counts, str):
        runs = runs_of(counts)
    else:
        raise ValueError(f"the counts of a mask must be runs (got {counts!r:.40})")
    MASK_RUNS.check(len(runs))
    if sum(runs) != height * width or min(runs, default=0) < 0:
        raise ValueError(f"the runs have {sum(runs):,} pixels, but their picture {height}×{width}")
    return Mask(text_of(runs), height, width)
