"""Images for models: encoded, from requests or from records."""

from __future__ import annotations

import tensorflow as tf

from recordgen import features
from recordgen.reading import parsing_spec
from recordgen.reading.decoding import ImageDecoder
from recordgen.reading.tuning import AUTO
from recordgen.scales import scale_of

#: TensorFlow Serving takes inputs named ``…_bytes`` as base64 in JSON.
IMAGE_BYTES = tf.TensorSpec([None], tf.string, name="image_bytes")


def stored_images(records: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Return the images of serialised records (string [batch]) as in training, in [0, 1]."""
    sides = (features.IMAGE_HEIGHT, features.IMAGE_WIDTH)
    spec = parsing_spec([features.IMAGE_ENCODED, *sides])
    # Records of other tools may leave out all but the image.
    spec[features.IMAGE_FORMAT] = tf.io.FixedLenFeature((), tf.string, "")
    parsed = tf.io.parse_example(records, spec)
    is_raw = parsed[features.IMAGE_FORMAT] == features.RAW
    # Only those of raw pixels are needed; the others are read from the images.
    sizes = tf.where(is_raw[:, None], tf.stack([parsed[side] for side in sides], 1), 0)
    encoded = parsed[features.IMAGE_ENCODED]
    pixels = ImageDecoder(image_size).decode(encoded, sizes, is_raw=is_raw)
    return scale_of(AUTO).apply(pixels, white=255)
