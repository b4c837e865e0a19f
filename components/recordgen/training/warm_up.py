"""Requests that TensorFlow Serving answers while it loads a model, so that no client waits longer.

    MODEL/assets.extra/tf_serving_warmup_requests   TFRecords of tensorflow.serving.PredictionLog

See https://www.tensorflow.org/tfx/serving/saved_model_warmup. The messages are written as bytes:
the package tensorflow-serving-api comes with TFX only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from recordgen import storage
from recordgen.core.records import RECORDS
from recordgen.core.records.example import varint

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"

# Field numbers: PredictionLog.predict_log, PredictLog.request, PredictRequest.model_spec and
# .inputs, whose entries have a key and a value, and ModelSpec.signature_name.
_PREDICT_LOG, _REQUEST, _MODEL_SPEC, _INPUTS, _KEY, _VALUE, _SIGNATURE_NAME = 6, 1, 1, 2, 1, 2, 3
_BYTES = 2  # the type of fields that begin with their length

_log = logging.getLogger(__name__)


def write_warm_up(
    model: str, signatures: Mapping[str, Any], sample: Callable[[tf.TensorSpec], Any]
) -> None:
    """Write one request for each signature into a saved model's folder.

    A request that fails is omitted: Serving would refuse the model.

    Args:
        model: the folder or URL of the model.
        signatures: by name, functions with an ``input_signature``.
        sample: returns a batch of one value for an input.

    Raises:
        StorageError: the file cannot be written.
    """
    frames: list[bytes] = []
    for name, function in signatures.items():
        specs = function.input_signature
        values = [tf.constant(sample(spec), spec.dtype) for spec in specs]
        try:
            function(*values)
        except tf.errors.OpError as exc:
            _log.warning("signature %s: no request to warm a server up: %s", name, exc.message)
            continue
        inputs = {spec.name: value for spec, value in zip(specs, values, strict=True)}
        frames += RECORDS.frame((to_prediction_log(name, inputs),))
    storage.write_bytes(storage.join(model, WARM_UP_FILE), b"".join(frames))


def to_prediction_log(signature: str, inputs: Mapping[str, tf.Tensor]) -> bytes:
    """Return a serialised ``tensorflow.serving.PredictionLog`` of a request."""
    parts = [_field(_MODEL_SPEC, _field(_SIGNATURE_NAME, signature.encode()))]
    for name, value in inputs.items():
        # One zero stands for all of them, so a request for a large image is small.
        is_zero = value.dtype != tf.string and not value.numpy().any()
        tensor = tf.make_tensor_proto(0 if is_zero else value, value.dtype, value.shape)
        entry = _field(_KEY, name.encode()) + _field(_VALUE, tensor.SerializeToString())
        parts.append(_field(_INPUTS, entry))
    return _field(_PREDICT_LOG, _field(_REQUEST, b"".join(parts)))


def _field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(content)) + content
