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
