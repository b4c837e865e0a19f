"""A preprocessing function for TFX's Transform: labels by rank, sizes scaled."""

import tensorflow_transform as tft

from recordgen import features


def preprocessing_fn(inputs):
    return {
        "label": tft.compute_and_apply_vocabulary(inputs[features.IMAGE_CLASS_TEXT]),
        "height": tft.scale_to_0_1(inputs[features.IMAGE_HEIGHT]),
    }
