"""Checkpoints of a training: all state of its next step, including the position in the data."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from recordgen import storage
from recordgen.errors import StorageError
from recordgen.training.replicas import Replicas


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

    def __init__(
        self,
        folder: str,
        minutes: float,
        model: keras.Model,
        batches: Any,
        progress: Progress,
        replicas: Replicas,
    ) -> None:
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
        self._seconds = 60 * minutes
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


def remove_checkpoints(folder: str) -> None:
    """Remove the checkpoints of a finished training. Raises: StorageError."""
    with _storage_errors(folder):
        if tf.io.gfile.exists(folder):
            tf.io.gfile.rmtree(folder)


@contextlib.contextmanager
def _storage_errors(folder: str) -> Iterator[None]:
    try:
        yield
    except tf.errors.OpError as exc:
        raise StorageError(
            f"{folder}: TensorFlow cannot keep checkpoints here ({exc.message}); choose another "
            f"checkpoint_dir"
        ) from exc
