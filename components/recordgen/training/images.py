"""Images for models: encoded, from requests or from records."""

from __future__ import annotations

import tensorflow as tf

from recordgen import features
from recordgen.reading import decode_images, parsing_spec

#: TensorFlow Serving takes inputs named ``…_bytes`` as base64 in JSON.
IMAGE_BYTES = tf.TensorSpec([None], tf.string, name="image_bytes")


def stored_images(records: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Return the images of serialised records (string [batch]) as in training, in [0, 1]."""
    parsed = tf.io.parse_example(records, parsing_spec([features.IMAGE_ENCODED]))
    return decode_images(parsed[features.IMAGE_ENCODED], image_size)
