"""What is known of boxes, and how it moves: corners, flags, areas, keypoints, masks.

Corners are float32 [n, 4]: top, left, bottom, right, in shares of the image's height and width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.access.boxes import FIELD_FEATURES, SIDES, object_masks, shown_keypoints
from recordgen.errors import UsageError
from recordgen.features import AREA, FLAGS, IS_CROWD, KEYPOINTS, MASKS
from recordgen.reading.parsing import checked

#: Among the details of boxes: see :func:`whole_frames`; and what masks are drawn of.
FRAME, POLYGONS, RUNS, SIZES = "frame", "polygons", "runs", "sizes"

# Without it, rounding to float32 could make a whole box count as clipped.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class ObjectFields:
    """The fields of boxes that are returned.

    Attributes:
        names: their names, of :data:`recordgen.features.OBJECT_FIELDS`.
        keypoints: the number of keypoints of a box.
        flip: for each keypoint the one that it becomes in a mirrored image.
        skips_crowds: whether boxes around crowds are skipped.
    """

    names: Sequence[str] = ()
    keypoints: int = 0
    flip: Sequence[int] = ()
    skips_crowds: bool = False

    @classmethod
    def of(
        cls, names: Sequence[str], objects: Sequence[str], keypoints: Mapping[str, Any]
    ) -> ObjectFields:
        """Return the fields with these names of a dataset, given what it knows of objects.

        Raises: UsageError: it has no keypoints.
        """
        if KEYPOINTS in names and not keypoints:
            raise UsageError("boxes: the examples have no keypoints; remove them from fields")
        skips = features.IMAGE_OBJECT_IS_CROWD in objects and IS_CROWD not in names
        count = len(keypoints.get("names", ()))
        return cls(tuple(names), count, tuple(keypoints.get("flip_idx", ())), skips)

    @property
    def features(self) -> Sequence[str]:
        """The features to parse."""
        names = (*self.names, IS_CROWD) if self.skips_crowds else self.names
        return [feature for name in names for feature in FIELD_FEATURES[name]]


def moved(corners: tf.Tensor, views: tf.Tensor) -> tf.Tensor:
    """Return boxes relative to the views of their images; parts may lie outside of 0..1.

    If the right half is shown, a box from 0.5 to 0.75 then lies from 0 to 0.5. ``views`` (float32
    [n, 4], see :mod:`recordgen.reading.augmentation`) has one view for each box.
    """
    start, extent = views[:, :2], views[:, 2:]
    return (corners - tf.concat([start, start], 1)) / tf.concat([extent, extent], 1)


def mirrored(corners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
    """Mirror the chosen (bool [n]) boxes left to right."""
    top, left, bottom, right = tf.unstack(corners, axis=1)
    turned = tf.stack([top, 1 - right, bottom, 1 - left], 1)
    return tf.where(chosen[:, None], turned, corners)


def clipped(corners: tf.Tensor) -> tf.Tensor:
    """Clip boxes to their image."""
    return tf.clip_by_value(corners, 0.0, 1.0)


def are_visible(corners: tf.Tensor, least: float) -> tf.Tensor:
    """Return (bool [n]) whether at least a share ``least`` of a box's area is inside its image.

    A box without area is never visible.
    """
    inside = _areas(clipped(corners))
    return (inside > 0) & (inside >= (least - _TOLERANCE) * _areas(corners))


def are_largest(corners: tf.Tensor, images: tf.Tensor, most: int) -> tf.Tensor:
    """Return (bool [n]) whether a box is among the ``most`` largest of its image.

    Among boxes of equal area, the first counts as the largest. ``images`` (int64 [n], sorted) are
    the indices of the boxes' images.
    """
    by_size = tf.argsort(-_areas(corners), stable=True)
    # Sorted by image, and within each by size.
    order = tf.gather(by_size, tf.argsort(tf.gather(images, by_size), stable=True))
    rank = tf.range(tf.size(images)) - tf.searchsorted(images, images)
    return tf.scatter_nd(order[:, None], rank < most, tf.shape(images))


def _areas(corners: tf.Tensor) -> tf.Tensor:
    """Return areas (float32 [n]) as shares of the image; 0 if corners are swapped."""
    sides = tf.maximum(corners[:, 2:] - corners[:, :2], 0.0)
    return sides[:, 0] * sides[:, 1]


def fields_of(
    parsed: Mapping[str, tf.RaggedTensor], boxes: tf.RaggedTensor, wanted: ObjectFields
) -> dict[str, tf.RaggedTensor]:
    """Return the fields of each box of parsed records, as they are stored.

    Returns:
        Flags and areas [batch, (n)]; ``keypoints`` float32 [batch, (n), keypoints, 3]; of masks,
        what they are drawn of.
    """
    found = {
        name: for_each_box(parsed[FIELD_FEATURES[name][0]], boxes)
        for name in wanted.names
        if name in FLAGS
    }
    if AREA in wanted.names:
        stored = for_each_box(parsed[features.IMAGE_OBJECT_AREA], boxes).values
        found[AREA] = boxes.with_values(tf.where(stored > 0, stored, _pixels(parsed, boxes)))
    if wanted.skips_crowds:
        found[IS_CROWD] = for_each_box(parsed[features.IMAGE_OBJECT_IS_CROWD], boxes)
    if KEYPOINTS in wanted.names:
        columns = (
            for_each_box(parsed[name], boxes, wanted.keypoints)
            for name in FIELD_FEATURES[KEYPOINTS]
        )
        points = tf.stack([tf.cast(column.values, tf.float32) for column in columns], -1)
        found[KEYPOINTS] = boxes.with_values(points)
    if MASKS in wanted.names:
        found |= _shapes(parsed, boxes)
    if not {KEYPOINTS, MASKS}.isdisjoint(wanted.names):
        found[FRAME] = whole_frames(boxes)
    return found


def _shapes(
    parsed: Mapping[str, tf.RaggedTensor], boxes: tf.RaggedTensor
) -> dict[str, tf.RaggedTensor]:
    """Return the polygons of each box, its runs, and the height and width of its image."""
    sizes = tf.gather(tf.stack([parsed[name] for name in SIDES], 1), boxes.value_rowids())
    x, y = (
        parsed[name].values
        for name in (features.IMAGE_OBJECT_POLYGON_X, features.IMAGE_OBJECT_POLYGON_Y)
    )
    lengths = parsed[features.IMAGE_OBJECT_POLYGON_POINTS].values
    every = tf.RaggedTensor.from_row_lengths(tf.stack([x, y], 1), lengths)
    counts = for_each_box(parsed[features.IMAGE_OBJECT_POLYGON_COUNT], boxes).values
    runs = parsed[features.IMAGE_OBJECT_MASK_RUNS].values
    of_runs = for_each_box(parsed[features.IMAGE_OBJECT_MASK_COUNT], boxes).values
    return {
        POLYGONS: boxes.with_values(tf.RaggedTensor.from_row_lengths(every, counts)),
        RUNS: boxes.with_values(tf.RaggedTensor.from_row_lengths(runs, of_runs)),
        SIZES: boxes.with_values(sizes),
    }


def _pixels(parsed: Mapping[str, tf.Tensor], boxes: tf.RaggedTensor) -> tf.Tensor:
    """Return the areas of boxes in pixels of their stored image, float32 [n]."""
    xmin, ymin, xmax, ymax = (parsed[name].values for name in features.BBOX)
    sides = (parsed[name] for name in SIDES)
    height, width = (tf.gather(tf.cast(side, tf.float32), boxes.value_rowids()) for side in sides)
    return (xmax - xmin) * width * (ymax - ymin) * height


def for_each_box(
    values: tf.RaggedTensor, boxes: tf.RaggedTensor, count: int = 0
) -> tf.RaggedTensor:
    """Return a feature that some records lack with values for each box, 0 in those.

    Each of the ``boxes`` (ragged [batch, (n)]) has ``count`` values; 0: one, without a dimension.

    Raises:
        tf.errors.InvalidArgumentError: a record has another number of values.
    """
    each = max(1, count)
    lengths, expected = values.row_lengths(), boxes.row_lengths() * each
    message = "a record's features image/object/… do not all have values for each box"
    are_whole = tf.reduce_all((lengths == expected) | (lengths == 0))
    found = tf.reshape(checked(values.values, are_whole, message), (-1, each))
    places = tf.where(tf.gather(lengths > 0, boxes.value_rowids()))
    whole = tf.scatter_nd(places, found, tf.stack([tf.size(boxes.values, tf.int64), each]))
    return boxes.with_values(whole if count else whole[:, 0])


def whole_frames(boxes: tf.RaggedTensor) -> tf.RaggedTensor:
    """Return the frames of boxes that were not moved: float32 [batch, (n), 4].

    A frame is the part of its stored image that an image shows: top, left, height, width as shares;
    a negative width is mirrored.
    """
    return boxes.with_values(tf.tile([[0.0, 0.0, 1.0, 1.0]], (tf.size(boxes.values), 1)))


def framed(frames: tf.Tensor, views: tf.Tensor) -> tf.Tensor:
    """Return the frames (float32 [n, 4]) of images of which only views are shown."""
    start, extent = frames[:, :2], frames[:, 2:]
    return tf.concat([start + extent * views[:, :2], extent * views[:, 2:]], 1)


def mirrored_frames(frames: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
    """Return the frames (float32 [n, 4]) with the chosen (bool [n]) ones mirrored."""
    top, left, height, width = tf.unstack(frames, axis=1)
    turned = tf.stack([top, left + width, height, -width], 1)
    return tf.where(chosen[:, None], turned, frames)


def drawn_keypoints(
    points: tf.Tensor, frames: tf.Tensor, flip: Sequence[int], scale: Sequence[float]
) -> tf.Tensor:
    """Return keypoints as the images show them; see :func:`shown_keypoints`."""
    shown = partial(shown_keypoints, flip=flip, scale=scale)
    found = tf.numpy_function(shown, [points, frames], tf.float32, stateful=False)
    return tf.ensure_shape(found, points.shape)


def drawn_masks(
    polygons: tf.RaggedTensor,
    runs: tf.RaggedTensor,
    sizes: tf.Tensor,
    frames: tf.Tensor,
    image_size: tuple[int, int],
) -> tf.Tensor:
    """Return the masks of objects, uint8 [n, height, width]; see :func:`object_masks`.

    Args:
        polygons: ragged float32 [n, (polygons), (points), 2]: x and y in shares of the image.
        runs: ragged int64 [n, (runs)], see :mod:`recordgen.subjects.masks`.
        sizes: int64 [n, 2], height and width of the images of the runs.
        frames: float32 [n, 4], what is shown of each image, see
            :func:`whole_frames`.
        image_size: height and width in pixels.
    """
    shapes = polygons.flat_values, polygons.values.row_lengths(), polygons.row_lengths()
    masks = tf.numpy_function(
        partial(object_masks, image_size=image_size),
        [*shapes, runs.values, runs.row_lengths(), sizes, frames],
        tf.uint8,
        stateful=False,
    )
    return tf.ensure_shape(masks, (None, *image_size))
