"""Training on all GPUs of a machine, or on several machines that ``TF_CONFIG`` names.

Each machine reads its own share of the examples with an iterator of its own, which checkpoints can
hold; ``tf.distribute``'s own iterators cannot be saved. Each GPU of a machine gets its part of the
machine's batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

import keras
import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.training.config import TrainingConfig

# The tasks of TF_CONFIG that train, in the order of tf.distribute: the first one is the chief.
_TRAINING_TASKS = ("chief", "worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The copies of the model that are trained together.

    Attributes:
        strategy: keeps their weights equal.
        worker: this process's number; 0: the chief, which writes what the training gives.
        workers: the number of processes.
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
        """Check that the settings go with several copies. Raises: UsageError."""
        if config.batch_size % self.count:
            raise UsageError(
                f"batch_size must be a multiple of the {self.count} devices that train together "
                f"(got {config.batch_size}); {-(-config.batch_size // self.count) * self.count} is "
                f"one"
            )
        if self.count > 1 and config.accumulate > 1:
            raise UsageError(
                f"accumulate must be 1 on several devices, where Keras cannot average the "
                f"gradients of several batches (got {config.accumulate}); leave it out"
            )

    def divide(self, batch: Any) -> Any:
        """Return a batch of this process as one part for each of its devices."""
        here = self.count // self.workers
        if here == 1:
            return batch
        parts = (
            tf.nest.map_structure(itemgetter(slice(n, None, here)), batch) for n in range(here)
        )
        return self.strategy.experimental_distribute_values_from_function(lambda _: next(parts))

    def take_first(self, variables: Iterable[keras.Variable]) -> None:
        """Set variables to the chief's first copy of them, when all processes have called this.

        Keras lets each device keep its own means and variances of batch normalisation.
        """
        own = [each.value for each in variables if each.value.dtype.is_floating]
        if self.count > 1 and own:
            for variable, value in zip(own, self._chiefs(list(map(tf.identity, own))), strict=True):
                variable.assign(value)

    def chiefs_number(self, number: float) -> float:
        """Return the chief's number in all processes, when all have called this."""
        [found] = self._chiefs([tf.constant(number, tf.float64)])
        return float(found)

    def _chiefs(self, values: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """Return the chief's tensors in all processes, when all have called this."""
        if self.workers == 1:
            return values
        own = values if self.is_chief else list(map(tf.zeros_like, values))
        here = self.count // self.workers  # as often the chief's values are added
        return [
            self.strategy.experimental_local_results(found)[0] / here
            for found in _summed(self.strategy, own)
        ]


@cache
def _all_devices() -> tf.distribute.Strategy:
    """Return one strategy for all trainings of a process: two number their operations alike."""
    return tf.distribute.MirroredStrategy()


# Traced once for each kind of values: a new function for each step would be a new trace.
@tf.function(autograph=False)
def _summed(strategy: tf.distribute.Strategy, values: Sequence[tf.Tensor]) -> Any:
    """Return the sum of values over all devices, on each of them."""

    def summed(own: Sequence[tf.Tensor]) -> Any:
        # Identities, as arguments of a function have no device yet.
        placed = [tf.identity(value) for value in own]
        return tf.distribute.get_replica_context().all_reduce("SUM", placed)

    return strategy.run(summed, args=(values,))


def find_replicas() -> Replicas:
    """Return the copies to train: on the workers of ``TF_CONFIG``, or on all GPUs, or just one.

    TensorFlow must not have run anything in this process if there are several workers.

    Raises:
        UsageError: ``TF_CONFIG`` cannot be read, or this process has no part in the training.
    """
    try:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        cluster = resolver.cluster_spec().as_dict()
        task = (resolver.task_type, resolver.task_id)
    except (ValueError, TypeError) as exc:
        raise UsageError(f"TF_CONFIG is not JSON as TensorFlow needs it: {exc}") from exc
    tasks = [(kind, n) for kind in _TRAINING_TASKS for n in range(len(cluster.get(kind, ())))]
    if len(tasks) > 1:
        if task not in tasks:
            raise UsageError(
                f"TF_CONFIG: the task must be one of {', '.join(f'{k} {n}' for k, n in tasks)} "
                f"(got {task[0]} {task[1]}); do not start the training for it"
            )
        strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
        return Replicas(strategy=strategy, worker=tasks.index(task), workers=len(tasks))
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    strategy = _all_devices() if len(devices) > 1 else tf.distribute.get_strategy()
    return Replicas(strategy=strategy, worker=0, workers=1)
