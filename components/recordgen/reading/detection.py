"""Records → boxes or masks, and their classes; all that is known of them moves with the pixels.

Corners are float32 [n, 4]: top, left, bottom, right, in shares of the image's height and width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from recordgen import features
from recordgen.access.boxes import (
    CORNERS,
    FIELD_FEATURES,
    SIDES,
    formatted,
    object_masks,
    shown_keypoints,
)
from recordgen.core.dataset.manifest import Dataset
from recordgen.errors import UsageError
from recordgen.features import AREA, FLAGS, IS_CROWD, KEYPOINTS, MASKS
from recordgen.reading.augmentation import floats
from recordgen.reading.options import RAGGED, ReadOptions
from recordgen.reading.parsing import checked, to_parsing_spec
from recordgen.reading.plan import ClassPlan
from recordgen.reading.targets import ClassNumbers
from recordgen.subjects.masks import IGNORED

#: Among the details of boxes: see :func:`whole_frames`; and what masks are drawn of.
FRAME, POLYGONS, RUNS, SIZES = "frame", "polygons", "runs", "sizes"

# Without it, rounding to float32 could make a whole box count as clipped.
_TOLERANCE = 1e-4


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


#: The coordinates and the class that pad a batch.
PADDING = -1

_Move: TypeAlias = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

# Rounding may put boxes slightly outside of their image. Beyond this limit, which the Object
# Detection API also has, they are probably in pixels.
_OUTSIDE = 0.1


class Boxes(NamedTuple):
    """The boxes of a batch.

    Attributes:
        corners: ragged float32 [batch, (n), 4], in the form above.
        numbers: ragged int64 [batch, (n)], their classes.
        details: what else is known of them, ragged [batch, (n), …], by name; with a frame if it
            moves with the image, see :func:`whole_frames`.
    """

    corners: tf.RaggedTensor
    numbers: tf.RaggedTensor
    details: Mapping[str, tf.RaggedTensor] = {}

    def seen_through(self, views: tf.Tensor) -> Boxes:
        """Return the boxes relative to the views (float32 [batch, 4]) of their images."""
        return self._changed(tf.gather(views, self._images()), moved, framed)

    def mirrored(self, chosen: tf.Tensor) -> Boxes:
        """Mirror the boxes of the chosen (bool [batch]) images left to right."""
        return self._changed(tf.gather(chosen, self._images()), mirrored, mirrored_frames)

    def _changed(self, how: tf.Tensor, move: _Move, move_frames: _Move) -> Boxes:
        """Move corners and frames, ``how`` says of each box by what."""
        details = dict(self.details)
        if FRAME in details:
            frames = details[FRAME]
            details[FRAME] = frames.with_values(move_frames(frames.values, how))
        corners = self.corners.with_values(move(self.corners.values, how))
        return self._replace(corners=corners, details=details)

    def clipped(self, min_visible: float) -> Boxes:
        """Clip boxes to their images; drop boxes with less than ``min_visible`` of their area."""
        visible = self.only(are_visible(self.corners.values, min_visible))
        corners = clipped(visible.corners.values)
        return visible._replace(corners=visible.corners.with_values(corners))

    def without_crowds(self) -> Boxes:
        """Drop the boxes around crowds, and the flags of the others."""
        found = self.only(self.details[IS_CROWD].values == 0)
        details = {name: value for name, value in found.details.items() if name != IS_CROWD}
        return found._replace(details=details)

    def largest(self, most: int) -> Boxes:
        """Keep the largest boxes of each image, in their order."""
        return self.only(are_largest(self.corners.values, self._images(), most))

    def _images(self) -> tf.Tensor:
        """Return the index of each box's image (int64 [n])."""
        return self.numbers.value_rowids()

    def only(self, chosen: tf.Tensor) -> Boxes:
        """Keep the chosen (bool [n]) boxes."""
        kept = tf.where(chosen)[:, 0]
        # One partition for both; tf.ragged.boolean_mask would build one for each.
        rows = tf.RaggedTensor.from_value_rowids(
            tf.gather(self.numbers.values, kept),
            tf.gather(self._images(), kept),
            self.numbers.nrows(),
            validate=False,
        )
        details = {
            name: rows.with_values(tf.gather(value.values, kept))
            for name, value in self.details.items()
        }
        return Boxes(rows.with_values(tf.gather(self.corners.values, kept)), rows, details)


