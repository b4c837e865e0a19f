"""Serialised records → tensors."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from recordgen.features import FeatureSpec
from recordgen.tasks import TASKS

_DTYPES = {"bytes": tf.string, "int64": tf.int64, "float32": tf.float32}


def parsing_spec(
    names: Iterable[str] | None = None, *, task: str = "image_classification"
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Return the spec with which ``tf.io.parse_example`` reads records.

    Args:
        names: the features wanted; None: all of the task.
        task: a name of :data:`recordgen.tasks.TASKS`.
    """
    known = TASKS[task].features
    wanted = known if names is None else tuple(names)
    return {name: _parsed(spec) for name, spec in known.items() if name in wanted}


def _parsed(spec: FeatureSpec) -> tf.io.FixedLenFeature | tf.io.RaggedFeature:
    dtype = _DTYPES[spec.dtype]
    if spec.shape is None:
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    return tf.io.FixedLenFeature(spec.shape, dtype, spec.default)
