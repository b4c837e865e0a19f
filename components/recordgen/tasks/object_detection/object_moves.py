"""Outlines, masks, keypoints and areas of turned, cropped, padded and resized images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen.core.records.class_masks import seen_through
from recordgen.core.records.numbers import as_float32
from recordgen.core.records.run_lengths import pixels_of, runs_in, runs_of, text_of
from recordgen.core.rows.details import KEYPOINT, Details, Mask
from recordgen.core.rows.polygons import PARTS, Points, Polygons, points_of, rounded
from recordgen.tasks.object_detection.annotation import Box, ImageSize

if TYPE_CHECKING:
    from recordgen.core.rows.polygons import Array
    from recordgen.payloads.reencoding import CheckedImage

_WHOLE = (0.0, 0.0, 1.0, 1.0)

# Documents round areas of boxes.
_ROUNDED = 1e-3
_OUTSIDE = 1e-6

# Points of the smallest polygon.
_TRIANGLE = 3


@dataclass(frozen=True, slots=True)
class Move:
    """How what is known of an object follows the pixels of its image.

    Attributes:
        way: the Exif orientation that was turned upright.
        view: left, top, width and height of the stored part, in shares of the upright picture.
        size: width and height of the stored image; None if unknown.
        row_size: of the picture that the row describes; None if unknown.
    """

    way: int
    view: tuple[float, float, float, float]
    size: tuple[int, int] | None
    row_size: ImageSize | None

    @classmethod
    def of(cls, row_size: ImageSize | None, way: int, image: CheckedImage) -> Move:
        """Return the move of the objects in an image."""
        view = _WHOLE if image.placed is None else tuple(image.placed.view)
        is_known = image.width is not None and image.height is not None
        size = (image.width, image.height) if is_known else None
        return cls(way, view, size, row_size)  # type: ignore[arg-type]

    def __call__(self, details: Details, box: Box) -> Details:
        """Return the details in the stored image, given the box in the upright picture."""
        if not details:
            return details
        return replace(
            details,
            area=None if details.area is None else self._area(details.area, box),
            polygons=details.polygons.mapped(self._points),
            mask=None if details.mask is None else self._mask(details.mask),
            keypoints=self._keypoints(details.keypoints),
        )

    def keeps(self, details: Details) -> bool:
        """Return whether details are the same in the stored image."""
        is_same = self.row_size is not None and self.size == tuple(self.row_size)
        mask = details.mask
        return (
            self.way == 1
            and self.view == _WHOLE
            and (is_same or details.area is None)
            and (mask is None or self.size == (mask.width, mask.height))
        )

    def _area(self, area: float, box: Box) -> float | None:
        if self.size is None or self.row_size is None:
            return None
        left, top, across, down = self.view
        seen = 1.0
        for start, end, first, extent in (
            (box.xmin, box.xmax, left, across),
            (box.ymin, box.ymax, top, down),
        ):
            seen *= (min(end, first + extent) - max(start, first)) / (end - start)
        scale = math.prod(self.size) / (across * down * math.prod(self.row_size))
        return area * scale * min(1.0, max(0.0, seen))

    def _points(self, points: Array) -> Array:
        x, y = self._point(points[:, 0], points[:, 1])
        return np.stack([x, y], 1)

    def _keypoints(self, points: Points) -> Points:
        found: list[float] = []
        for x, y, shown in zip(*(points[at::KEYPOINT] for at in range(KEYPOINT)), strict=True):
            found += (*self._point(x, y), shown) if shown or x or y else (0.0, 0.0, 0.0)
        return tuple(found)

    def _point(self, x: Any, y: Any) -> tuple[Any, Any]:
        if self.way >= 5:
            x, y = y, x
        if self.way in (2, 3, 6, 7):
            x = 1 - x
        if self.way in (3, 4, 7, 8):
            y = 1 - y
        left, top, across, down = self.view
        return (x - left) / across, (y - top) / down

    def _mask(self, mask: Mask) -> Mask | None:
        if self.size is None:
            return None
        width, height = self.size
        if self.way == 1 and self.view == _WHOLE and (mask.height, mask.width) == (height, width):
            return mask
        turned = _turned(pixels_of(runs_of(mask.counts), mask.height, mask.width), self.way)
        left, top, across, down = self.view
        shown = seen_through(turned, (top, left, down, across), (height, width))
        seen = (shown == 1).astype(np.uint8)
        return Mask(text_of(runs_in(seen)), height, width) if seen.any() else None


def _turned(pixels: Any, way: int) -> Any:
    if way >= 5:
        pixels = pixels.T
    if way in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels[::-1] if way in (3, 4, 7, 8) else pixels


def as_stored(
    found: Sequence[Details],
    areas: Sequence[float | None],
    size: tuple[float, float] = (1.0, 1.0),
) -> Sequence[Details]:
    """Return the details of one image with the precision of records, in shares of it.

    Polygons are cut at its edges; a keypoint outside of it is not labelled. Without the width and
    height of the image, the given details are in shares, too.
    """
    outlines = _inside([details.polygons for details in found], size)
    return [
        Details(
            details.flags,
            None if area is None else as_float32(area),
            polygons,
            details.mask,
            _keypoints_inside(details.keypoints, size),
            details.digest,
        )
        if details or area is not None
        else details
        for details, area, polygons in zip(found, areas, outlines, strict=True)
    ]


def _keypoints_inside(keypoints: Points, size: tuple[float, float]) -> Points:
    """Return keypoints in shares of an image; none if none of them is labelled."""
    if not keypoints:
        return ()
    found = np.asarray(keypoints).reshape(-1, KEYPOINT)
    places, shown = found[:, :2] / size, found[:, 2:]
    is_there = ((places >= -_OUTSIDE) & (places <= 1 + _OUTSIDE)).all(1, keepdims=True)
    there = np.where(
        is_there, np.concatenate([np.rint(places.clip(0, 1) * PARTS) / PARTS, shown], 1), 0.0
    )
    return tuple(there.ravel().tolist()) if there.any() else ()


def _inside(outlines: Sequence[Polygons], size: tuple[float, float]) -> Sequence[Polygons]:
    """Return outlines in shares of an image, cut at its edges, with the precision of records."""
    if not any(outlines):
        return outlines
    shares = points_of(outlines) / size
    sizes = [each.sizes for each in outlines]
    if shares.min() < 0 or shares.max() > 1 or min(map(min, filter(None, sizes))) < _TRIANGLE:
        cut = [[_cut(part) for part in each.arrays()] for each in Polygons.split(sizes, shares)]
        cut = [[part for part in parts if len(part) >= _TRIANGLE] for parts in cut]
        sizes = [tuple(map(len, parts)) for parts in cut]
        shares = np.concatenate([np.zeros((0, 2)), *(part for parts in cut for part in parts)])
    return Polygons.split(sizes, rounded(shares))


def _cut(points: Array) -> Array:
    """Return the part of a polygon in 0..1 (Sutherland and Hodgman, 1974)."""
    if points.min() >= 0 and points.max() <= 1:
        return points
    corners = points.tolist()
    for axis in (0, 1):
        for edge, sign in ((0.0, 1), (1.0, -1)):
            found = []
            for at, here in enumerate(corners):
                before = corners[at - 1]
                is_in, was_in = (sign * (point[axis] - edge) >= 0 for point in (here, before))
                if is_in != was_in:
                    share = (edge - before[axis]) / (here[axis] - before[axis])
                    other = before[1 - axis] + share * (here[1 - axis] - before[1 - axis])
                    found.append((edge, other) if axis == 0 else (other, edge))
                if is_in:
                    found.append(here)
            corners = found
    return np.array(corners).reshape(-1, 2)


def areas_of(pairs: Sequence[tuple[Box, Details]], pixels: int) -> Sequence[float | None]:
    """Return the areas of all boxes, or None for each, given the pixels of their picture.

    An area that is missing is that of the box. There are none if they are all those of the boxes,
    or if the size of the picture is unknown.
    """
    none = [None] * len(pairs)
    if pixels == 1 or not any(details.area is not None for _, details in pairs):
        return none
    own = [(box.xmax - box.xmin) * (box.ymax - box.ymin) * pixels for box, _ in pairs]
    areas = [
        mine if details.area is None else details.area
        for mine, (_, details) in zip(own, pairs, strict=True)
    ]
    return none if all(map(_are_close, own, areas)) else areas


def _are_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDED)
