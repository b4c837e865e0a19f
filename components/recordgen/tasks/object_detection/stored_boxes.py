"""Boxes, outlines, masks, keypoints and areas follow the pixels of their image.

The stored image may be turned, cropped, padded and resized.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records.example import FeatureValue
from recordgen.core.records.numbers import as_float32
from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode
from recordgen.subjects.details import (
    KEYPOINT,
    PARTS,
    Details,
    Mask,
    Points,
    Polygons,
    points_of,
    rounded,
)
from recordgen.subjects.masks import pixels_of, runs_in, runs_of, text_of
from recordgen.subjects.masks import seen_through as seen_pixels
from recordgen.subjects.objects import features_of
from recordgen.tasks.object_detection.annotation import Box, Boxes, ImageSize

if TYPE_CHECKING:
    from recordgen.payloads.reencoding import CheckedImage, View
    from recordgen.subjects.details import Array
    from recordgen.subjects.picture import Picture
    from recordgen.tasks.images.task import StoredImage

#: Names in ``rows.adjusted`` of ``dataset.json``.
BOXES_CUT = "boxes_cut"
BOXES_OUTSIDE = "boxes_outside"

# Processor time on a current machine for each pixel of a mask that must be unpacked.
_SECONDS_PER_PIXEL = 4e-9

_WHOLE = (0.0, 0.0, 1.0, 1.0)

# Documents round areas of boxes; coordinates are float32 in records.
_ROUNDED = 1e-3
_OUTSIDE = 1e-6

# Most shares of images need fewer decimals. From the number on, float32 has no fractions.
_DECIMALS, _SPARSE = 9, 1 << 23

# Points of the smallest polygon.
_TRIANGLE = 3


def stored_boxes(row: Boxes, stored: StoredImage, orientation: str, *, moves_boxes: bool) -> Boxes:
    """Return the boxes of the stored image; count those that are cut or outside.

    ``orientation`` is the picture that the row's boxes belong to, ``stored`` or ``upright``;
    ``moves_boxes``: the stored image may show another part of it. Raises: PayloadError.
    """
    image, changes = stored.image, stored.changes
    if row.size is not None:
        _check_size(row.size, image, orientation)
    way = image.orientation if orientation == "stored" else 1
    if row.size is None and way == 1 and not moves_boxes and not row.details:
        return row
    view = image.placed.view if moves_boxes and image.placed is not None else None
    move = Move.of(row.size, way, image)
    if way == 1 and view is None and all(map(move.keeps, row.details)):
        return row._replace(size=None)
    masks = [details.mask for details in row.details if details.mask and not move.keeps(details)]
    pixels = sum(mask.height * mask.width for mask in masks)
    stored.settings.limit.check_seconds(pixels * _SECONDS_PER_PIXEL, "moving its masks")
    boxes, found = [], []
    for box, details in row.pairs():
        upright = turned(box, way)
        there = upright if view is None else seen_through(upright, view)
        if there is None:
            changes[BOXES_OUTSIDE] += 1
            continue
        if view is not None and is_cut(upright, view):
            changes[BOXES_CUT] += 1
        boxes.append(there.stored)
        found.append(move(details, upright))
    return in_shares(boxes, found)


def _check_size(size: ImageSize, image: CheckedImage, orientation: str) -> None:
    """Check a row's width and height against its image. Raises: PayloadError."""
    if image.width is None or image.height is None:
        return
    width, height = (image.width, image.height) if image.placed is None else image.placed.size
    upright, lying = ImageSize(width, height), ImageSize(height, width)
    is_on_its_side = image.orientation >= 5
    stored = lying if is_on_its_side else upright
    right, other = (stored, upright) if orientation == "stored" else (upright, stored)
    if size.is_alike(right):
        return
    remedy = "correct the row, whose box is a share of them"
    if is_on_its_side and size.is_alike(other):
        way = "upright" if orientation == "stored" else "stored"
        remedy = f"boxes of the {way} picture need --box-orientation {way}"
    raise PayloadError(
        RejectCode.BAD_ANNOTATION.value,
        f"the row says that the image has {size} pixels, but it has {right}; {remedy}",
    )


def box_features(row: Boxes, vocabulary: Vocabulary) -> Mapping[str, FeatureValue]:
    """Return the features of the boxes of a stored image."""
    corners = zip(*(box[1:] for box in row.boxes), strict=True)
    return {
        **dict(zip(features.BBOX, map(list, corners), strict=True)),
        features.IMAGE_OBJECT_TEXT: [box.label.encode() for box in row.boxes],
        features.IMAGE_OBJECT_LABEL: [vocabulary.index(box.label) for box in row.boxes],
        **features_of(row.details),
    }


