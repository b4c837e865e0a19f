"""Fit a model in one or two phases, and go on where an earlier process was killed.

Keras's ``fit`` keeps the iterator of its data to itself, so its position cannot be saved: after a
kill, a training would see some examples twice and others never. This loop is ``fit``'s, with the
iterator in hand; Keras makes the training step, and callbacks are called as by ``fit``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from recordgen import storage
from recordgen.training.checkpoints import (
    Checkpoints,
    Progress,
    has_checkpoint,
    remove_checkpoints,
)
from recordgen.training.config import TrainingConfig
from recordgen.training.learner import Models, TaskTrainer
from recordgen.training.model import train_backbone

_log = logging.getLogger(__name__)

_EVAL_LOSS = "val_loss"


class Phase(NamedTuple):
    """Epochs that are trained in one way.

    Attributes:
        first: the first epoch, from 0.
        end: the epoch after the last one.
        rate: the learning rate.
        is_frozen: whether the pretrained layers keep their weights.
    """

    first: int
    end: int
    rate: float
    is_frozen: bool


def plan_phases(config: TrainingConfig, epochs: int) -> list[Phase]:
    """Return the phases of a training.

    ``frozen_epochs=2, learning_rate=1e-3, fine_tune_rate=1e-4``, 10 epochs →
    ``[Phase(0, 2, 1e-3, True), Phase(2, 10, 1e-4, False)]``
    """
    frozen = min(config.frozen_epochs, epochs)
    rate = config.fine_tune_rate if frozen else config.learning_rate
    phases = [
        Phase(0, frozen, config.learning_rate, is_frozen=True),
        Phase(frozen, epochs, rate, is_frozen=False),
    ]
    return [phase for phase in phases if phase.first < phase.end]


def learning_rates(config: TrainingConfig, rate: float, epochs: int, steps: int) -> Any:
    """Return the learning rate by step, as Keras's schedule.

    Keras counts every step, also where it averages the gradients of several.

    Args:
        config: the schedule and the warm-up.
        rate: the highest rate.
        epochs: the epochs of the phase.
        steps: the steps in an epoch.
    """
    warmup = min(epochs * steps, round(config.warmup_epochs * steps))
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if warmup else rate,
        decay_steps=max(1, epochs * steps - warmup),
        alpha=1.0 if config.schedule == "constant" else 0.0,
        warmup_target=rate if warmup else None,
        warmup_steps=warmup,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """What a training consists of.

    Attributes:
        trainer: the task's data, loss and metrics.
        models: the models.
        steps: the steps in an epoch.
        epochs: the epochs in all.
        validation: labelled batches that are not trained on; None: there are none.
        callbacks: Keras's callbacks.
        folder: the folder of the checkpoints, for this training alone.
    """

    trainer: TaskTrainer
    models: Models
    steps: int
    epochs: int
    validation: tf.data.Dataset | None
    callbacks: Iterable[keras.callbacks.Callback]
    folder: str

    def run(self) -> None:
        """Train in all phases. Raises: StorageError: checkpoints cannot be written."""
        model, config = self.models.trained, self.trainer.config
        phases = plan_phases(config, self.epochs)
        folders = [storage.join(self.folder, f"phase-{number}") for number in range(len(phases))]
        begun = max((n for n, folder in enumerate(folders) if has_checkpoint(folder)), default=0)
        progress = Progress(model.weights if config.patience else ())
        batches = iter(_savable(self.trainer.train_data()))
        callbacks = keras.callbacks.CallbackList(
            list(self.callbacks), model=model, epochs=self.epochs, steps=self.steps
        )
        callbacks.on_train_begin()
        for phase, folder in list(zip(phases, folders, strict=True))[begun:]:
            self._compile(phase)
            progress.epoch.assign(phase.first)
            progress.step.assign(0)
            progress.waited.assign(0)
            checkpoints = Checkpoints(folder, config.checkpoint_minutes, model, batches, progress)
            if checkpoints.restore():
                _log.info(
                    "resumed after epoch %d/%d and step %d/%d, from %s",
                    *(int(progress.epoch), self.epochs, int(progress.step), self.steps, folder),
                )
            while int(progress.epoch) < phase.end and not self._is_over(progress):
                self._epoch(int(progress.epoch), batches, progress, checkpoints, callbacks)
            if config.patience:
                progress.take_best(model.weights)
        callbacks.on_train_end()

    def forget(self) -> None:
        """Remove the checkpoints of a training that ended. Raises: StorageError."""
        remove_checkpoints(self.folder)

    def _is_over(self, progress: Progress) -> bool:
        """Return whether to stop early: no epoch was better for a while."""
        patience = self.trainer.config.patience
        is_over = 0 < patience <= int(progress.waited)
        if is_over:
            _log.info(
                "stopped after epoch %d/%d: the loss on split eval was not lower for %d epochs",
                *(int(progress.epoch), self.epochs, patience),
            )
        return is_over

    def _compile(self, phase: Phase) -> None:
        model, config = self.models.trained, self.trainer.config
        if self.models.backbone is not None:
            train_backbone(self.models.backbone, is_frozen=phase.is_frozen)
        rates = learning_rates(config, phase.rate, phase.end - phase.first, self.steps)
        accumulated = config.accumulate if config.accumulate > 1 else None
        model.compile(
            optimizer=keras.optimizers.Adam(rates, gradient_accumulation_steps=accumulated),
            loss=self.trainer.loss(),
            metrics=list(self.trainer.metrics()),
            # On a CPU, compiling by XLA takes longer than short trainings do, and gains nothing.
            jit_compile="auto" if tf.config.list_physical_devices("GPU") else False,
        )
        model.optimizer.build(model.trainable_variables)
        model.make_train_function()

    def _epoch(
        self,
        epoch: int,
        batches: Any,
        progress: Progress,
        checkpoints: Checkpoints,
        callbacks: keras.callbacks.CallbackList,
    ) -> None:
        """Train the rest of an epoch, validate, and count it."""
        model = self.models.trained
        model.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        for step in range(int(progress.step), self.steps):
            callbacks.on_train_batch_begin(step)
            logs = model.train_function(batches)
            callbacks.on_train_batch_end(step, logs)
            progress.step.assign(step + 1)
            if step + 1 < self.steps:
                checkpoints.save_if_due()
        found = {name: float(value) for name, value in model.get_metrics_result().items()}
        if self.validation is not None:
            measured = model.evaluate(
                self.validation, callbacks=callbacks, return_dict=True, verbose=0
            )
            found |= {f"val_{name}": float(value) for name, value in measured.items()}
        callbacks.on_epoch_end(epoch, found)
        if self.trainer.config.patience:
            progress.compare(model.weights, found[_EVAL_LOSS])
        progress.epoch.assign(epoch + 1)
        progress.step.assign(0)
        checkpoints.save_if_due()


def _savable(data: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset whose iterators can be saved."""
    settings = tf.data.Options()
    # Tables of words and labels count as state, but they are made anew, and the same.
    settings.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    return data.with_options(settings)
