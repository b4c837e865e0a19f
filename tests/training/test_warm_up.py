"""Requests that a server answers before its first client comes."""

import numpy as np
import pytest
import tensorflow as tf

from recordgen.core.records import RECORDS
from recordgen.training.saving import to_prediction_log, write_warm_up


def test_the_message_is_a_prediction_log():
    """Pixels of a large image take no more than their shape: one zero stands for all."""
    inputs = {"pixels": tf.zeros((1, 512, 512, 3)), "key": tf.constant(["é", ""])}
    message = to_prediction_log("a" * 200, inputs)
    assert len(message) < 500
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    request = apis.PredictionLog.FromString(message).predict_log.request
    assert request.model_spec.signature_name == "a" * 200
    assert {**request.inputs}.keys() == inputs.keys()
    for name, value in inputs.items():
        found = tf.make_ndarray(request.inputs[name])
        np.testing.assert_array_equal(found, value)
        assert found.dtype == value.numpy().dtype


def test_a_request_that_fails_is_left_out(tmp_path, caplog):
    """A server would refuse the model."""
    text = tf.TensorSpec([None], tf.string, name="text")

    @tf.function(input_signature=[text])
    def number(text):
        return tf.strings.to_number(text)

    @tf.function(input_signature=[text])
    def length(text):
        return tf.strings.length(text)

    write_warm_up(str(tmp_path), {"number": number, "length": length}, lambda _: ["no number"])
    [record] = RECORDS.read(f"{tmp_path}/assets.extra/tf_serving_warmup_requests")
    assert b"length" in record
    assert "number" in caplog.text
