"""The part of an image that is shown: the numbers by which pixels and boxes move alike.

A *window* (int32 [..., 4]: top, left, height, width) is cut out of an image, in its pixels. A
*view* (float32 [..., 4], the same order) is the part of the stored image that the returned one
shows, in shares of its height and width: (0, 0, 1, 1) is all of it. With bars around the image, a
view begins below 0 and is larger than 1.
"""

from __future__ import annotations

import tensorflow as tf

# "Going Deeper with Convolutions" (Szegedy et al., 2014), section 6: the window's share of the
# area, and its shape (width : height) against the image's own.
_CROP_AREA = (0.08, 1.0)
_CROP_SHAPE = (3 / 4, 4 / 3)


def center_window(size: tf.Tensor, target: tuple[int, int]) -> tf.Tensor:
    """Return the largest window of the target's shape from the middle of images of a size."""
    wanted = tf.constant(target, tf.float32)
    scale = tf.reduce_min(floats(size) / wanted, -1, keepdims=True)
    inner = tf.cast(tf.round(scale * wanted), tf.int32)
    inner = tf.clip_by_value(inner, 1, size)
    return tf.concat([(size - inner) // 2, inner], -1)


def random_window(size: tf.Tensor, target: tuple[int, int], draw: tf.Tensor) -> tf.Tensor:
    """Return a window of random area, shape and place; ``draw``: float32 [..., 4] in [0, 1).

    Its shape is close to the target's, so that resizing stretches by a third at most.
    """
    area = (_CROP_AREA[0] + draw[..., 0] * (_CROP_AREA[1] - _CROP_AREA[0])) * tf.reduce_prod(
        floats(size), -1
    )
    low, high = tf.math.log(_CROP_SHAPE[0]), tf.math.log(_CROP_SHAPE[1])
    shape = tf.exp(low + draw[..., 1] * (high - low)) * (target[1] / target[0])
    inner = tf.stack([tf.sqrt(area / shape), tf.sqrt(area * shape)], -1)
    inner = tf.clip_by_value(tf.cast(tf.round(inner), tf.int32), 1, size)
    before = tf.cast(draw[..., 2:] * floats(size - inner + 1), tf.int32)
    return tf.concat([tf.minimum(before, size - inner), inner], -1)


def fitted_window(size: tf.Tensor, target: tuple[int, int]) -> tuple[tf.Tensor, tf.Tensor]:
    """Return where an image of ``size`` (int32 [..., 2]) lies when it is fitted into the target.

    Returns:
        Top and left, and height and width (both int32 [..., 2]).
    """
    scale = tf.reduce_min(floats(target) / floats(size), -1, keepdims=True)
    inner = tf.clip_by_value(tf.cast(tf.round(floats(size) * scale), tf.int32), 1, target)
    return (tf.constant(target) - inner) // 2, inner


def scaled_window(window: tf.Tensor, ratio: int | tf.Tensor) -> tf.Tensor:
    """Return a window in pixels of the image that is decoded at the scale 1 / ratio."""
    return tf.maximum(window // ratio, [0, 0, 1, 1])


def crop_view(window: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Return the view of a window of an image of ``size`` (int32 [..., 2])."""
    return floats(window) / floats(tf.concat([size, size], -1))


def fit_view(view: tf.Tensor, size: tf.Tensor, target: tuple[int, int]) -> tf.Tensor:
    """Return the view of a target into which pixels (int32 [..., 2]) that show ``view`` fit."""
    start, inner = fitted_window(size, target)
    extent = view[..., 2:] * floats(target) / floats(inner)
    return tf.concat([view[..., :2] - extent * floats(start) / floats(target), extent], -1)


def floats(numbers: tf.Tensor | tuple[int, int]) -> tf.Tensor:
    """Return numbers as float32."""
    return tf.cast(numbers, tf.float32)
