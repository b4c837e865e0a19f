"""A preprocessing function for TFX's Transform: numbers scaled and in buckets."""

import tensorflow_transform as tft


def preprocessing_fn(inputs):
    return {
        "size_scaled": tft.scale_to_z_score(inputs["size"]),
        "size_bucket": tft.bucketize(inputs["size"], num_buckets=4),
        "colour": inputs["colour"],
        "kind": inputs["kind"],
    }
