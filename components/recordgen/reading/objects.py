"""What is known of boxes besides corners and classes: flags, areas, keypoints, masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.core.rows.details import KEYPOINT
from recordgen.errors import UsageError
from recordgen.features import AREA, FLAGS, KEYPOINTS, MASKS

#: Among the details of boxes: see :func:`whole_frames`; and what masks are drawn of.
FRAME, POLYGONS, RUNS, SIZES = "frame", "polygons", "runs", "sizes"

# Flags by the name of their feature.
_FLAGS = dict(zip(FLAGS, features.OBJECT_FLAGS, strict=True))
_MASK_NAMES = (
    features.IMAGE_HEIGHT,
    features.IMAGE_WIDTH,
    features.IMAGE_OBJECT_POLYGON_COUNT,
    features.IMAGE_OBJECT_POLYGON_POINTS,
    features.IMAGE_OBJECT_POLYGON_X,
    features.IMAGE_OBJECT_POLYGON_Y,
    features.IMAGE_OBJECT_MASK_COUNT,
    features.IMAGE_OBJECT_MASK_RUNS,
)

_OUTSIDE = 1e-4
_KEYPOINT_NAMES = (
    features.IMAGE_OBJECT_KEYPOINT_X,
    features.IMAGE_OBJECT_KEYPOINT_Y,
    features.IMAGE_OBJECT_KEYPOINT_VISIBILITY,
)


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
        skips = features.IMAGE_OBJECT_IS_CROWD in objects and "is_crowd" not in names
        count = len(keypoints.get("names", ()))
        return cls(tuple(names), count, tuple(keypoints.get("flip_idx", ())), skips)

    @property
    def features(self) -> Sequence[str]:
        """The features to parse."""
        found = [_FLAGS[name] for name in self.names if name in _FLAGS]
        found += [features.IMAGE_OBJECT_IS_CROWD] if self.skips_crowds else []
        if AREA in self.names:
            found += [features.IMAGE_OBJECT_AREA, features.IMAGE_HEIGHT, features.IMAGE_WIDTH]
        found += _KEYPOINT_NAMES if KEYPOINTS in self.names else ()
        return [*found, *(_MASK_NAMES if MASKS in self.names else ())]


def fields_of(
    parsed: Mapping[str, tf.RaggedTensor], boxes: tf.RaggedTensor, wanted: ObjectFields
) -> dict[str, tf.RaggedTensor]:
    """Return the fields of each box of parsed records, as they are stored.

    Returns:
        Flags and areas [batch, (n)]; ``keypoints`` float32 [batch, (n), keypoints, 3]; of masks,
        what they are drawn of.
    """
    found = {
        name: for_each_box(parsed[_FLAGS[name]], boxes) for name in wanted.names if name in FLAGS
    }
    if AREA in wanted.names:
        own = _pixels(parsed, boxes)
        found[AREA] = for_each_box(parsed[features.IMAGE_OBJECT_AREA], boxes)
        found[AREA] = boxes.with_values(tf.where(found[AREA].values > 0, found[AREA].values, own))
    if wanted.skips_crowds:
        found["is_crowd"] = for_each_box(parsed[features.IMAGE_OBJECT_IS_CROWD], boxes)
    if KEYPOINTS in wanted.names:
        columns = (for_each_box(parsed[name], boxes, wanted.keypoints) for name in _KEYPOINT_NAMES)
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
    sides = [parsed[name] for name in (features.IMAGE_HEIGHT, features.IMAGE_WIDTH)]
    sizes = tf.gather(tf.stack(sides, 1), boxes.value_rowids())
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
    sides = (parsed[name] for name in (features.IMAGE_HEIGHT, features.IMAGE_WIDTH))
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
    with tf.control_dependencies([tf.debugging.Assert(are_whole, [message])]):
        rows = boxes.value_rowids()
    index = boxes.row_splits.dtype  # int32 or int64, as the features were parsed
    place = tf.range(tf.size(rows, index)) - tf.gather(boxes.row_starts(), rows)
    first = tf.gather(values.row_starts(), rows) + place * each
    end = tf.size(values.values, index)
    first = tf.where(tf.gather(lengths, rows) > 0, first, end)
    flat = tf.concat([values.values, tf.zeros([each], values.dtype)], 0)
    if not count:
        return boxes.with_values(tf.gather(flat, first))
    return boxes.with_values(tf.gather(flat, first[:, None] + tf.range(each, dtype=index)))


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


def shown_keypoints(
    points: tf.Tensor, frames: tf.Tensor, flip: Sequence[int], scale: Sequence[float]
) -> tf.Tensor:
    """Return keypoints as the images show them; 0, 0, 0 if they are outside or not labelled.

    Points (float32 [n, keypoints, 3]: x, y, visibility) are in shares of the stored image,
    ``flip`` has for each the one that it becomes in a mirrored image, ``scale`` width and height
    in the unit of the boxes.
    """
    if flip:
        is_mirrored = frames[:, 3] < 0
        points = tf.where(is_mirrored[:, None, None], tf.gather(points, list(flip), axis=1), points)
    starts, extents = frames[:, None, 1::-1], frames[:, None, :1:-1]
    places = (points[..., :2] - starts) / extents
    is_in = tf.reduce_all((places >= -_OUTSIDE) & (places <= 1 + _OUTSIDE), -1)
    is_shown = is_in & tf.reduce_any(points != 0, -1)
    found = tf.concat([tf.clip_by_value(places, 0.0, 1.0) * scale, points[..., KEYPOINT - 1 :]], -1)
    return tf.where(is_shown[..., None], found, 0.0)


def drawn_masks(
    polygons: tf.RaggedTensor,
    runs: tf.RaggedTensor,
    sizes: tf.Tensor,
    frames: tf.Tensor,
    image_size: tuple[int, int],
) -> tf.Tensor:
    """Return the masks of objects, uint8 [n, height, width]: 1 where an object is.

    A pixel belongs to a polygon if its center does; a polygon that crosses itself has holes.

    Args:
        polygons: ragged float32 [n, (polygons), (points), 2]: x and y in shares of the image.
        runs: ragged int64 [n, (runs)], see :mod:`recordgen.core.records.run_lengths`.
        sizes: int64 [n, 2], height and width of the images of the runs.
        frames: float32 [n, 4], what is shown of each image, see
            :func:`recordgen.reading.objects.whole_frames`.
        image_size: height and width in pixels.
    """
    filled = _filled(polygons, frames, image_size)
    return tf.maximum(filled, _sampled(runs, sizes, frames, image_size))


def _filled(polygons: tf.RaggedTensor, frames: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    height, width = image_size
    every = polygons.values  # [m, (points), 2]
    objects, of_point = polygons.value_rowids(), every.value_rowids()
    frame = tf.gather(frames, tf.gather(objects, of_point))
    points = (every.values - frame[:, 1::-1]) / frame[:, :1:-1] * (float(width), float(height))
    # Each point is joined to the next one, and the last to the first.
    after = tf.range(1, tf.size(of_point, tf.int64) + 1)
    is_last = after == tf.gather(every.row_limits(), of_point)
    others = tf.gather(points, tf.where(is_last, tf.gather(every.row_starts(), of_point), after))
    (x0, y0), (x1, y1) = (
        tf.unstack(points[..., None], axis=1),
        tf.unstack(others[..., None], axis=1),
    )
    centers = tf.range(height, dtype=tf.float32) + 0.5
    crosses = (y0 <= centers) != (y1 <= centers)  # [points, height]
    x = x0 + (x1 - x0) * tf.math.divide_no_nan(centers - y0, y1 - y0)
    first = tf.cast(tf.clip_by_value(tf.math.ceil(x - 0.5), 0.0, float(width)), tf.int64)
    at = tf.where(crosses)
    places = tf.stack([tf.gather(of_point, at[:, 0]), at[:, 1], tf.gather_nd(first, at)], 1)
    shape = tf.stack([every.nrows(), tf.cast(height, tf.int64), tf.cast(width + 1, tf.int64)])
    # From each edge on to the right, inside and outside change places.
    changes = tf.scatter_nd(places, tf.ones(tf.shape(places)[:1], tf.int32), shape)
    inside = tf.cast(tf.cumsum(changes, 2)[..., :width] % 2, tf.uint8)
    return tf.math.unsorted_segment_max(inside, objects, polygons.nrows())


def _sampled(
    runs: tf.RaggedTensor, sizes: tf.Tensor, frames: tf.Tensor, image_size: tuple[int, int]
) -> tf.Tensor:
    """Return the nearest pixel of each pixel that is shown."""
    height, width = image_size
    there = tf.where(runs.row_lengths() > 0)
    chosen = there[:, 0]
    frame, stored = tf.gather(frames, chosen), tf.gather(sizes, chosen)

    def places(axis: int, side: int) -> tf.Tensor:
        shares = (tf.range(side, dtype=tf.float32) + 0.5) / side
        shown = frame[:, axis, None] + frame[:, 2 + axis, None] * shares
        return tf.cast(tf.floor(shown * tf.cast(stored[:, axis, None], tf.float32)), tf.int64)

    rows, columns = places(0, height)[:, :, None], places(1, width)[:, None, :]
    high, wide = stored[:, 0, None, None], stored[:, 1, None, None]
    is_there = (rows >= 0) & (rows < high) & (columns >= 0) & (columns < wide)
    flat = tf.reshape(tf.where(is_there, columns * high + rows, 0), (-1, height * width))
    ends = tf.cumsum(tf.gather(runs, chosen).to_tensor(), 1)
    # One more, since a batch may have no runs at all; no pixel is behind it.
    ends = tf.pad(ends, ((0, 0), (0, 1)), constant_values=tf.int64.max)
    values = tf.reshape(tf.searchsorted(ends, flat, "right") % 2, (-1, height, width))
    found = tf.cast(tf.where(is_there, values, 0), tf.uint8)
    shape = tf.stack([runs.nrows(), tf.cast(height, tf.int64), tf.cast(width, tf.int64)])
    return tf.scatter_nd(there, found, shape)
