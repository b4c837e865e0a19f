"""A preprocessing function for TFX's Transform: labels by rank, sizes scaled, raw pixels read."""

import tensorflow as tf
import tensorflow_transform as tft

from recordgen import features

STORED_SIDE = 8  # of the images in conftest.py
SIDE = 4


def preprocessing_fn(inputs):
    return {
        "label": tft.compute_and_apply_vocabulary(inputs[features.IMAGE_CLASS_TEXT]),
        "height": tft.scale_to_0_1(inputs[features.IMAGE_HEIGHT]),
        "pixels": tf.map_fn(
            scaled, inputs[features.IMAGE_ENCODED].values, fn_output_signature=tf.float32
        ),
    }


def scaled(image):
    pixels = tf.reshape(tf.io.decode_raw(image, tf.uint8), [STORED_SIDE, STORED_SIDE, 3])
    return tf.image.resize(pixels, [SIDE, SIDE]) / 255