def in_shares(boxes: Sequence[Box], details: Sequence[Details]) -> Boxes:
    """Return boxes of a stored image with their details, in shares of it."""
    areas = np.array([each.area for each in details], np.float64)
    stored = as_stored(details, areas, np.ones((len(details), 2)))
    return Boxes.merged(zip(boxes, stored, strict=True))


def turned(box: Box, orientation: int) -> Box:
    """Return a box after its image was turned upright.

    ``Box("cat", 0, 0, 0.2, 0.1)`` of an image with EXIF orientation 6, which is turned clockwise →
    ``Box("cat", 0.9, 0, 1, 0.2)``.
    """
    corners = (upright(*box[1:3], orientation), upright(*box[3:], orientation))
    (xmin, xmax), (ymin, ymax) = (sorted(values) for values in zip(*corners, strict=True))
    return Box(box.label, xmin, ymin, xmax, ymax)


def upright(x: Any, y: Any, orientation: int) -> tuple[Any, Any]:
    """Return points (numbers or arrays, as shares) after their image was turned upright.

    Exif 2.3, tag 0x0112 has the orientations 1 to 8.
    """
    if orientation >= 5:  # the picture lies on its side
        x, y = y, x
    if orientation in (2, 3, 6, 7):
        x = 1 - x
    if orientation in (3, 4, 7, 8):
        y = 1 - y
    return x, y


def seen_through(box: Box, view: View) -> Box | None:
    """Return a box relative to the stored part of its image; None if it is outside.

    ``Box("cat", 0, 0.2, 0.5, 0.6)`` of an image whose right three quarters are stored →
    ``Box("cat", 0, 0.2, 0.333, 0.6)``.
    """
    xs = ((x - view.left) / view.width for x in (box.xmin, box.xmax))
    ys = ((y - view.top) / view.height for y in (box.ymin, box.ymax))
    xmin, xmax, ymin, ymax = (min(1.0, max(0.0, value)) for value in (*xs, *ys))
    there = Box(box.label, xmin, ymin, xmax, ymax).stored
    return there if there.xmin < there.xmax and there.ymin < there.ymax else None


