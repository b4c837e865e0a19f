"""``run``: train on a dataset's ``train`` split and save the model."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from recordgen import storage
from recordgen.errors import UsageError
from recordgen.lineage import PRODUCER, Facets, ModelLineage, RunEvents, run_events, source_name
from recordgen.reading import eval_dataset
from recordgen.reading.naming import RECORD_ERRORS, raise_named
from recordgen.registry import TASKS
from recordgen.training.config import (
    CHECKPOINT_DIR,
    CHECKPOINT_SETTINGS,
    EPOCHS,
    FLOAT32,
    LOG_DIR,
    TrainingConfig,
    check_task,
)
from recordgen.training.fitting import Fitting, Replicas, find_replicas
from recordgen.training.inputs import examples_root, read_examples, roots_of
from recordgen.training.learner import TaskTrainer
from recordgen.training.model_files import EarlierModel
from recordgen.training.progress_log import log_info
from recordgen.training.saving import save_for_serving
from recordgen.training.words import WordVectors, word_vectors


def trainer_of(fn_args: Any, config: TrainingConfig) -> TaskTrainer:
    """Return a checked trainer for the examples of ``train_files``. Raises: as ``run``."""
    root, split = examples_root(fn_args.train_files)
    dataset = read_examples(root)
    check_task(dataset.task, root)
    base = getattr(fn_args, "base_model", None)
    made = TASKS[dataset.task].declared("trainer")
    trainer: TaskTrainer = made(
        root, split, dataset, config, EarlierModel.read(base) if base else None
    )
    trainer.check()
    trainer.check_settings()
    return trainer.settled()


def run(fn_args: Any) -> None:
    """Train a model and save it to ``fn_args.serving_model_dir``, with its lineage.

    ``dataset.json`` next to the splits names task, labels and counts; the task's
    :class:`recordgen.training.learner.TaskTrainer` builds the model. TensorBoard logs go to
    ``fn_args.model_run_dir``. The same seed and data give the same training if the machine's
    kernels add in the same order. A training that was killed and started again resumes from its
    last checkpoint, with the same result. OpenLineage's settings make it send events.

    Args:
        fn_args: TFX's ``FnArgs``, of which ``train_files``, ``eval_files``, ``train_steps``,
            ``eval_steps``, ``custom_config``, ``serving_model_dir`` and ``model_run_dir`` are used;
            ``hyperparameters``, which replace settings of ``custom_config``; and ``base_model``,
            whose weights the training begins with (:func:`warm_start`).

    Raises:
        UsageError: a setting is not allowed, or does not suit the data.
        SourceError, DataError: the examples lack a feature, their task has no model, or there are
            no examples to train on.
        StorageError: checkpoints cannot be written.
        RecordError: a record cannot be read; names its file, its number and its source id.
    """
    tuned = (getattr(fn_args, "hyperparameters", None) or {}).get("values", {})
    config = TrainingConfig.from_custom_config({**(fn_args.custom_config or {}), **tuned})
    replicas = find_replicas()
    with _events(fn_args) if replicas.is_chief else nullcontext() as events:
        fitting, scores = fit(fn_args, config, replicas)
        lineage = _save(fitting, fn_args, scores) if replicas.is_chief else None
        fitting.remove_checkpoints()
        replicas.broadcast_number(0)  # wait: TFX needs the chief's model when the first worker ends
        replicas.leave()
        if events is not None and lineage is not None:
            events.emit("COMPLETE", partial(_facets_of, lineage))


def _events(fn_args: Any) -> AbstractContextManager[RunEvents]:
    root, _ = examples_root(fn_args.train_files)
    dataset = read_examples(root)
    job = f"recordgen.train.{source_name(dataset.source) or dataset.task}"
    return run_events(job, roots_of(root), fn_args.serving_model_dir)


def _facets_of(lineage: ModelLineage) -> Facets:
    """Return what the training learned from, its scores and settings, as tags of the run."""
    from openlineage.client.facet_v2 import tags_run

    tags = [
        tags_run.TagsRunFacetFields(name, str(value), source="recordgen")
        for name, value in lineage.facts.items()
    ]
    return Facets(run={"tags": tags_run.TagsRunFacet(tags, producer=PRODUCER)})


def _save(fitting: Fitting, fn_args: Any, scores: Mapping[str, float]) -> ModelLineage:
    trainer, saved = fitting.trainer, fitting.models.saved
    if trainer.config.precision != FLOAT32 or fitting.replicas.count > 1:
        # Save one copy in 32 bits: other machines may compute slowly in 16 bits, or not at all.
        saved = trainer.models().saved
        saved.set_weights(fitting.models.saved.get_weights())
    return save_for_serving(saved, fn_args.serving_model_dir, trainer, scores)


def fit(
    fn_args: Any, config: TrainingConfig, replicas: Replicas | None = None
) -> tuple[Fitting, Mapping[str, float]]:
    """Train a model; return the finished training, which still has its checkpoints, and its scores.

    ``fn_args`` and errors are as for :func:`run`.
    """
    try:
        return _fit(fn_args, config, replicas or find_replicas())
    except RECORD_ERRORS as exc:
        # TensorFlow's error does not name the record.
        for patterns in filter(None, (fn_args.train_files, fn_args.eval_files)):
            root, split = examples_root(patterns)
            dataset = read_examples(root)
            trainer = TASKS[dataset.task].declared("trainer")(root, split, dataset, config)
            raise_named(exc, eval_dataset(root, split=split, **trainer.reading))
        raise


def _fit(
    fn_args: Any, config: TrainingConfig, replicas: Replicas
) -> tuple[Fitting, Mapping[str, float]]:
    replicas.check(config)
    replicas.log_devices()
    trainer = trainer_of(fn_args, config)
    batch_size = replicas.divisible(trainer.config.batch_size)
    trainer = replace(trainer, config=replace(trainer.config, batch_size=batch_size))
    passes = trainer.config.epochs or EPOCHS
    steps, epochs = plan_epochs(trainer.steps_per_epoch(), passes, fn_args.train_steps)
    with _precision(config.precision):
        keras.utils.set_random_seed(config.seed)
        with replicas.strategy.scope():
            models = trainer.models()
        if trainer.earlier is not None:
            warm_start(models.saved, trainer, trainer.earlier)
        fitting = Fitting(
            trainer=trainer,
            models=models,
            steps=steps,
            epochs=epochs,
            validation=validation_data(fn_args, trainer),
            callbacks=_callbacks(fn_args, epochs) if replicas.is_chief else [],
            replicas=replicas,
            folder=checkpoint_folder(fn_args, trainer, replicas, steps, epochs),
        )
        if config.patience and fitting.validation is None:
            raise UsageError(
                f"patience={config.patience} needs a split eval with labelled examples, whose loss "
                f"decides when to stop; omit patience, or convert with eval_from='train:10'"
            )
        return fitting, fitting.run()


def _callbacks(fn_args: Any, epochs: int) -> list[keras.callbacks.Callback]:
    """Return the callbacks that log the metrics of each epoch: as text, and for TensorBoard."""
    folder = os.environ.get(LOG_DIR) or fn_args.model_run_dir
    return [
        keras.callbacks.LambdaCallback(on_epoch_end=partial(_log_epoch, epochs)),
        keras.callbacks.TensorBoard(folder, write_graph=False),
    ]


@contextlib.contextmanager
def _precision(policy: str) -> Iterator[None]:
    """Use one of Keras's dtype policies, then restore the process's own."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _log_epoch(epochs: int, epoch: int, logs: dict[str, float]) -> None:
    """Log ``epoch 3/12: accuracy 0.9543, loss 0.1501, …``."""
    numbers = ", ".join(f"{name} {value:.4f}" for name, value in sorted(logs.items()))
    log_info("epoch %d/%d: %s", epoch + 1, epochs, numbers)