class BoxTargets:
    """How boxes are read; see :class:`recordgen.reading.options.ReadOptions`."""

    def __init__(
        self, classes: ClassPlan, options: ReadOptions, dataset: Dataset | None = None
    ) -> None:
        text, label = features.IMAGE_OBJECT_TEXT, features.IMAGE_OBJECT_LABEL
        self.numbers = ClassNumbers(classes, text=text, label=label)
        self._options = options
        self._fields = tuple(options.box_form.fields)
        self._keypoints = {} if dataset is None else dataset.keypoints
        if KEYPOINTS in self._fields and not self._keypoints:
            raise UsageError("boxes: the examples have no keypoints; remove them from fields")
        objects = () if dataset is None else dataset.objects
        has_crowds = features.IMAGE_OBJECT_IS_CROWD in objects
        self._skips_crowds = has_crowds and IS_CROWD not in self._fields
        self._read_fields = (*self._fields, IS_CROWD) if self._skips_crowds else self._fields

    @property
    def spec(self) -> dict[str, Any]:
        """The features to parse, as lists."""
        known = {**features.OBJECT_DETECTION, **features.OBJECTS}
        fields = [feature for name in self._read_fields for feature in FIELD_FEATURES[name]]
        wanted = (*CORNERS, *self.numbers.names, *fields)
        return to_parsing_spec({name: spec for name, spec in known.items() if name in wanted})

    def stored(self, parsed: Mapping[str, tf.RaggedTensor]) -> Boxes:
        """Return the boxes of a batch of parsed records, as they are stored.

        Raises:
            tf.errors.InvalidArgumentError: a box lacks a coordinate or its class, lies outside of
                its image, or its class is outside the vocabulary.
        """
        first, names = parsed[CORNERS[0]], (*CORNERS, *self.numbers.names)
        are_whole = [
            tf.reduce_all(parsed[name].row_lengths() == first.row_lengths()) for name in names
        ]
        message = "a record's features image/object/… do not all have one value for each box"
        own = {name: parsed[name] for name in names}
        own = checked(own, tf.reduce_all(are_whole), message)
        corners = tf.stack([own[name].values for name in CORNERS], 1)
        numbers = self.numbers.numbers(own)
        is_inside = tf.reduce_all((corners >= -_OUTSIDE) & (corners <= 1 + _OUTSIDE), 1)
        message = (
            "boxes must be in shares of their image, from 0 to 1; divide pixels by its height and "
            "width (got ymin, xmin, ymax, xmax):"
        )
        outside = tf.boolean_mask(corners, ~is_inside)
        corners = checked(corners, tf.reduce_all(is_inside), message, outside)
        labels = first.with_values(numbers)
        details = self._stored_fields(parsed, labels)
        # Classes that are not read have negative numbers.
        found = Boxes(first.with_values(corners), labels, details).only(numbers >= 0)
        return found.without_crowds() if self._skips_crowds else found

    def _stored_fields(
        self, parsed: Mapping[str, tf.RaggedTensor], boxes: tf.RaggedTensor
    ) -> dict[str, tf.RaggedTensor]:
        """Return the fields of each box of parsed records, as they are stored.

        Returns:
            Flags and areas [batch, (n)]; ``keypoints`` float32 [batch, (n), keypoints, 3]; of
            masks, what they are drawn of.
        """
        names = self._read_fields
        found = {
            name: for_each_box(parsed[FIELD_FEATURES[name][0]], boxes)
            for name in names
            if name in FLAGS
        }
        if AREA in names:
            stored = for_each_box(parsed[features.IMAGE_OBJECT_AREA], boxes).values
            found[AREA] = boxes.with_values(tf.where(stored > 0, stored, _pixels(parsed, boxes)))
        if KEYPOINTS in names:
            count = len(self._keypoints.get("names", ()))
            columns = (
                for_each_box(parsed[name], boxes, count) for name in FIELD_FEATURES[KEYPOINTS]
            )
            points = tf.stack([tf.cast(column.values, tf.float32) for column in columns], -1)
            found[KEYPOINTS] = boxes.with_values(points)
        if MASKS in names:
            found |= _shapes(parsed, boxes)
        if not {KEYPOINTS, MASKS}.isdisjoint(names):
            found[FRAME] = whole_frames(boxes)
        return found

    def to_batch(self, found: Boxes, batch_size: int | None) -> dict[str, Any]:
        """Return the boxes of a batch, relative to the returned images.

        Returns:
            ``boxes``: float32 [batch, n, 4]; ``labels``: int64 [batch, n]; ``count``: int64
            [batch], the number of boxes; n is ragged, or the same for all images and padded. And
            the wanted fields: flags int64 [batch, n]; ``area`` float32 [batch, n]; ``keypoints``
            float32 [batch, n, keypoints, 3]: x and y in the unit of the boxes, and visibility;
            ``masks`` uint8 [batch, n, height, width], 0 or 1, padded with 0.
        """
        options = self._options
        found = found.clipped(options.box_form.min_visible)
        if options.max_boxes is not None:
            found = found.largest(options.max_boxes)
        corners, labels, _ = found
        count = tf.ensure_shape(labels.row_lengths(), (batch_size,))
        sides = tf.unstack(corners.values, axis=1)
        numbers = formatted(sides, options.box_form.format, options.image_size)
        in_format = corners.with_values(tf.stack(numbers, 1))
        parts = {"boxes": in_format, "labels": labels, **self._details(found)}
        if options.padding == RAGGED:
            return {**parts, "count": count}
        most = options.max_boxes
        dense = {
            name: tf.ensure_shape(
                padded(part, 0 if name == MASKS else PADDING, most),
                (batch_size, most, *part.shape[2:]),
            )
            for name, part in parts.items()
        }
        return {**dense, "count": count}

    def _details(self, found: Boxes) -> dict[str, tf.RaggedTensor]:
        """Return the wanted fields of boxes as the images show them."""
        names = (name for name in self._fields if name != MASKS)
        details = {name: found.details[name] for name in names}
        if MASKS in self._fields:
            polygons, runs, sizes, frames = (
                found.details[name].values for name in (POLYGONS, RUNS, SIZES, FRAME)
            )
            masks = drawn_masks(polygons, runs, sizes, frames, self._options.image_size)
            details[MASKS] = found.numbers.with_values(masks)
        if KEYPOINTS in details:
            height, width = self._options.image_size
            is_share = self._options.box_form.format.startswith("rel_")
            details[KEYPOINTS] = found.numbers.with_values(
                drawn_keypoints(
                    details[KEYPOINTS].values,
                    found.details[FRAME].values,
                    self._keypoints.get("flip_idx", ()),
                    (1.0, 1.0) if is_share else (float(width), float(height)),
                )
            )
        return {name: details[name] for name in self._fields}


