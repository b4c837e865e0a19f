"""What a task teaches :func:`recordgen.training.run.run`: its data, its model, and its answers.

A further task with a model is a subclass of :class:`Learner` in a module of its own, an entry in
:data:`recordgen.training.learners.LEARNERS`, and a name in
:data:`recordgen.training.config.MODEL_TASKS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from recordgen.dataset.manifest import Dataset
from recordgen.errors import DataError, UsageError
from recordgen.scales import AUTO
from recordgen.training.config import SCORES, SMALL_CNN, TrainingConfig


class Models(NamedTuple):
    """The same weights twice.

    Attributes:
        trained: what is fitted; may hold more, such as layers that augment.
        saved: what is saved, and answers.
    """

    trained: keras.Model
    saved: keras.Model


@dataclass(frozen=True)
class Learner(ABC):
    """How one task is learnt from one split of a dataset.

    Attributes:
        root: folder or URL of the dataset.
        split: the split to train on.
        dataset: what its ``dataset.json`` says.
        config: how to train.
    """

    root: str
    split: str
    dataset: Dataset
    config: TrainingConfig

    def check(self) -> None:
        """Check that there is something to learn. Raises: DataError."""
        if not self.dataset.labels:
            raise DataError(f"{self.root}: no example has a label: there is nothing to learn")

    def check_model(self) -> None:
        """Check that nothing is asked for that only models of images have. Raises: UsageError."""
        if self.config.model != SMALL_CNN:
            raise UsageError(
                f"model must be {SMALL_CNN} for {self.dataset.task} (got {self.config.model!r}); "
                f"leave it out"
            )
        if self.config.scale != AUTO:
            raise UsageError(
                f"scale is for labels of images, not for {self.dataset.task} (got "
                f"{self.config.scale!r}); leave it out"
            )

    def can_validate(self, split: str) -> bool:
        """Say whether a split is there and has a labelled example."""
        found = self.dataset.splits.get(split)
        return found is not None and sum(found.labels.values()) > 0

    @abstractmethod
    def steps_per_epoch(self) -> int:
        """Return how many batches one pass over the split gives."""

    @abstractmethod
    def train_data(self) -> tf.data.Dataset:
        """Return endless, shuffled batches of inputs and targets, without unlabelled examples."""

    @abstractmethod
    def eval_data(self, root: str, split: str) -> tf.data.Dataset:
        """Return one pass over a split for which :meth:`can_validate`, in batches alike."""

    @abstractmethod
    def models(self) -> Models:
        """Build the models; layers that adapt to data do so here, to the split to train on.

        Raises:
            UsageError: a setting does not go with the task or the data.
        """

    @abstractmethod
    def loss(self) -> Any:
        """Return the loss, as ``keras.Model.compile`` takes it."""

    @abstractmethod
    def metrics(self) -> Sequence[keras.metrics.Metric]:
        """Return new metrics that are logged."""

    @abstractmethod
    def serving(self, model: keras.Model) -> tf.types.experimental.PolymorphicFunction:
        """Return the signature ``serving_default``: a ``tf.function`` with an input signature.

        Args:
            model: the saved one. What the function looks up (tables, say) must belong to it: no
                more is saved.
        """

    def best(self, scores: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return ``labels`` (string [batch, k]) and ``scores``, best first, for :meth:`serving`.

        Args:
            scores: of labels, float32 [batch, classes].
        """
        k = min(self.config.top_k, len(self.dataset.labels))
        best, numbers = tf.math.top_k(scores, k)
        return {"labels": tf.gather(tf.constant(list(self.dataset.labels)), numbers), SCORES: best}

    @abstractmethod
    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return what ``model`` says of records (string [batch]): ``scores`` of ``evaluate``."""

    @abstractmethod
    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return what records (string [batch]) say themselves: the outputs of ``truth``.

        Returns:
            ``label``: what the scores are compared with, by the task's measure; ``weight``: float32
            [batch], 0 for an example without a label, whose ``label`` may be anything then.
        """
