"""Images for models, from requests or from records."""

from __future__ import annotations

import tensorflow as tf

from recordgen import features
from recordgen.access.scales import scale_of
from recordgen.reading import parsing_spec
from recordgen.reading.decoding import ImageDecoder, stored_sizes
from recordgen.reading.levels import scaled
from recordgen.reading.options import AUTO

#: TensorFlow Serving takes inputs named ``…_bytes`` as base64 in JSON.
IMAGE_BYTES = tf.TensorSpec([None], tf.string, name="image_bytes")


def stored_images(records: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Return the images of serialised records (string [batch]) as in training, in [0, 1]."""
    spec = parsing_spec([features.IMAGE_ENCODED, features.IMAGE_HEIGHT, features.IMAGE_WIDTH])
    # Records of other tools may hold the image only.
    spec[features.IMAGE_FORMAT] = tf.io.FixedLenFeature((), tf.string, "")
    parsed = tf.io.parse_example(records, spec)
    sizes, is_raw = stored_sizes(
        lambda part: parsed[f"image/{part}"], are_checked=False, has_raw=True
    )
    pixels = ImageDecoder(image_size).decode(parsed[features.IMAGE_ENCODED], sizes, is_raw=is_raw)
    return scaled(pixels, scale_of(AUTO))


def request_images(encoded: tf.Tensor, image_size: tuple[int, int]) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the images of a request (string [batch]) as in training, in [0, 1].

    Returns:
        float32 [batch, height, width, 3], and string [batch]: why an image is bad, or "".
    """
    pixels, error = ImageDecoder(image_size).attempt(encoded)
    return scaled(pixels, scale_of(AUTO)), error
