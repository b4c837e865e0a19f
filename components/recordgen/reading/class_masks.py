"""Records → masks of class numbers; the masks move with the pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from recordgen import features
from recordgen.reading.augmentation import floats
from recordgen.reading.detection import framed
from recordgen.reading.options import ReadOptions
from recordgen.reading.plan import ClassPlan
from recordgen.reading.targets import ClassNumbers
from recordgen.subjects.masks import IGNORED


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
