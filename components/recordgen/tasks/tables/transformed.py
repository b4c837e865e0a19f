"""The graph of a TFX Transform, as part of a model: records from before it → columns after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf


class TransformGraph(tf.Module):
    """Parses records as Transform's ``preprocessing_fn`` changes them."""

    def __init__(self, transform_output: str, target: str) -> None:
        """Load a graph; requests need not have ``target``."""
        import tensorflow_transform as tft  # only Transform's users have it

        super().__init__(name="transform")
        output: Any = tft.TFTransformOutput(transform_output)  # type: ignore[attr-defined]
        self.spec: Mapping[str, Any] = output.raw_feature_spec()
        self._target = target
        self._layer = output.transform_features_layer()

    def parse(
        self, records: tf.Tensor, wanted: Mapping[str, Any], *, is_request: bool
    ) -> dict[str, Any]:
        """Return columns of records (string [batch]), as ``tf.io.parse_example`` does.

        A request may lack the target.
        """
        spec = dict(self.spec)
        target = spec.get(self._target)
        if is_request and isinstance(target, tf.io.FixedLenFeature):
            nothing = np.full(target.shape, "" if target.dtype == tf.string else 0)
            spec[self._target] = target._replace(default_value=nothing)
        found = self._layer(tf.io.parse_example(records, spec))
        return {name: _as_parsed(found[name], as_read) for name, as_read in wanted.items()}


def _as_parsed(values: Any, spec: Any) -> Any:
    """Return a column of Transform's with the shape that parsing with ``spec`` gives."""
    if isinstance(values, tf.SparseTensor):
        values = tf.RaggedTensor.from_sparse(values)
    if isinstance(spec, tf.io.RaggedFeature):
        if isinstance(values, tf.RaggedTensor):
            return values
        return tf.RaggedTensor.from_tensor(tf.reshape(values, [tf.shape(values)[0], -1]))
    if isinstance(values, tf.RaggedTensor):
        values = values.to_tensor(spec.default_value, shape=[None, math.prod(spec.shape)])
    return tf.reshape(values, [-1, *spec.shape])
