"""Records → boxes and their classes; the boxes move with the pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from recordgen import features
from recordgen.access.boxes import CORNERS, formatted
from recordgen.core.dataset.manifest import Dataset
from recordgen.features import IS_CROWD, KEYPOINTS, MASKS
from recordgen.reading.classes import ClassPlan
from recordgen.reading.objects import (
    FRAME,
    POLYGONS,
    RUNS,
    SIZES,
    ObjectFields,
    are_largest,
    are_visible,
    clipped,
    drawn_keypoints,
    drawn_masks,
    fields_of,
    framed,
    mirrored,
    mirrored_frames,
    moved,
)
from recordgen.reading.options import RAGGED, ReadOptions
from recordgen.reading.parsing import checked, to_parsing_spec
from recordgen.reading.targets import ClassNumbers

#: The coordinates and the class that pad a batch.
PADDING = -1

_Move: TypeAlias = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

# Rounding may put boxes slightly outside of their image. Beyond this limit, which the Object
# Detection API also has, they are probably in pixels.
_OUTSIDE = 0.1


class Boxes(NamedTuple):
    """The boxes of a batch.

    Attributes:
        corners: ragged float32 [batch, (n), 4], see :mod:`recordgen.reading.objects`.
        numbers: ragged int64 [batch, (n)], their classes.
        details: what else is known of them, ragged [batch, (n), …], by name; with a frame if it
            moves with the image, see :func:`recordgen.reading.objects.whole_frames`.
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
        known = ((), {}) if dataset is None else (dataset.objects, dataset.keypoints)
        self.fields = ObjectFields.of(options.box_form.fields, *known)

    @property
    def spec(self) -> dict[str, Any]:
        """The features to parse, as lists."""
        known = {**features.OBJECT_DETECTION, **features.OBJECTS}
        wanted = (*CORNERS, *self.numbers.names, *self.fields.features)
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
        details = fields_of(parsed, labels, self.fields)
        # Classes that are not read have negative numbers.
        found = Boxes(first.with_values(corners), labels, details).only(numbers >= 0)
        return found.without_crowds() if self.fields.skips_crowds else found

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
        names = (name for name in self.fields.names if name != MASKS)
        details = {name: found.details[name] for name in names}
        if MASKS in self.fields.names:
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
                    self.fields.flip,
                    (1.0, 1.0) if is_share else (float(width), float(height)),
                )
            )
        return {name: details[name] for name in self.fields.names}


def padded(values: tf.RaggedTensor, padding: str | int, most: int | None = None) -> tf.Tensor:
    """Return values [batch, (n), …] as a dense tensor [batch, most or the largest n, …]."""
    padding = tf.constant(padding, values.dtype)
    dense = values.to_tensor(padding, shape=[None, most, *values.shape[2:]])
    # A batch without any value has room for one: losses compute a maximum over this axis.
    missing = tf.maximum(1 - tf.shape(dense)[1], 0)
    paddings = [[0, 0], [0, missing], *[[0, 0]] * (dense.shape.rank - 2)]
    return tf.pad(dense, paddings, constant_values=padding)
