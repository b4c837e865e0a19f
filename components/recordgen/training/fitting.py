"""Fit a model in one or two phases, and resume after an earlier process was killed.

Keras's ``fit`` hides the iterator of its data, so the iterator's position cannot be saved: after a
kill, a training would see some examples twice and others never. This loop does what ``fit`` does
with an iterator that can be saved; it runs the model's own training step and calls the callbacks.
Checkpoints hold all state of the next step, including the position in the data.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from recordgen import storage
from recordgen.errors import StorageError, UsageError
from recordgen.training.config import RATE, TrainingConfig
from recordgen.training.learner import TaskTrainer
from recordgen.training.model import Models, train_backbone
from recordgen.training.progress_log import log_info

# --- copies of the model: on all GPUs of a machine, or on several machines that TF_CONFIG names ---

# Each machine reads its share of the examples with its own iterator, whose position checkpoints can
# save; the iterators of tf.distribute cannot be saved. Each GPU of a machine gets a part of the
# machine's batch.

# A GPU, as drivers and runtimes show it, not NVIDIA_VISIBLE_DEVICES: CUDA's images set that on
# machines without a GPU, too.
_DRIVER = "/dev/nvidiactl"

# The tasks of TF_CONFIG that train, in the order of tf.distribute: the first is the chief.
_TRAINING_TASKS = ("chief", "worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The copies of the model that are trained together.

    Attributes:
        strategy: keeps their weights equal.
        worker: the number of this process; 0 is the chief, which writes all files.
    """

    strategy: tf.distribute.Strategy
    worker: int
    workers: int

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the checkpoints, the logs and the model."""
        return self.worker == 0

    @property
    def count(self) -> int:
        """The number of copies in all processes."""
        return int(self.strategy.num_replicas_in_sync)

    def check(self, config: TrainingConfig) -> None:
        """Check that the settings allow this number of copies. Raises: UsageError."""
        if config.batch_size % self.count:
            raise UsageError(
                f"batch_size must be a multiple of {self.count}, the number of devices that train "
                f"together (got {config.batch_size}), such as "
                f"{-(-config.batch_size // self.count) * self.count}"
            )
        if self.count > 1 and config.accumulate > 1:
            raise UsageError(
                f"accumulate must be 1 on several devices, where Keras cannot average the "
                f"gradients of several batches (got {config.accumulate}); omit it"
            )

    def divisible(self, batch_size: int) -> int:
        """Return the largest batch size up to this one that all copies share: at least one each."""
        return max(self.count, batch_size - batch_size % self.count)

    def divide(self, batch: Any) -> Any:
        """Split a batch of this process into one part for each of its devices."""
        here = self.count // self.workers
        if here == 1:
            return batch
        parts = (
            tf.nest.map_structure(itemgetter(slice(n, None, here)), batch) for n in range(here)
        )
        return self.strategy.experimental_distribute_values_from_function(lambda _: next(parts))

    def copy_from_chief(self, variables: Iterable[keras.Variable]) -> None:
        """Set variables to the chief's first copy; waits until all processes have called this.

        Keras lets each device keep its own means and variances of batch normalisation.
        """
        own = [each.value for each in variables if each.value.dtype.is_floating]
        if self.count > 1 and own:
            values = self._broadcast(list(map(tf.identity, own)))
            for variable, value in zip(own, values, strict=True):
                variable.assign(value)

    def log_devices(self, driver: str = _DRIVER) -> None:
        """Log the devices of this process; warn if it has a GPU that TensorFlow does not see."""
        gpus = tf.config.list_logical_devices("GPU")
        log_info("training on %s", ", ".join(gpu.name for gpu in gpus) or "the CPU")
        if not gpus and os.path.exists(driver):
            logging.getLogger("recordgen.training").warning(
                "no GPU is visible to TensorFlow, which trains on the CPU, although this machine "
                "has one: use an image with CUDA (--build-arg ACCELERATOR=gpu)"
            )

    def broadcast_number(self, number: float) -> float:
        """Return the chief's number in all processes; waits until all have called this."""
        [found] = self._broadcast([tf.constant(number, tf.float64)])
        return float(found)

    def leave(self) -> None:
        """Wait until all processes have received what they last waited for.

        The first process that ends closes its connections, from which another may still read.
        """
        with contextlib.suppress(tf.errors.OpError):  # the others have ended
            self._broadcast([tf.constant(0.0)])

    def _broadcast(self, values: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """Return the chief's tensors in all processes; waits until all have called this."""
        if self.workers == 1:
            return values
        own = values if self.is_chief else list(map(tf.zeros_like, values))
        here = self.count // self.workers  # the chief adds its values once per device
        return [
            self.strategy.experimental_local_results(found)[0] / here
            for found in _summed(self.strategy, own)
        ]


@cache
def _all_devices() -> tf.distribute.Strategy:
    """Return the strategy of all trainings in this process; two would number operations alike."""
    return tf.distribute.MirroredStrategy()


# One function for all steps, so that it is traced once for each kind of values.
@tf.function(autograph=False)
def _summed(strategy: tf.distribute.Strategy, values: Sequence[tf.Tensor]) -> Any:
    """Return the sum of values over all devices, on each of them."""

    def summed(own: Sequence[tf.Tensor]) -> Any:
        # Arguments of a function have no device yet; tf.identity places them on one.
        placed = [tf.identity(value) for value in own]
        return tf.distribute.get_replica_context().all_reduce("SUM", placed)

    return strategy.run(summed, args=(values,))


def find_replicas() -> Replicas:
    """Return the copies to train: on the workers of ``TF_CONFIG``, on all GPUs, or on one device.

    With several workers, call this before TensorFlow runs anything in this process.

    Raises:
        UsageError: ``TF_CONFIG`` cannot be read, or it gives this process a task that does not
            train.
    """
    try:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        cluster = resolver.cluster_spec().as_dict()
        task = (resolver.task_type, resolver.task_id)
    except (ValueError, TypeError) as exc:
        raise UsageError(f"TF_CONFIG is not the JSON that TensorFlow expects: {exc}") from exc
    tasks = [(kind, n) for kind in _TRAINING_TASKS for n in range(len(cluster.get(kind, ())))]
    if len(tasks) > 1:
        if task not in tasks:
            raise UsageError(
                f"TF_CONFIG: the task must be one of {', '.join(f'{k} {n}' for k, n in tasks)} "
                f"(got {task[0]} {task[1]}); do not start the training for this task"
            )
        strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
        return Replicas(strategy=strategy, worker=tasks.index(task), workers=len(tasks))
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    strategy = _all_devices() if len(devices) > 1 else tf.distribute.get_strategy()
    return Replicas(strategy=strategy, worker=0, workers=1)


# --- the loop -------------------------------------------------------------------------------------

_EVAL_LOSS = "val_loss"


class Phase(NamedTuple):
    """A range of epochs with the same settings.

    Attributes:
        first: the first epoch, from 0.
        end: the epoch after the last one.
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
    rate = config.learning_rate or RATE
    phases = [
        Phase(0, frozen, rate, is_frozen=True),
        Phase(frozen, epochs, config.fine_tune_rate if frozen else rate, is_frozen=False),
    ]
    return [phase for phase in phases if phase.first < phase.end]


def learning_rates(config: TrainingConfig, rate: float, epochs: int, steps: int) -> Any:
    """Return the schedule of the learning rate; ``rate`` is its highest value.

    Keras counts every step, even when it averages the gradients of several.
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
    """A training: models, data and devices.

    Attributes:
        steps: the number of steps in an epoch.
        validation: labelled batches that are not trained on, or None.
        folder: the folder of this training's checkpoints, shared with no other training.
    """

    trainer: TaskTrainer
    models: Models
    steps: int
    epochs: int
    validation: tf.data.Dataset | None
    callbacks: Iterable[keras.callbacks.Callback]
    replicas: Replicas
    folder: str

    @property
    def patience(self) -> int:
        """The epochs without a lower loss after which the training stops; 0: it does not."""
        given = self.trainer.config.patience
        default = 0 if self.validation is None else self.trainer.patience
        return default if given is None else given

    def run(self) -> Mapping[str, float]:
        """Train in all phases.

        Returns: the loss and the metrics of the last or best weights on split eval; empty without
            it, or on a worker that is not the chief.

        Raises: StorageError: checkpoints cannot be written.
        """
        model, config = self.models.trained, self.trainer.config
        phases = plan_phases(config, self.epochs)
        folders = [storage.join(self.folder, f"phase-{number}") for number in range(len(phases))]
        begun = max((n for n, folder in enumerate(folders) if has_checkpoint(folder)), default=0)
        progress = Progress(model.weights if self.patience else ())
        replicas = self.replicas
        data = self.trainer.train_data(replicas.worker, replicas.workers)
        batches = iter(_savable(data))
        callbacks = keras.callbacks.CallbackList(
            list(self.callbacks), model=model, epochs=self.epochs, steps=self.steps
        )
        validate = self._validate() if replicas.is_chief else dict[str, Any]
        callbacks.on_train_begin()
        for phase, folder in list(zip(phases, folders, strict=True))[begun:]:
            with replicas.strategy.scope():
                self._compile(phase)
            train_step = self._train_step(batches)
            progress.epoch.assign(phase.first)
            progress.step.assign(0)
            progress.waited.assign(0)
            checkpoints = Checkpoints(folder, self, batches, progress)
            if checkpoints.restore():
                log_info(
                    "resumed after epoch %d/%d and step %d/%d, from %s",
                    *(int(progress.epoch), self.epochs, int(progress.step), self.steps, folder),
                )
            while int(progress.epoch) < phase.end and not self._is_over(progress):
                self._epoch(train_step, validate, progress, checkpoints, callbacks)
            if self.patience:
                progress.restore_best(model.weights)
        callbacks.on_train_end()
        return _numbers(validate())

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of a finished training. Raises: StorageError."""
        if self.replicas.is_chief:
            with _storage_errors(self.folder):
                if tf.io.gfile.exists(self.folder):
                    tf.io.gfile.rmtree(self.folder)

    def _is_over(self, progress: Progress) -> bool:
        """Return whether to stop early: the last ``patience`` epochs did not lower the loss."""
        is_over = 0 < self.patience <= int(progress.waited)
        if is_over:
            log_info(
                "stopped after epoch %d/%d: the loss on split eval was not lower for %d epochs",
                *(int(progress.epoch), self.epochs, self.patience),
            )
        return is_over

    def _compile(self, phase: Phase) -> None:
        model, config = self.models.trained, self.trainer.config
        if self.models.backbone is not None:
            train_backbone(self.models.backbone, is_frozen=phase.is_frozen)
        rates = learning_rates(config, phase.rate, phase.end - phase.first, self.steps)
        accumulated = config.accumulate if config.accumulate > 1 else None
        optimizer = keras.optimizers.Adam(
            rates, weight_decay=self.trainer.weight_decay, gradient_accumulation_steps=accumulated
        )
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
        model.compile(
            optimizer=optimizer,
            loss=self.trainer.loss(),
            metrics=list(self.trainer.metrics()),
            jit_compile=_jit_compile(),
        )
        model.optimizer.build(model.trainable_variables)

    def _train_step(self, batches: Iterator[Any]) -> Callable[[], None]:
        """Return a function that trains on the next batch.

        Keras's own train function fails on several workers when it reduces the metrics
        (tensorflow/tensorflow#72388); :meth:`_epoch` reads them at the end of an epoch instead.
        """
        model, replicas = self.models.trained, self.replicas

        @tf.function(reduce_retracing=True, jit_compile=model.jit_compile, autograph=False)
        def step(batch: Any) -> None:
            replicas.strategy.run(model.train_step, args=(batch,))

        return lambda: step(replicas.divide(next(batches)))

    def _validate(self) -> Callable[[], Mapping[str, Any]]:
        """Return a function that measures the model on split eval, if there is one, on one device.

        Keras's ``evaluate`` fails on several workers, as its train function does, and it begins
        another pass over the data when it has ended one.
        """
        data, saved = self.validation, self.models.saved
        if data is None:
            return dict[str, Any]
        model, spec = keras.Model(saved.input, saved.output), data.element_spec
        loss, metrics = self.trainer.loss(), list(self.trainer.metrics())
        model.compile(loss=loss, metrics=metrics, jit_compile=_jit_compile())

        @tf.function(input_signature=[spec], jit_compile=model.jit_compile, autograph=False)
        def step(batch: Any) -> None:
            model.test_step(batch)

        def validate() -> Mapping[str, Any]:
            model.reset_metrics()
            for batch in data:
                step(batch)
            return model.get_metrics_result()

        return validate

    def _epoch(
        self,
        train_step: Callable[[], None],
        validate: Callable[[], Mapping[str, Any]],
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
            train_step()
            callbacks.on_train_batch_end(step)
            progress.step.assign(step + 1)
            if step + 1 < self.steps:
                checkpoints.save_if_due()
        self.replicas.copy_from_chief(model.non_trainable_variables)
        found = _numbers(model.get_metrics_result())
        found |= {f"val_{name}": value for name, value in _numbers(validate()).items()}
        callbacks.on_epoch_end(epoch, found)
        if self.patience:
            # All workers compare the chief's loss, so that they stop together.
            loss = self.replicas.broadcast_number(found.get(_EVAL_LOSS, 0.0))
            progress.compare(model.weights, loss)
        progress.epoch.assign(epoch + 1)
        progress.step.assign(0)
        checkpoints.save_if_due()


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.items()}


def _jit_compile() -> bool | str:
    """Return whether to use XLA: on a CPU, compiling takes longer than a short training."""
    return "auto" if tf.config.list_physical_devices("GPU") else False


def _savable(data: tf.data.Dataset) -> tf.data.Dataset:
    settings = tf.data.Options()
    # TensorFlow counts tables of words and labels as state, but each process builds the same ones.
    settings.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    return data.with_options(settings)


class Progress(tf.Module):
    """The progress of a training.

    Attributes:
        epoch: the current epoch, from 0.
        step: the number of finished steps in this epoch.
        waited: the number of epochs since the best one.
        best_loss: the lowest loss on split eval.
        best: the weights of the best epoch; empty if they are not needed.
    """

    def __init__(self, kept: Iterable[keras.Variable]) -> None:
        super().__init__(name="progress")
        self.epoch = tf.Variable(0, dtype=tf.int64)
        self.step = tf.Variable(0, dtype=tf.int64)
        self.waited = tf.Variable(0, dtype=tf.int64)
        self.best_loss = tf.Variable(float("inf"), dtype=tf.float64)
        self.best = [tf.Variable(weight.value) for weight in kept]

    def compare(self, weights: Sequence[keras.Variable], loss: float) -> None:
        """Keep the weights if their loss is the lowest so far."""
        if loss < float(self.best_loss):
            self.best_loss.assign(loss)
            self.waited.assign(0)
            for best, weight in zip(self.best, weights, strict=True):
                best.assign(weight.value)
        else:
            self.waited.assign_add(1)

    def restore_best(self, weights: Sequence[keras.Variable]) -> None:
        """Assign the best weights; keep the last ones if no loss was a number."""
        if float(self.best_loss) < float("inf"):
            for best, weight in zip(self.best, weights, strict=True):
                weight.assign(best)


class Checkpoints:
    """The checkpoints of one phase of a training, in their own folder.

    A new checkpoint is complete before the old one is removed, so a process may die at any time. A
    checkpoint holds the weights, the state of the optimizer and of all random number generators,
    the progress, and the position of each worker's ``batches`` with their shuffle buffer. So a
    resumed training sees exactly the same batches and drops the same features.
    """

    def __init__(self, folder: str, fitting: Fitting, batches: Any, progress: Progress) -> None:
        model, replicas = fitting.models.trained, fitting.replicas
        # Variables, not only weights: they include the seeds of random layers.
        variables = [*model.variables, *model.optimizer.variables]
        state = list({id(variable): variable.value for variable in variables}.values())
        self._state = tf.train.CheckpointManager(
            tf.train.Checkpoint(state=state, progress=progress), folder, max_to_keep=1
        )
        # Keep two: the chief may die before it has written the state that belongs to the second.
        self._position = tf.train.CheckpointManager(
            tf.train.Checkpoint(batches=batches),
            storage.join(folder, f"worker-{replicas.worker}"),
            max_to_keep=2,
        )
        self._number = 0
        self._replicas = replicas
        self._seconds = 60 * fitting.trainer.config.checkpoint_minutes
        self._saved_at = time.monotonic()

    def restore(self) -> bool:
        """Restore the last checkpoint; return whether there is one. Raises: StorageError."""
        path = self._state.latest_checkpoint
        if self._replicas.broadcast_number(path is not None) != (path is not None):
            raise StorageError(
                f"{self._state.directory}: this worker does not see the chief's checkpoints; "
                f"choose a checkpoint_dir that all workers share"
            )
        if path is None:
            return False
        self._number = int(path.rpartition("-")[2])
        position = storage.join(self._position.directory, f"ckpt-{self._number}")
        with _storage_errors(self._state.directory):
            # assert_consumed: fail if any part of the state was not restored.
            self._state.checkpoint.restore(path).assert_consumed()
            self._position.checkpoint.restore(position).assert_consumed()
        return True

    def save_if_due(self) -> None:
        """Save a checkpoint if the last one is old enough. Raises: StorageError."""
        is_due = time.monotonic() - self._saved_at >= self._seconds
        if not self._replicas.broadcast_number(is_due):
            return
        self._number += 1
        with _storage_errors(self._state.directory):
            self._position.save(checkpoint_number=self._number)
            self._replicas.broadcast_number(self._number)  # wait until all positions are written
            if self._replicas.is_chief:
                self._state.save(checkpoint_number=self._number)
        self._saved_at = time.monotonic()


def has_checkpoint(folder: str) -> bool:
    """Return whether a folder has a checkpoint. Raises: StorageError."""
    with _storage_errors(folder):
        return tf.train.latest_checkpoint(folder) is not None


@contextlib.contextmanager
def _storage_errors(folder: str) -> Iterator[None]:
    try:
        yield
    except tf.errors.OpError as exc:
        raise StorageError(
            f"{folder}: TensorFlow cannot keep checkpoints here ({exc.message}); choose another "
            f"checkpoint_dir"
        ) from exc
