"""Random changes of batches of images. All randomness comes from the given seed."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from recordgen.reading.options import Augmentation
from recordgen.reading.windows import floats

# Rec. 601 luma, and the YIQ axes around which a hue turns.
_GRAY = (0.299, 0.587, 0.114)
_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])


def augment(images: tf.Tensor, how: Augmentation, seed: tf.Tensor) -> tf.Tensor:
    """Change each image of a batch in its own way.

    Args:
        images: float32 [batch, height, width, 3] in [0, 1].
        how: what may change and how much.
        seed: int64 [2]; the same seed changes the same batch in the same way.

    Returns:
        float32 [batch, height, width, 3] in [0, 1].
    """
    draws = _draws(tf.shape(images)[0], seed)
    if how.crop:
        images = _cropped(images, *_crop(how, draws))
    if how.flip:
        images = _mirrored(images, _is_mirrored(draws))
    if how.brightness or how.contrast or how.saturation or how.hue:
        images = _recoloured(images, how, 2 * draws - 1)
    return images


def augmented_views(
    count: tf.Tensor, size: tf.Tensor, how: Augmentation, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return how :func:`augment` moves the content of ``count`` images of a size, by the same seed.

    Returns:
        The part of each image that is shown (float32 [batch, 4], see
        :mod:`recordgen.reading.windows`), and whether it is mirrored afterwards (bool [batch]).
    """
    draws = _draws(count, seed)
    start, kept = _crop(how, draws)
    # The window's first and last pixels are sampled at their centres and fill the outer pixels.
    sides = floats(size)
    start = (start * (sides - 1) + (1 - kept) / 2) / sides
    return tf.concat([start, kept], 1), _is_mirrored(draws) & how.flip


def _draws(count: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Return the random numbers of each image (float32 [count, 9] in [0, 1))."""
    return tf.random.stateless_uniform((count, 9), seed)


def _crop(how: Augmentation, draws: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return where windows start and how large they are (both float32 [batch, 2]), in shares."""
    kept = 1 - how.crop * draws[:, 4:6]
    return (1 - kept) * draws[:, 6:8], kept


def _is_mirrored(draws: tf.Tensor) -> tf.Tensor:
    return draws[:, 8] < 0.5


def _cropped(images: tf.Tensor, start: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """Resize a window of each image to the image's size."""
    size = tf.shape(images)[1:3]
    # Boxes end at the centre of the last pixel: [0, 0, 1, 1] is the whole image.
    cropped = tf.image.crop_and_resize(
        images, tf.concat([start, start + kept], 1), tf.range(tf.shape(images)[0]), size
    )
    return tf.ensure_shape(cropped, images.shape)


def _mirrored(images: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
    """Mirror the chosen (bool [batch]) images left to right, and touch only those."""
    as_is, turned = tf.where(~chosen)[:, 0], tf.where(chosen)[:, 0]
    rows = tf.reshape(tf.gather(images, turned), (-1, *images.shape[2:]))
    mirrored = tf.reshape(tf.reverse(rows, [1]), (-1, *images.shape[1:]))
    parts = [tf.gather(images, as_is), mirrored]
    places = [tf.cast(as_is, tf.int32), tf.cast(turned, tf.int32)]
    return tf.ensure_shape(tf.dynamic_stitch(places, parts), images.shape)


def _recoloured(images: tf.Tensor, how: Augmentation, draws: tf.Tensor) -> tf.Tensor:
    """Change light and colour; draws: float32 [batch, ≥ 4] in [-1, 1).

    Each change is linear in a pixel's channels, so all together are one matrix and one offset per
    image: one pass over the pixels.
    """
    matrix = _saturation(1 + how.saturation * draws[:, 2])
    if how.hue:
        matrix = _hue(how.hue * draws[:, 3]) @ matrix
    contrast = 1 + how.contrast * draws[:, 1]
    shape = tf.shape(images)
    mean = tf.reduce_mean(tf.reshape(images, (shape[0], -1)), 1)
    offset = how.brightness * draws[:, 0] + (1 - contrast) * mean
    matrix = tf.linalg.matrix_transpose(matrix * contrast[:, None, None])
    pixels = tf.reshape(images, (shape[0], -1, 3)) @ matrix
    # Broadcasting along all of an image is fast, along three channels it is not.
    pixels = tf.reshape(pixels, (shape[0], -1)) + offset[:, None]
    # tf.clip_by_value would pass over the pixels twice.
    pixels = tf.raw_ops.ClipByValue(t=pixels, clip_value_min=0.0, clip_value_max=1.0)
    return tf.ensure_shape(tf.reshape(pixels, shape), images.shape)


def _saturation(share: tf.Tensor) -> tf.Tensor:
    """Return matrices (float32 [batch, 3, 3]) between gray (0), as it is (1) and beyond."""
    gray = tf.constant([_GRAY] * 3)
    share = share[:, None, None]
    return share * tf.eye(3) + (1 - share) * gray


def _hue(turn: tf.Tensor) -> tf.Tensor:
    """Return matrices (float32 [batch, 3, 3]) that turn hues by a share of the full circle."""
    angle = 2 * math.pi * turn
    one, zero = tf.ones_like(angle), tf.zeros_like(angle)
    cos, sin = tf.cos(angle), tf.sin(angle)
    turned = tf.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos], 1)
    to_yiq = tf.constant(_YIQ, tf.float32)
    from_yiq = tf.constant(np.linalg.inv(_YIQ), tf.float32)
    return from_yiq @ tf.reshape(turned, (-1, 3, 3)) @ to_yiq
