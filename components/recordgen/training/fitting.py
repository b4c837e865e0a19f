"""Fit a model in one or two phases, and go on where an earlier process was killed.

Keras's ``fit`` keeps the iterator of its data to itself, so its position cannot be saved: after a
kill, a training would see some examples twice and others never. This loop is ``fit``'s, with the
iterator in hand; the training step is the model's own, and callbacks are called as by ``fit``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
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
from recordgen.training.replicas import Replicas

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
    """Return the learning rate by step, as Keras's schedule; ``rate`` is the highest one.

    Keras counts every step, also where it averages the gradients of several.
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
        replicas: the devices to train on.
        folder: the folder of the checkpoints, for this training alone.
    """

    trainer: TaskTrainer
    models: Models
    steps: int
    epochs: int
    validation: tf.data.Dataset | None
    callbacks: Iterable[keras.callbacks.Callback]
    replicas: Replicas
    folder: str

    def run(self) -> None:
        """Train in all phases. Raises: StorageError: checkpoints cannot be written."""
        model, config = self.models.trained, self.trainer.config
        phases = plan_phases(config, self.epochs)
        folders = [storage.join(self.folder, f"phase-{number}") for number in range(len(phases))]
        begun = max((n for n, folder in enumerate(folders) if has_checkpoint(folder)), default=0)
        progress = Progress(model.weights if config.patience else ())
        replicas = self.replicas
        data = self.trainer.train_data(replicas.worker, replicas.workers)
        batches = iter(_savable(data))
        callbacks = keras.callbacks.CallbackList(
            list(self.callbacks), model=model, epochs=self.epochs, steps=self.steps
        )
        judge = self._judge() if replicas.is_chief and self.validation is not None else None
        callbacks.on_train_begin()
        for phase, folder in list(zip(phases, folders, strict=True))[begun:]:
            with replicas.strategy.scope():
                self._compile(phase)
            learn = self._learning(batches)
            progress.epoch.assign(phase.first)
            progress.step.assign(0)
            progress.waited.assign(0)
            checkpoints = Checkpoints(
                folder, config.checkpoint_minutes, model, batches, progress, replicas
            )
            if checkpoints.restore():
                _log.info(
                    "resumed after epoch %d/%d and step %d/%d, from %s",
                    *(int(progress.epoch), self.epochs, int(progress.step), self.steps, folder),
                )
            while int(progress.epoch) < phase.end and not self._is_over(progress):
                self._epoch(learn, judge, progress, checkpoints, callbacks)
            if config.patience:
                progress.take_best(model.weights)
        callbacks.on_train_end()

    def forget(self) -> None:
        """Remove the checkpoints of a training that ended. Raises: StorageError."""
        if self.replicas.is_chief:
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
            jit_compile=_jit_compile(),
        )
        model.optimizer.build(model.trainable_variables)

    def _learning(self, batches: Iterator[Any]) -> Callable[[], None]:
        """Return a function that trains on the next batch.

        Not Keras's train function: on several workers, it fails when it reduces the metrics
        (tensorflow/tensorflow#72388), which :meth:`_epoch` reads at the end of an epoch.
        """
        model, replicas = self.models.trained, self.replicas

        @tf.function(reduce_retracing=True, jit_compile=model.jit_compile, autograph=False)
        def step(batch: Any) -> None:
            replicas.strategy.run(model.train_step, args=(batch,))

        return lambda: step(replicas.divide(next(batches)))

    def _judge(self) -> keras.Model:
        """Return a model of the same weights that evaluates on one device.

        Keras's ``evaluate`` fails on several workers as its train function does.
        """
        saved = self.models.saved
        model = keras.Model(saved.input, saved.output)
        model.compile(
            loss=self.trainer.loss(),
            metrics=list(self.trainer.metrics()),
            jit_compile=_jit_compile(),
        )
        return model

    def _epoch(
        self,
        learn: Callable[[], None],
        judge: keras.Model | None,
        progress: Progress,
        checkpoints: Checkpoints,
        callbacks: keras.callbacks.CallbackList,
    ) -> None:
        """Train the rest of an epoch, validate, and count it."""
        model, epoch = self.models.trained, int(progress.epoch)
        model.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        for step in range(int(progress.step), self.steps):
            callbacks.on_train_batch_begin(step)
            learn()
            callbacks.on_train_batch_end(step)
            progress.step.assign(step + 1)
            if step + 1 < self.steps:
                checkpoints.save_if_due()
        self.replicas.take_first(model.non_trainable_variables)
        found = {name: float(value) for name, value in model.get_metrics_result().items()}
        if judge is not None:
            measured = judge.evaluate(self.validation, return_dict=True, verbose=0)
            found |= {f"val_{name}": float(value) for name, value in measured.items()}
        callbacks.on_epoch_end(epoch, found)
        if self.trainer.config.patience:
            # The chief's in all workers, or they would not stop together.
            loss = self.replicas.chiefs_number(found.get(_EVAL_LOSS, 0.0))
            progress.compare(model.weights, loss)
        progress.epoch.assign(epoch + 1)
        progress.step.assign(0)
        checkpoints.save_if_due()


def _jit_compile() -> bool | str:
    """Return whether to compile by XLA: on a CPU this takes longer than short trainings do."""
    return "auto" if tf.config.list_physical_devices("GPU") else False


def _savable(data: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset whose iterators can be saved."""
    settings = tf.data.Options()
    # Tables of words and labels count as state, but they are made anew, and the same.
    settings.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    return data.with_options(settings)
