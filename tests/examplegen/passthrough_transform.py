"""A preprocessing function for TFX's Transform: labels by rank, sizes scaled, images decoded."""

import tensorflow as tf
import tensorflow_transform as tft

from recordgen import features

SIDE = 4


def preprocessing_fn(inputs):
    return {
        "label": tft.compute_and_apply_vocabulary(inputs[features.IMAGE_CLASS_TEXT]),
        "height": tft.scale_to_0_1(inputs[features.IMAGE_HEIGHT]),
        "pixels": tf.map_fn(
            decoded, inputs[features.IMAGE_ENCODED].values, fn_output_signature=tf.float32
        ),
    }


def decoded(image):
    pixels = tf.io.decode_image(image, channels=3, expand_animations=False)
    return tf.image.resize(pixels, [SIDE, SIDE]) / 255