def checkpoint_folder(
    fn_args: Any, trainer: TaskTrainer, replicas: Replicas, steps: int, epochs: int
) -> str:
    """Return the folder for the checkpoints of these settings, data and numbers of devices."""
    config = trainer.config
    folder = config.checkpoint_dir or os.environ.get(CHECKPOINT_DIR)
    folder = folder or storage.join(fn_args.model_run_dir, "checkpoints")
    settings = config.to_custom_config()
    for name in CHECKPOINT_SETTINGS:
        del settings[name]
    evaluated = [fn_args.eval_steps]
    for pattern in fn_args.eval_files or ():
        root, split = examples_root([pattern])
        evaluated += [split, read_examples(root).digest]
    devices = [replicas.workers, replicas.count]
    data = [trainer.dataset.digest, trainer.split]
    parts = [settings, *data, steps, epochs, evaluated, devices]
    if trainer.earlier is not None:
        parts.append(trainer.earlier.path)
    mark = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return storage.join(folder, mark)


def plan_epochs(steps_per_pass: int, epochs: int, train_steps: int | None) -> tuple[int, int]:
    """Return steps per epoch and epochs; ``train_steps``, if given, is the total of steps.

    ``(100, 5, None)`` → ``(100, 5)``; ``(100, 5, 250)`` → ``(84, 3)``: three epochs with at least
    250 steps in total.
    """
    if not train_steps:
        return steps_per_pass, epochs
    passes = math.ceil(train_steps / steps_per_pass)
    return math.ceil(train_steps / passes), passes


