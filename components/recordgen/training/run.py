"""``run``: train on a dataset's ``train`` split and save the model."""

from __future__ import annotations

import logging
import math
import posixpath
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from recordgen.dataset.manifest import read_dataset
from recordgen.errors import UsageError
from recordgen.training.config import TrainingConfig, check_task
from recordgen.training.learner import Learner
from recordgen.training.learners import LEARNERS
from recordgen.training.serving import save_for_serving

_log = logging.getLogger(__name__)


def examples_root(patterns: Sequence[str]) -> tuple[str, str]:
    """Return the Examples uri and the split that TFX's file patterns name.

    ``["/p/examples/7/Split-train/*"]`` → ``("/p/examples/7", "train")``

    Raises:
        UsageError: there is not exactly one pattern: several Examples artifacts may number their
            labels differently.
    """
    if len(patterns) != 1:
        raise UsageError(
            f"training needs the examples of exactly one artifact and one split "
            f"(got {list(patterns)})"
        )
    folder = posixpath.dirname(patterns[0])
    return posixpath.dirname(folder), posixpath.basename(folder).removeprefix("Split-")


def run(fn_args: Any) -> None:
    """Train a model and save it to ``fn_args.serving_model_dir``.

    The task, labels and counts are taken from ``dataset.json`` beside the splits; what is learnt,
    and how, says the task's :class:`recordgen.training.learner.Learner`. TensorBoard logs are
    written to ``fn_args.model_run_dir``. The same seed and data give the same training, as far as
    the machine's kernels add in the same order.

    Args:
        fn_args: TFX's ``FnArgs``. Used are ``train_files``, ``eval_files``, ``train_steps``,
            ``eval_steps``, ``custom_config``, ``serving_model_dir`` and ``model_run_dir``.

    Raises:
        UsageError: a setting is not allowed, or does not go with the data.
        SourceError, DataError: the examples are not Recordgen's, there is no model for their task,
            or there are none to train on.
    """
    config = TrainingConfig.from_custom_config(fn_args.custom_config)
    root, split = examples_root(fn_args.train_files)
    dataset = read_dataset(root)
    check_task(dataset.task, root)
    learner = LEARNERS[dataset.task](root, split, dataset, config)
    learner.check()
    steps, epochs = plan_epochs(learner.steps_per_epoch(), config.epochs, fn_args.train_steps)

    keras.utils.set_random_seed(config.seed)
    models = learner.models()
    models.trained.compile(
        optimizer=keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(config.learning_rate, steps * epochs)
        ),
        loss=learner.loss(),
        metrics=list(learner.metrics()),
    )
    models.trained.fit(
        learner.train_data(),
        steps_per_epoch=steps,
        epochs=epochs,
        shuffle=False,  # the dataset is shuffled; newer Keras warns of its own default
        validation_data=_validation_data(fn_args, learner),
        callbacks=[
            keras.callbacks.TensorBoard(fn_args.model_run_dir, write_graph=False),
            keras.callbacks.LambdaCallback(on_epoch_end=_EpochLog(epochs)),
        ],
        verbose=0,
    )
    save_for_serving(models.saved, fn_args.serving_model_dir, learner)


def plan_epochs(steps_per_pass: int, epochs: int, train_steps: int | None) -> tuple[int, int]:
    """Return steps per epoch and epochs; ``train_steps``, if given, are the steps in all.

    ``(100, 5, None)`` → ``(100, 5)``; ``(100, 5, 250)`` → ``(84, 3)``: three epochs, at least 250
    steps together.
    """
    if not train_steps:
        return steps_per_pass, epochs
    passes = math.ceil(train_steps / steps_per_pass)
    return math.ceil(train_steps / passes), passes


def _validation_data(fn_args: Any, learner: Learner) -> tf.data.Dataset | None:
    """Return the labelled examples of the evaluation split, or None if it has none."""
    if not fn_args.eval_files:
        return None
    root, split = examples_root(fn_args.eval_files)
    if not learner.can_validate(split):
        return None
    data = learner.eval_data(root, split)
    return data.take(fn_args.eval_steps) if fn_args.eval_steps else data


class _EpochLog:
    """Log one line per epoch: ``epoch 3/12: accuracy 0.9543, loss 0.1501, …``."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs

    def __call__(self, epoch: int, logs: dict[str, float] | None) -> None:
        numbers = ", ".join(f"{name} {value:.4f}" for name, value in sorted((logs or {}).items()))
        _log.info("epoch %d/%d: %s", epoch + 1, self._epochs, numbers)
