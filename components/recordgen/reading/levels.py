"""Levels of pixels, uint8 from 0 to 255, and the floats that models take."""

from __future__ import annotations

import tensorflow as tf

from recordgen.scales import PixelScale


def to_uint8(pixels: tf.Tensor) -> tf.Tensor:
    """Return pixels from 0 to 255, rounded to uint8."""
    return pixels if pixels.dtype == tf.uint8 else tf.cast(tf.round(pixels), tf.uint8)


def between(pixels: tf.Tensor, black: tf.Tensor | float, white: tf.Tensor | float) -> tf.Tensor:
    """Spread pixels from 0 to 255 linearly between two floats.

    Args:
        pixels: uint8 or float32 [...].
        black: what 0 becomes, float32 [].
        white: what 255 becomes, float32 [].

    Returns:
        float32 [...].
    """
    if pixels.dtype == tf.uint8:
        # A cast, a product and a sum in one pass over the pixels, with the same result.
        return tf.quantization.dequantize(tf.bitcast(pixels, tf.quint8), black, white)
    return pixels * ((white - black) / 255) + black


def scaled(pixels: tf.Tensor, scale: PixelScale, *, white: float = 255) -> tf.Tensor:
    """Return RGB pixels in the range of ``scale``.

    Args:
        pixels: uint8 from 0 to 255, or float32 from 0 to ``white``: [..., 3].
        scale: the range.
        white: 1 or 255.

    Returns:
        float32 [..., 3].
    """
    factor, offset = scale.factor, scale.offset
    if pixels.dtype == tf.uint8 and isinstance(factor, float) and isinstance(offset, float):
        return between(pixels, offset, offset + factor)
    return scale.apply(tf.cast(pixels, tf.float32), white=white)
