"""The geometry of boxes: how they move with the pixels, what is left of them, and their formats.

Corners are float32 [n, 4]: top, left, bottom, right, in shares of the image's height and width.
"""

from __future__ import annotations

import tensorflow as tf

# A box that is whole must count as whole after its shares were computed in float32.
_TOLERANCE = 1e-4


def moved(corners: tf.Tensor, views: tf.Tensor) -> tf.Tensor:
    """Return where boxes lie in what is shown of their images; parts may lie outside of 0..1.

    The right half is shown: a box from 0.5 to 0.75 lies there from 0 to 0.5.

    Args:
        corners: float32 [n, 4]
        views: float32 [n, 4], of each box's image, see :mod:`recordgen.reading.windows`.
    """
    start, extent = views[:, :2], views[:, 2:]
    return (corners - tf.concat([start, start], 1)) / tf.concat([extent, extent], 1)


def mirrored(corners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
    """Mirror the chosen (bool [n]) boxes left to right."""
    top, left, bottom, right = tf.unstack(corners, axis=1)
    turned = tf.stack([top, 1 - right, bottom, 1 - left], 1)
    return tf.where(chosen[:, None], turned, corners)


def clipped(corners: tf.Tensor) -> tf.Tensor:
    """Cut off what lies outside of the image."""
    return tf.clip_by_value(corners, 0.0, 1.0)


def are_visible(corners: tf.Tensor, least: float) -> tf.Tensor:
    """Say (bool [n]) of which boxes at least a share of the area lies inside the image.

    A box without area is never visible.
    """
    inside = _areas(clipped(corners))
    return (inside > 0) & (inside >= (least - _TOLERANCE) * _areas(corners))


def are_largest(corners: tf.Tensor, images: tf.Tensor, most: int) -> tf.Tensor:
    """Say (bool [n]) which boxes are among the largest of their image; of equal ones the first are.

    Args:
        corners: float32 [n, 4]
        images: int64 [n], the number of each box's image, growing.
        most: how many of each image.
    """
    by_size = tf.argsort(-_areas(corners), stable=True)
    # Sorted by image, and within each by size.
    order = tf.gather(by_size, tf.argsort(tf.gather(images, by_size), stable=True))
    rank = tf.range(tf.size(images)) - tf.searchsorted(images, images)
    return tf.scatter_nd(order[:, None], rank < most, tf.shape(images))


def formatted(corners: tf.Tensor, box_format: str, image_size: tuple[int, int]) -> tf.Tensor:
    """Return boxes as :data:`recordgen.reading.options.BOX_FORMATS` names it.

    Args:
        corners: float32 [n, 4]
        box_format: with ``rel_`` in shares of the image, without in its pixels.
        image_size: height and width, in pixels.
    """
    top, left, bottom, right = tf.unstack(corners, axis=1)
    if not box_format.startswith("rel_"):
        height, width = image_size
        top, left, bottom, right = top * height, left * width, bottom * height, right * width
    across, down = right - left, bottom - top
    columns = {
        "xyxy": (left, top, right, bottom),
        "yxyx": (top, left, bottom, right),
        "xywh": (left, top, across, down),
        "center_xywh": (left + across / 2, top + down / 2, across, down),
    }
    return tf.stack(columns[box_format.removeprefix("rel_")], 1)


def _areas(corners: tf.Tensor) -> tf.Tensor:
    """Return areas (float32 [n]) in shares of the image's; 0 where corners lie on a wrong side."""
    sides = tf.maximum(corners[:, 2:] - corners[:, :2], 0.0)
    return sides[:, 0] * sides[:, 1]
