"""The geometry of boxes and their masks that all readers share, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen import features
from recordgen.features import AREA, FLAGS, KEYPOINTS, MASKS
from recordgen.subjects.masks import pixels_of, seen_through

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]
    Integers = npt.NDArray[np.int64]
    Masks = npt.NDArray[np.uint8]

#: Top, left, bottom and right of boxes.
CORNERS = (
    features.IMAGE_OBJECT_YMIN,
    features.IMAGE_OBJECT_XMIN,
    features.IMAGE_OBJECT_YMAX,
    features.IMAGE_OBJECT_XMAX,
)
SIDES = (features.IMAGE_HEIGHT, features.IMAGE_WIDTH)

#: The features from which each field of boxes is read.
FIELD_FEATURES: Mapping[str, Sequence[str]] = {
    **{name: (feature,) for name, feature in zip(FLAGS, features.OBJECT_FLAGS, strict=True)},
    AREA: (features.IMAGE_OBJECT_AREA, *SIDES),
    KEYPOINTS: (
        features.IMAGE_OBJECT_KEYPOINT_X,
        features.IMAGE_OBJECT_KEYPOINT_Y,
        features.IMAGE_OBJECT_KEYPOINT_VISIBILITY,
    ),
    MASKS: (
        *SIDES,
        features.IMAGE_OBJECT_POLYGON_COUNT,
        features.IMAGE_OBJECT_POLYGON_POINTS,
        features.IMAGE_OBJECT_POLYGON_X,
        features.IMAGE_OBJECT_POLYGON_Y,
        features.IMAGE_OBJECT_MASK_COUNT,
        features.IMAGE_OBJECT_MASK_RUNS,
    ),
}

#: Rounding may put keypoints so far outside of their image.
KEYPOINT_TOLERANCE = 1e-4

#: Keras's names: ``xyxy`` is left, top, right, bottom in pixels; ``rel_``: in shares of the image.
BOX_FORMATS = tuple(
    prefix + order for prefix in ("rel_", "") for order in ("xyxy", "yxyx", "xywh", "center_xywh")
)


def formatted(
    corners: Sequence[Any], box_format: str, image_size: tuple[int, int]
) -> tuple[Any, Any, Any, Any]:
    """Return the four numbers of boxes in one of :data:`BOX_FORMATS`.

    Args:
        corners: top, left, bottom and right of the boxes in shares of the image, each float32 [n].
        box_format: formats with ``rel_`` are in shares of the image, others in pixels.
        image_size: height and width of the image.
    """
    top, left, bottom, right = corners
    if not box_format.startswith("rel_"):
        height, width = image_size
        top, left, bottom, right = top * height, left * width, bottom * height, right * width
    order = box_format.removeprefix("rel_")
    if order == "xyxy":
        return left, top, right, bottom
    if order == "yxyx":
        return top, left, bottom, right
    across, down = right - left, bottom - top
    if order == "xywh":
        return left, top, across, down
    return left + across / 2, top + down / 2, across, down


def shown_keypoints(
    points: Floats, frames: Floats, flip: Sequence[int] = (), scale: Sequence[float] = (1, 1)
) -> Floats:
    """Return keypoints as images show them; 0, 0, 0 if they are outside or not labelled.

    Args:
        points: x and y in shares of the stored image, and visibility (float32 [n, keypoints, 3]).
        frames: what is shown of the image of each box: top, left, height and width in shares
            (float32 [n, 4]); a negative width is mirrored.
        flip: for each keypoint the one that it becomes in a mirrored image, if it differs.
        scale: the width and height of the image in the unit of the result.
    """
    if flip:
        points = np.where(frames[:, 3, None, None] < 0, points[:, list(flip)], points)
    starts, extents = frames[:, None, 1::-1], frames[:, None, :1:-1]
    places = (points[..., :2] - starts) / extents
    is_in = ((places >= -KEYPOINT_TOLERANCE) & (places <= 1 + KEYPOINT_TOLERANCE)).all(-1)
    inside = np.clip(places, 0, 1) * np.array(scale, np.float32)
    found = np.concatenate([inside, points[..., 2:]], -1)
    return np.where((is_in & points.any(-1))[..., None], found, np.float32(0))


def object_masks(
    points: Floats,
    polygons: Integers,
    polygons_of_object: Integers,
    runs: Integers,
    runs_of_object: Integers,
    stored_sizes: Integers,
    views: Floats,
    image_size: tuple[int, int],
) -> Masks:
    """Return the masks of objects, uint8 [n, height, width]: 1 where an object is.

    A pixel belongs to a polygon if its center does; a polygon that crosses itself has holes.

    Args:
        points: x and y of the points of all polygons, in shares of the stored image (float32 [p,
            2]).
        polygons: the number of points of each polygon.
        polygons_of_object: the number of polygons of each object [n].
        runs: the runs of all masks, see :mod:`recordgen.subjects.masks`.
        runs_of_object: the number of runs of each object [n]; 0: it has no mask of runs.
        stored_sizes: height and width of each object's stored image (int64 [n, 2]).
        views: the part of it that is shown: top, left, height and width in shares (float32 [n,
            4]); a negative width is mirrored.
        image_size: height and width of the returned masks in pixels.
    """
    masks = np.zeros((len(views), *image_size), np.uint8)
    owners = np.repeat(np.arange(len(views)), polygons_of_object)
    for owner, polygon in zip(owners, _parts(points, polygons), strict=True):
        view = views[owner]
        shown = (polygon - view[1::-1]) / view[:1:-1] * np.array(image_size[::-1], np.float32)
        masks[owner] |= filled(shown, image_size)
    for owner, part in enumerate(_parts(runs, runs_of_object)):
        if len(part):
            height, width = map(int, stored_sizes[owner])
            pixels = pixels_of(part.tolist(), height, width)
            masks[owner] |= seen_through(pixels, views[owner], image_size, outside=0)
    return masks


def filled(points: Floats, size: tuple[int, int]) -> Masks:
    """Return the pixels whose centers are in a polygon, given x and y of its points in pixels."""
    height, width = size
    x0, y0 = points[:, :1], points[:, 1:]
    x1, y1 = np.roll(x0, -1, 0), np.roll(y0, -1, 0)
    centers = np.arange(height, dtype=np.float32) + np.float32(0.5)
    crosses = (y0 <= centers) != (y1 <= centers)
    share = np.divide(centers - y0, y1 - y0, out=np.zeros(crosses.shape, np.float32), where=crosses)
    first = np.clip(np.ceil(x0 + (x1 - x0) * share - 0.5), 0, width).astype(np.intp)
    changes = np.zeros((height, width + 1), np.uint8)
    np.add.at(changes, (np.nonzero(crosses)[1], first[crosses]), 1)
    inside: Masks = np.cumsum(changes, 1, dtype=np.uint8)[:, :width] & np.uint8(1)
    return inside


def _parts(values: Any, counts: Integers) -> list[Any]:
    """Return the values of each owner, given how many each has."""
    return np.split(values, np.cumsum(counts)[:-1]) if len(counts) else []
