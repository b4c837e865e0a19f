"""The part of an image that is shown: the numbers by which both pixels and boxes move.

A *window* (int32 [..., 4]: top, left, height, width) is cut out of an image, in pixels of the
image. A *view* (float32 [..., 4], the same order) is the part of the stored image that the returned
image shows, in shares of the stored height and width: (0, 0, 1, 1) is the whole image. With bars
around the image, a view begins below 0 and is larger than 1.
"""

from __future__ import annotations

import tensorflow as tf

# "Going Deeper with Convolutions" (Szegedy et al., 2014), section 6: the window's share of the
# area, and its shape (width : height) relative to the target's.
_CROP_AREA = (0.08, 1.0)
_CROP_SHAPE = (3 / 4, 4 / 3)


def center_window(size: tf.Tensor, target: tuple[int, int]) -> tf.Tensor:
    """Return the largest centred window of the target's shape in images of ``size``."""
    wanted = tf.constant(target, tf.float32)
    scale = tf.reduce_min(floats(size) / wanted, -1, keepdims=True)
    inner = tf.cast(tf.round(scale * wanted), tf.int32)
    inner = tf.clip_by_value(inner, 1, size)
    return tf.concat([(size - inner) // 2, inner], -1)


def random_window(size: tf.Tensor, target: tuple[int, int], draw: tf.Tensor) -> tf.Tensor:
    """Return a window of random area, shape and place; ``draw``: float32 [..., 4] in [0, 1).

    Its shape is close to the target's, so that resizing stretches it by a third at most.
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
    """Return the window of the target that an image of ``size`` (int32 [..., 2]) fills.

    Returns:
        Top and left, and height and width (both int32 [..., 2]).
    """
    scale = tf.reduce_min(floats(target) / floats(size), -1, keepdims=True)
    inner = tf.clip_by_value(tf.cast(tf.round(floats(size) * scale), tf.int32), 1, target)
    return (tf.constant(target) - inner) // 2, inner


def scaled_window(window: tf.Tensor, ratio: int | tf.Tensor) -> tf.Tensor:
    """Return a window in pixels of the image as decoded at the scale 1 / ratio."""
    return tf.maximum(window // ratio, [0, 0, 1, 1])


def crop_view(window: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Return the view of a window of an image of ``size`` (int32 [..., 2])."""
    return floats(window) / floats(tf.concat([size, size], -1))


def fit_view(view: tf.Tensor, size: tf.Tensor, target: tuple[int, int]) -> tf.Tensor:
    """Return the view of a target into which an image of ``size`` that shows ``view`` is fitted."""
    start, inner = fitted_window(size, target)
    extent = view[..., 2:] * floats(target) / floats(inner)
    return tf.concat([view[..., :2] - extent * floats(start) / floats(target), extent], -1)


def floats(numbers: tf.Tensor | tuple[int, int]) -> tf.Tensor:
    """Cast numbers to float32."""
    return tf.cast(numbers, tf.float32)
