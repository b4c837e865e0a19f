"""Levels of pixels, uint8 from 0 to 255, and the floats that models take."""

from __future__ import annotations

import tensorflow as tf

from recordgen.access.scales import PixelScale, scale_for


def to_uint8(pixels: tf.Tensor) -> tf.Tensor:
    """Return pixels from 0 to 255, rounded to uint8."""
    return pixels if pixels.dtype == tf.uint8 else tf.cast(tf.round(pixels), tf.uint8)


def between(pixels: tf.Tensor, black: tf.Tensor | float, white: tf.Tensor | float) -> tf.Tensor:
    """Spread pixels from 0 to 255 linearly between two floats: uint8 [...] → float32 [...]."""
    # A cast, a product and a sum in one pass over the pixels, with the same result.
    return tf.quantization.dequantize(tf.bitcast(pixels, tf.quint8), black, white)


def stretched(pixels: tf.Tensor, black: tf.Tensor, span: tf.Tensor) -> tf.Tensor:
    """Stretch the range from ``black`` to ``black + span`` to all levels, and clip the rest.

    uint8 or float32 [...] → uint8 [...]; ``span`` is at least 1.
    """
    is_whole = pixels.dtype == tf.uint8
    shifted = between(pixels, -black, 255 - black) if is_whole else pixels - black
    # A minimum, a maximum, a product, the rounding and a cast in one pass over the pixels.
    levels = tf.raw_ops.QuantizeV2(
        input=shifted, min_range=0.0, max_range=span, T=tf.quint8, mode="MIN_COMBINED"
    )
    return tf.bitcast(levels.output, tf.uint8)


def scaled(pixels: tf.Tensor, scale: PixelScale) -> tf.Tensor:
    """Return RGB pixels from 0 to 255 (uint8 or float32) in a range, as float32."""
    factor, offset = scale.factor, scale.offset
    if pixels.dtype == tf.uint8 and isinstance(factor, float) and isinstance(offset, float):
        return between(pixels, offset, offset + factor)
    return scale.apply(tf.cast(pixels, tf.float32), white=255)


def typed(pixels: tf.Tensor, scale: str, dtype: str) -> tf.Tensor:
    """Return RGB pixels from 0 to 255 in the range and type that a reader asks for.

    See :func:`recordgen.access.scales.scale_for`.
    """
    if dtype == "uint8":
        return to_uint8(pixels)
    return tf.cast(scaled(pixels, scale_for(scale, dtype)), dtype)
