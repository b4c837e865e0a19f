"""A model behind TensorFlow Serving's REST interface, as far as a row of JSON goes.

Serving turns ``{"instances": […]}`` into one tensor for each name: a value of each instance, base64
decoded where it is ``{"b64": "…"}``, of the signature's type. Every instance must have all names
(https://www.tensorflow.org/tfx/serving/api_rest).
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

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