def validation_data(fn_args: Any, trainer: TaskTrainer) -> tf.data.Dataset | None:
    """Return the labelled examples of the evaluation split, or None if it has none."""
    if not fn_args.eval_files:
        return None
    root, split = examples_root(fn_args.eval_files)
    if read_examples(root).labels != trainer.dataset.labels:
        raise UsageError(
            f"eval_files must belong to the datasets of train_files, or to datasets with the same "
            f"labels (got {list(fn_args.eval_files)})"
        )
    if not trainer.can_validate(split):
        return None
    data = trainer.eval_data(root, split)
    return data.take(fn_args.eval_steps) if fn_args.eval_steps else data


# --- warm start: a training that begins with the weights of an earlier model ----------------------


# Layers that number words differently for each dataset.
_LOOKUPS = (keras.layers.StringLookup, keras.layers.IntegerLookup)


def warm_start(model: keras.Model, trainer: TaskTrainer, earlier: EarlierModel) -> None:
    """Copy the weights of an earlier model, saved by ``run_fn``, to ``model``.

    The last layer of ``model``, which ``trainer`` has built, has outputs for each label.

    Datasets number labels, words and columns differently, so weights are matched by name:

    - A label keeps its weights in the last layer; a new label begins with random weights.
    - A word keeps its vector; a new word begins with the vector of unknown words, which the earlier
      model used for it. Words that are not in the new data are dropped.
    - Numbers are normalised with the earlier model's mean and deviation, so that the output stays
      the same.

    All other weights must have the same shapes.

    Raises:
        UsageError: the earlier model has other layers, no weights, or no list of the words that
            its vectors belong to.
    """
    labels = trainer.dataset.labels
    vectors, words = word_vectors(model), earlier.inputs.get("words", [])
    parts = tf.train.TrackableView(model).descendants()
    if len(vectors) != sum(isinstance(part, _LOOKUPS) for part in parts):
        raise _refused(earlier, f"{model.name} has vocabularies without {WordVectors.__name__}")
    if len(vectors) != len(words):
        raise _refused(earlier, f"it names {len(words)} vocabularies instead of {len(vectors)}")
    saved = getattr(tf.saved_model.load(earlier.path), "weights", ())
    if len(saved) != len(model.weights):
        raise _refused(earlier, f"it has {len(saved)} weights instead of {len(model.weights)}")
    last = next(layer for layer in reversed(model.layers) if layer.weights)
    outputs = {id(weight) for weight in last.weights}
    names, known = trainer.outputs_of(labels), trainer.outputs_of(earlier.labels)
    shared = [name for name in names if name in set(known)]
    mine, theirs = [names.index(name) for name in shared], [known.index(x) for x in shared]
    layers = {
        id(layer.weights[0]): (layer, known_words)
        for layer, known_words in zip(vectors, words, strict=True)
    }
    for weight, stored in zip(model.weights, saved, strict=True):
        before = stored.numpy()
        values = weight.value.numpy().copy()
        ends = (values.shape[-1:], before.shape[-1:])
        is_output = id(weight) in outputs
        if id(weight) in layers and ends[0] == ends[1]:
            layer, known_words = layers[id(weight)]
            values = layer.from_earlier(before, known_words)
        elif is_output and ends == ((len(names),), (len(known),)):
            values[..., mine] = before[..., theirs]
        elif values.shape == before.shape and (not is_output or names == known):
            values = before
        elif not is_output:
            raise _refused(earlier, f"{weight.path} has shape {values.shape}, not {before.shape}")
        weight.assign(values)
    both = set(labels) & set(earlier.labels)
    log_info("begins with %s, which knows %d of %d labels", earlier.path, len(both), len(labels))


def _refused(earlier: EarlierModel, why: str) -> UsageError:
    return UsageError(
        f"base_model {earlier.path} does not fit this model: {why}; use a model that this version "
        f"has saved, and the settings that it was trained with, or train without it once"
    )