def is_cut(box: Box, view: View) -> bool:
    """Return whether a part of a box is outside the stored image."""
    return (
        min(box.xmin - view.left, box.ymin - view.top) < -_OUTSIDE
        or box.xmax - view.left - view.width > _OUTSIDE
        or box.ymax - view.top - view.height > _OUTSIDE
    )


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
        return details._replace(
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
        x, y = upright(x, y, self.way)
        left, top, across, down = self.view
        return (x - left) / across, (y - top) / down

    def _mask(self, mask: Mask) -> Mask | None:
        if self.size is None:
            return None
        width, height = self.size
        if self.way == 1 and self.view == _WHOLE and (mask.height, mask.width) == (height, width):
            return mask
        # Imported here: reading import files does not need the decoders.
        from PIL import Image

        from recordgen.payloads.reencoding import turn

        pixels = pixels_of(runs_of(mask.counts), mask.height, mask.width)
        whole = np.asarray(turn(Image.fromarray(pixels), self.way))
        left, top, across, down = self.view
        shown = seen_pixels(whole, (top, left, down, across), (height, width))
        seen = (shown == 1).astype(np.uint8)
        return Mask(text_of(runs_in(seen)), height, width) if seen.any() else None


#: The objects of a picture in shares of it: whether all boxes are inside, and rounded as records
#: round them; xmin, ymin, xmax and ymax of each box; and what else is known of it.
Measured: TypeAlias = tuple[bool, Sequence[Sequence[float]], Sequence[Details]]


@np.errstate(all="ignore")  # numbers that are not finite are refused later
def measured(pictures: Sequence[Picture]) -> Sequence[Measured]:
    """Return the objects of each picture.

    An area that is missing is that of the box. There are none if they are all those of the boxes,
    or if the size of the picture is unknown.
    """
    objects = [each for picture in pictures for each in picture.objects]
    counts = [len(picture.objects) for picture in pictures]
    owners = np.repeat(np.arange(len(counts)), counts)

    def any_in_picture(are: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        return np.bincount(owners, are, len(counts))[owners] > 0

    sizes = np.array([picture.size or (1, 1) for picture in pictures]).reshape(-1, 2)[owners]
    places = np.array([each.corners for each in objects], np.float64).reshape(-1, 4)
    shares = places / np.tile(sizes, 2)
    given = np.array([each.details.area for each in objects], np.float64)  # NaN: unknown
    pixels = sizes.prod(1)
    own = (shares[:, 2] - shares[:, 0]) * (shares[:, 3] - shares[:, 1]) * pixels
    is_other = np.abs(own - given) > _ROUNDED * np.maximum(np.abs(own), np.abs(given))
    areas = np.where(np.isnan(given), own, given)
    areas[~any_in_picture(is_other & (pixels > 1))] = np.nan
    details = as_stored([each.details for each in objects], areas, sizes)
    are_inside = ~any_in_picture(~((shares >= 0) & (shares <= 1)).all(1))
    shares[are_inside] = _all_as_float32(shares[are_inside])
    parts = [slice(*each) for each in pairwise(accumulate(counts, initial=0))]
    corners = shares.tolist()
    return [(bool(are_inside[each].all()), corners[each], details[each]) for each in parts]


def _all_as_float32(values: Array) -> Array:
    """Return :func:`recordgen.core.records.numbers.as_float32` of each number.

    The fewest decimals that have the same float32 are those to which it is rounded: no other number
    of so few is as near.
    """
    singles = values.astype(np.float32)
    found = np.full_like(values, np.nan)
    for digits in range(_DECIMALS, -1, -1):
        rounded = singles.astype(np.float64).round(digits)  # exact: the product has < 53 bits
        np.copyto(found, rounded, where=rounded.astype(np.float32) == singles)
    is_left = np.isnan(found) | (np.abs(singles) >= _SPARSE)
    found[is_left] = list(map(as_float32, values[is_left]))
    return found


def as_stored(
    found: Sequence[Details], areas: npt.NDArray[np.float64], sides: npt.NDArray[Any]
) -> Sequence[Details]:
    """Return details with the precision of records, in shares of their pictures.

    Polygons are cut at the edges; a keypoint outside of its picture is not labelled.

    Args:
        found: the details.
        areas: the area of each object, float64 [n]; NaN if it has none.
        sides: width and height of the picture of each, [n, 2], in the unit of the details.
    """
    outlines = _inside([details.polygons for details in found], sides)
    numbers = _all_as_float32(areas).tolist()
    return [
        Details(
            details.flags,
            None if math.isnan(area) else area,
            polygons,
            details.mask,
            _keypoints_inside(details.keypoints, size) if details.keypoints else (),
            details.digest,
        )
        for details, area, polygons, size in zip(found, numbers, outlines, sides, strict=True)
    ]


def _keypoints_inside(keypoints: Points, size: npt.NDArray[Any]) -> Points:
    """Return keypoints in shares of an image; none if none of them is labelled."""
    found = np.asarray(keypoints).reshape(-1, KEYPOINT)
    places, shown = found[:, :2] / size, found[:, 2:]
    is_there = ((places >= -_OUTSIDE) & (places <= 1 + _OUTSIDE)).all(1, keepdims=True)
    there = np.where(
        is_there, np.concatenate([np.rint(places.clip(0, 1) * PARTS) / PARTS, shown], 1), 0.0
    )
    return tuple(there.ravel().tolist()) if there.any() else ()


def _inside(outlines: Sequence[Polygons], sides: npt.NDArray[Any]) -> Sequence[Polygons]:
    """Return outlines in shares of their pictures, cut at the edges, as records have them."""
    if not any(outlines):
        return outlines
    sizes = [each.sizes for each in outlines]
    owners = np.repeat(np.arange(len(sizes)), list(map(sum, sizes)))
    shares = points_of(outlines) / sides[owners]
    inside = shares.clip(0, 1)
    is_odd = np.bincount(owners, (inside != shares).any(1), len(sizes)) > 0
    is_odd |= [min(mine, default=_TRIANGLE) < _TRIANGLE for mine in sizes]
    found = Polygons.split(sizes, rounded(inside))
    exact = Polygons.split(sizes, shares) if is_odd.any() else ()
    for at in np.flatnonzero(is_odd):
        kept = [part for part in map(_cut, exact[at].arrays()) if len(part) >= _TRIANGLE]
        points = np.concatenate([np.zeros((0, 2)), *kept])
        found[at] = Polygons(tuple(map(len, kept)), rounded(points).tobytes())
    return found


def _cut(points: Array) -> Array:
    """Return the part of a polygon in 0..1 (Sutherland and Hodgman, 1974)."""
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
