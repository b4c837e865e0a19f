"""The geometry of boxes: views, clipping, and formats.

Corners are float32 [n, 4]: top, left, bottom, right, in shares of the image's height and width.
"""

from __future__ import annotations

import tensorflow as tf

# Without it, rounding to float32 could make a whole box count as clipped.
_TOLERANCE = 1e-4


def moved(corners: tf.Tensor, views: tf.Tensor) -> tf.Tensor:
    """Return boxes relative to the views of their images; parts may lie outside of 0..1.

    If the right half is shown, a box from 0.5 to 0.75 then lies from 0 to 0.5. ``views`` (float32
    [n, 4], see :mod:`recordgen.reading.windows`) has one view for each box.
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