def padded(values: tf.RaggedTensor, padding: str | int, most: int | None = None) -> tf.Tensor:
    """Return values [batch, (n), …] as a dense tensor [batch, most or the largest n, …]."""
    padding = tf.constant(padding, values.dtype)
    dense = values.to_tensor(padding, shape=[None, most, *values.shape[2:]])
    # A batch without any value has room for one: losses compute a maximum over this axis.
    missing = tf.maximum(1 - tf.shape(dense)[1], 0)
    paddings = [[0, 0], [0, missing], *[[0, 0]] * (dense.shape.rank - 2)]
    return tf.pad(dense, paddings, constant_values=padding)


# --- masks of class numbers -----------------------------------------------------------------------


class Masks(NamedTuple):
    """The masks of a batch, which are decoded last: cached ones stay small.

    Attributes:
        encoded: string [batch], PNGs; empty for an image without a mask.
        views: float32 [batch, 4], what is shown of each, see :mod:`recordgen.reading.augmentation`.
        are_mirrored: bool [batch], whether that is mirrored left to right.
    """

    encoded: tf.Tensor
    views: tf.Tensor
    are_mirrored: tf.Tensor

    def seen_through(self, views: tf.Tensor) -> Masks:
        """Return the masks as their images are seen through views (float32 [batch, 4])."""
        return self._replace(views=framed(self.views, views))

    def mirrored(self, chosen: tf.Tensor) -> Masks:
        """Mirror the masks of the chosen (bool [batch]) images left to right."""
        return self._replace(are_mirrored=self.are_mirrored ^ chosen)

    def decoded(self, size: tuple[int, int]) -> tf.Tensor:
        """Return the class numbers of pixels (uint8 [batch, height, width]).

        A pixel has the class of the nearest pixel of the mask; one beyond the mask is ignored.
        """
        spec = tf.TensorSpec(size, tf.uint8)
        return tf.map_fn(lambda item: _decoded(item, size), self, fn_output_signature=spec)


