"""Serialised records → tensors."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from recordgen import features


def parsing_spec(names: Iterable[str] | None = None) -> dict[str, tf.io.FixedLenFeature]:
    """Return the spec with which ``tf.io.parse_example`` reads records.

    Args:
        names: the features wanted; None: all of :data:`recordgen.features.IMAGE_CLASSIFICATION`.
    """
    dtypes = {"bytes": tf.string, "int64": tf.int64}
    wanted = features.IMAGE_CLASSIFICATION if names is None else tuple(names)
    return {
        name: tf.io.FixedLenFeature((), dtypes[spec.dtype], spec.default)
        for name, spec in features.IMAGE_CLASSIFICATION.items()
        if name in wanted
    }


def is_labelled(record: tf.Tensor) -> tf.Tensor:
    """Say (bool []) whether one serialised ``record`` (string []) has a label."""
    parsed = tf.io.parse_single_example(record, parsing_spec([features.IMAGE_CLASS_LABEL]))
    return parsed[features.IMAGE_CLASS_LABEL] != features.NO_LABEL


def decode_images(encoded: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Decode and resize encoded images: the one way for training, evaluation and serving.

    Args:
        encoded: string [batch], the bytes of JPEG, PNG, GIF (first frame) or BMP files of any
            size.
        image_size: height and width of what is returned, in pixels.

    Returns:
        float32 [batch, height, width, 3], RGB in [0, 1]; the aspect ratio is not kept.

    Raises:
        tf.errors.InvalidArgumentError: bytes are not such an image.
    """

    def decode(image_bytes: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(image_bytes, channels=3, expand_animations=False)
        image.set_shape((None, None, 3))  # decode_image says nothing about the shape
        # Without antialiasing a large photo is sampled at a few of its pixels.
        return tf.image.resize(image, image_size, antialias=True)

    pixels = tf.map_fn(
        decode,
        encoded,
        fn_output_signature=tf.TensorSpec((*image_size, 3), tf.float32),
    )
    return tf.clip_by_value(pixels / 255.0, 0.0, 1.0)
