"""Training on all GPUs of a machine, or on several machines that ``TF_CONFIG`` names.

Each machine reads its share of the examples with its own iterator, whose position checkpoints can
save; the iterators of ``tf.distribute`` cannot be saved. Each GPU of a machine gets a part of the
machine's batch.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

import keras
import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.training.config import TrainingConfig
from recordgen.training.progress_log import log_info

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
        with suppress(tf.errors.OpError):  # the others have ended
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