def whole_masks(encoded: tf.Tensor) -> Masks:
    """Return masks (string [batch]) as they are stored."""
    count = tf.shape(encoded)[0]
    views = tf.tile([[0.0, 0.0, 1.0, 1.0]], [count, 1])
    return Masks(encoded, views, tf.zeros([count], tf.bool))


class MaskTargets:
    """How masks are read; see :class:`recordgen.reading.options.ReadOptions`."""

    def __init__(self, classes: ClassPlan, options: ReadOptions) -> None:
        text, label = features.IMAGE_MASK_TEXT, features.IMAGE_MASK_LABEL
        self.numbers = ClassNumbers(classes, text=text, label=label)
        self._size = options.image_size

    @property
    def spec(self) -> dict[str, Any]:
        """The feature to parse."""
        return {features.IMAGE_MASK_ENCODED: tf.io.FixedLenFeature((), tf.string, "")}

    def stored(self, parsed: Mapping[str, tf.Tensor]) -> Masks:
        """Return the masks of a batch of parsed records, as they are stored."""
        return whole_masks(parsed[features.IMAGE_MASK_ENCODED])

    def to_batch(self, found: Masks, batch_size: int | None) -> tf.Tensor:
        """Return the masks of a batch: uint8 [batch, height, width], 255 for no class."""
        return tf.ensure_shape(found.decoded(self._size), (batch_size, *self._size))


def _decoded(item: Masks, size: tuple[int, int]) -> tf.Tensor:
    encoded, view, is_mirrored = item

    def shown() -> tf.Tensor:
        mask = tf.io.decode_png(encoded, channels=1)[:, :, 0]
        whole = tf.shape(mask)
        down, rows_inside = _nearest(view[0], view[2], whole[0], size[0])
        across, columns_inside = _nearest(view[1], view[3], whole[1], size[1])
        pixels = tf.gather(tf.gather(mask, down), across, axis=1)
        is_inside = rows_inside[:, None] & columns_inside[None]
        pixels = tf.where(is_inside, pixels, tf.constant(IGNORED, tf.uint8))
        return tf.cond(is_mirrored, lambda: tf.reverse(pixels, [1]), lambda: pixels)

    def missing() -> tf.Tensor:
        return tf.fill(size, tf.constant(IGNORED, tf.uint8))

    found = tf.cond(tf.strings.length(encoded) > 0, shown, missing)
    return tf.ensure_shape(found, size)


def _nearest(
    start: tf.Tensor, extent: tf.Tensor, whole: tf.Tensor, count: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the pixel nearest to each of ``count`` along a side, and whether it is inside."""
    shares = start + (tf.range(count, dtype=tf.float32) + 0.5) / count * extent
    at = tf.cast(tf.floor(shares * floats(whole)), tf.int32)
    return tf.clip_by_value(at, 0, whole - 1), (at >= 0) & (at < whole)
