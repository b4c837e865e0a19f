"""Run a SavedModel as servers do: a signature's graph in a session of TensorFlow's C++ runtime.

``tf.saved_model.load`` rebuilds a model's Python objects. TensorFlow Serving has none, and neither
has a session; only calls of Python must not be in the graph.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

_OF_PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


class CppModel:
    """A SavedModel in a session.

    Attributes:
        signatures: the ``SignatureDef`` of each name.
    """

    def __init__(self, folder: str | Path) -> None:
        """Load a model."""
        with tf.Graph().as_default() as graph:
            self._session = tf.compat.v1.Session()
            tags = [tf.saved_model.SERVING]
            loaded = tf.compat.v1.saved_model.load(self._session, tags, str(folder))
        self.signatures = loaded.signature_def
        definition = graph.as_graph_def()
        bodies = (function.node_def for function in definition.library.function)
        assert not _OF_PYTHON & {node.op for node in chain(definition.node, *bodies)}

    def run(self, signature: str, **inputs: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Run a signature.

        Args:
            signature: its name, such as ``serving_default``.
            **inputs: arrays or lists; of bytes or str for strings.

        Raises:
            tf.errors.OpError: the model fails.
        """
        found = self.signatures[signature]
        assert inputs.keys() == found.inputs.keys()
        values = {
            found.inputs[name].name: np.asarray(
                value, tf.as_dtype(found.inputs[name].dtype).as_numpy_dtype
            )
            for name, value in inputs.items()
        }
        asked = {name: info.name for name, info in found.outputs.items()}
        return self._session.run(asked, values)

    def empty(self) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        """Return the answer of each signature to a batch of none."""
        answers = {}
        for name, signature in self.signatures.items():
            sides = {key: info.tensor_shape.dim[1:] for key, info in signature.inputs.items()}
            if sides:
                nothing = {key: np.zeros([0, *(it.size for it in sides[key])]) for key in sides}
                answers[name] = self.run(name, **nothing)
        return answers
