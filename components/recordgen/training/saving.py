"""Save a model for serving, evaluation, and later trainings.

The saved model has three signatures:

``serving_default``: a client's request, such as ``image_bytes`` (string [batch]) → the answer, such
as ``labels`` (string [batch, k]) and ``scores`` (float32 [batch, k]), best first; see the task's
trainer.

``evaluate``: ``examples`` (string [batch], serialised records) → ``scores`` for TFMA; for labels
float32 [batch, classes], in the order of ``labels.txt``.

``truth``: ``examples`` → ``label``, which TFMA compares with the scores, and ``weight`` (float32
[batch]), 0 for an example without a label, on which TFMA would fail. Labels are compared by their
texts: ``unknown`` (string [batch, k], padded with "") holds the labels that the model does not
know, and ``known`` (string [batch]) some that it knows.

Models of images have a fourth one, ``pixels``: RGB from 0 to 1 (float32 [batch, height, width, 3])
→ ``scores``, and ``assets.extra/model.keras``, the Keras model itself: without decoding, for
``keras.Model.export`` to LiteRT and ONNX, and for further training.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from recordgen import storage
from recordgen.core.dataset.description import Described
from recordgen.core.dataset.vocabulary import shown_labels
from recordgen.core.records import RECORDS
from recordgen.core.records.example import varint
from recordgen.lineage.models import (
    DatasetLineage,
    ModelLineage,
    software_here,
    write_lineage,
)
from recordgen.training.config import EVALUATE, KNOWN, PIXELS, SCORES, TRUTH
from recordgen.training.earlier import write_inputs
from recordgen.training.learner import EXAMPLES, TaskTrainer
from recordgen.training.model_labels import write_model_labels

# AutoML's and Google's samples for image models name a request so.
KEY = tf.TensorSpec([None], tf.string, name="key")

KERAS_FILE = "assets.extra/model.keras"


def save_for_serving(
    model: keras.Model, path: str, trainer: TaskTrainer, transform_output: str | None = None
) -> None:
    """Save a model with the three signatures, for TensorFlow's C++ loader, which servers use.

    The model's labels, facts about its inputs for a later training, and its lineage are saved
    with it. If TFX's Transform made the examples, the signatures take records from before it.
    """
    stored = trainer
    if transform_output:
        trainer = stored.served(transform_output)

    @tf.function(input_signature=[EXAMPLES], autograph=False)
    def evaluate(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return {SCORES: trainer.scores(model, examples)}

    @tf.function(input_signature=[EXAMPLES], autograph=False)
    def truth(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        known = shown_labels(trainer.dataset.labels)
        return {**trainer.truth(examples), KNOWN: tf.fill(tf.shape(examples), known)}

    serve = trainer.serving(model)

    @tf.function(input_signature=[KEY, *trainer.request], autograph=False)
    def keyed(key: tf.Tensor, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        return {**serve(*request), "key": key}

    for_clients = {"serving_default": serve, "key": keyed, **trainer.more_signatures(model)}
    signatures = {**for_clients, EVALUATE: evaluate, TRUTH: truth}
    # Do not save the Keras model itself: the C++ loader does not find the variables that Keras 3
    # wraps. Variables of the optimizer, which no signature uses, are not saved.
    saved = tf.Module()
    # Trace each signature once: saving would trace functions that are not concrete again.
    traced = {name: each.get_concrete_function() for name, each in signatures.items()}
    found = [variable for function in traced.values() for variable in function.graph.variables]
    saved.all_variables = list({id(variable): variable for variable in found}.values())
    saved.weights = [weight.value for weight in model.weights]  # for a warm start
    resource = tf.saved_model.experimental.TrackableResource
    parts = tf.train.TrackableView(model).descendants()
    saved.tables = [part for part in parts if isinstance(part, resource)]
    if trainer.dataset.labels:
        saved.label_table = trainer.label_table
    saved.graph = trainer.graph
    tf.saved_model.save(saved, path, signatures=traced)
    if PIXELS in signatures:
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder, "model.keras")
            model.save(local)
            storage.write_bytes(storage.join(path, KERAS_FILE), local.read_bytes())
    write_warm_up(path, for_clients, trainer.sample)
    write_model_labels(path, trainer.dataset.labels)
    write_inputs(path, stored.known_inputs(model))
    root = trainer.root
    if isinstance(root, Described):
        root = root.roots if len(root.roots) > 1 else root.roots[0]
    dataset = DatasetLineage.of(root, trainer.dataset)
    settings = trainer.config.to_custom_config()
    lineage = ModelLineage(dataset, trainer.split, settings, software=software_here())
    write_lineage(path, lineage)


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

    A request that fails is omitted: Serving would refuse the model. ``sample`` returns a batch
    of one value for an input.

    Raises: StorageError: the file cannot be written.
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
