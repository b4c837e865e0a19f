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

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from recordgen import storage
from recordgen.core.dataset.vocabulary import shown_labels
from recordgen.lineage import DatasetLineage, ModelLineage, software_here, write_lineage
from recordgen.registry import TASKS
from recordgen.training import config
from recordgen.training.inputs import Root, examples_root, read_examples
from recordgen.training.learner import EXAMPLES, TaskTrainer
from recordgen.training.model_files import write_inputs, write_model_labels

# AutoML's and Google's samples for image models name a request so.
KEY = tf.TensorSpec([None], tf.string, name="key")

KERAS_FILE = "assets.extra/model.keras"


def save_for_serving(
    model: keras.Model, path: str, trainer: TaskTrainer, scores: Mapping[str, float] | None = None
) -> ModelLineage:
    """Save a model with the three signatures, for TensorFlow's C++ loader, which servers use.

    The model's labels, facts about its inputs for a later training, and its lineage are saved
    with it; ``scores`` are those on split eval.

    Returns: the lineage.
    """

    @tf.function(input_signature=[EXAMPLES], autograph=False)
    def evaluate(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return {config.SCORES: trainer.scores(model, examples)}

    @tf.function(input_signature=[EXAMPLES], autograph=False)
    def truth(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        known = shown_labels(trainer.dataset.labels)
        return {**trainer.truth(examples), config.KNOWN: tf.fill(tf.shape(examples), known)}

    @tf.function(input_signature=list(trainer.request), autograph=False)
    def serve(*request: tf.Tensor) -> dict[str, tf.Tensor]:
        return trainer.respond(model, *request)

    @tf.function(input_signature=[KEY, *trainer.request], autograph=False)
    def keyed(key: tf.Tensor, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        return {**serve(*request), "key": key}

    signatures = {
        "serving_default": serve,
        "key": keyed,
        **trainer.more_signatures(model),
        config.EVALUATE: evaluate,
        config.TRUTH: truth,
    }
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
    tf.saved_model.save(saved, path, signatures=traced)
    if config.PIXELS in signatures:
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder, "model.keras")
            model.save(local)
            storage.write_bytes(storage.join(path, KERAS_FILE), local.read_bytes())
    write_model_labels(path, trainer.dataset.labels)
    write_inputs(path, trainer.known_inputs(model))
    dataset = DatasetLineage.of(trainer.root, trainer.dataset)
    settings = trainer.config.to_custom_config()
    lineage = ModelLineage(
        dataset, trainer.split, settings, software=software_here(), scores=scores or {}
    )
    write_lineage(path, lineage)
    return lineage


def save_model(
    model: keras.Model,
    path: str,
    examples: str | Sequence[str],
    split: str,
    settings: Mapping[str, Any],
) -> None:
    """Save a model that another program trained; see :func:`recordgen.training.save`."""
    root: Root = examples if isinstance(examples, str) else tuple(examples)
    if isinstance(root, tuple) and all("/Split-" in pattern for pattern in root):
        root, split = examples_root(root)
    height_and_width = getattr(model, "input_shape", ())[1:3]
    if len(height_and_width) == 2 and None not in height_and_width:
        settings = {"image_size": list(height_and_width), **settings}
    dataset = read_examples(root)
    config.check_task(dataset.task, root)
    chosen = config.TrainingConfig.from_custom_config(settings)
    trainer = TASKS[dataset.task].declared("trainer")(root, split, dataset, chosen)
    trainer.check()
    save_for_serving(model, storage.normal(path), trainer)
