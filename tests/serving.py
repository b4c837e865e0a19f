"""A model behind TensorFlow Serving's REST interface, as far as a row of JSON goes.

Serving turns ``{"instances": […]}`` into one tensor for each name: a value of each instance, base64
decoded where it is ``{"b64": "…"}``, of the signature's type. Every instance must have all names
(https://www.tensorflow.org/tfx/serving/api_rest).
"""

from __future__ import annotations

import base64
import json
from importlib.util import find_spec
from typing import Any

import numpy as np
import tensorflow as tf

from recordgen.core.records import RECORDS
from tests.cpp_loader import CppModel


def answer(folder: Any, signature: str, instances: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return a model's answer to the JSON of a list of instances."""
    model = CppModel(folder)
    rows = json.loads(instances)
    names = model.signatures[signature].inputs.keys()
    for row in rows:
        assert row.keys() == names, "Serving answers 400"
    columns = {name: [_decoded(row[name]) for row in rows] for name in names}
    return model.run(signature, **columns)


def _decoded(value: Any) -> Any:
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value


def check_warm_up(folder: Any) -> None:
    """Check that a model answers its warm-up requests, one for each signature of clients.

    Without tensorflow-serving-api, which comes with TFX, nothing is checked.
    """
    if find_spec("tensorflow_serving") is None:
        return
    from tensorflow_serving.apis import prediction_log_pb2

    model, warm = CppModel(folder), set()
    for record in RECORDS.read(f"{folder}/assets.extra/tf_serving_warmup_requests"):
        assert len(record) < 10_000
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        name = request.model_spec.signature_name
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        answer = model.run(name, **inputs)
        assert set(answer.get("error", [b""])) == {b""}
        warm.add(name)
    assert warm == model.signatures.keys() - {"evaluate", "truth", "__saved_model_init_op"}
