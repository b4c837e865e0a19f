"""The base classes of trainers: a task names its own as its ``trainer``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import keras
import tensorflow as tf

from recordgen.access.scales import AUTO
from recordgen.core.dataset.manifest import Dataset
from recordgen.errors import DataError, UsageError
from recordgen.reading import Tuning, eval_dataset, steps_per_epoch, train_dataset
from recordgen.reading.targets import lookup_table
from recordgen.training.config import (
    ACCURACY,
    AUC,
    BALANCED,
    EPOCHS,
    LABEL,
    PHOTO,
    RATE,
    SCORES,
    SMALL_CNN,
    UNKNOWN,
    WEIGHT,
    TrainingConfig,
)
from recordgen.training.inputs import Root
from recordgen.training.model import Models
from recordgen.training.model_files import EarlierModel
from recordgen.training.words import word_vectors

#: The input of signatures for serialised records.
EXAMPLES = tf.TensorSpec([None], tf.string, name="examples")

#: A traceable function of a saved model.
Signature: TypeAlias = tf.types.experimental.PolymorphicFunction

_Trainer = TypeVar("_Trainer", bound="TaskTrainer")


@dataclass(frozen=True)
class TaskTrainer(ABC):
    """Data, model and outputs of one task, for training on one split of a dataset.

    Attributes:
        root: folder or URL of the dataset, or of several that are read as one.
        earlier: the model whose weights the training begins with, or None.
    """

    root: Root
    split: str
    dataset: Dataset
    config: TrainingConfig
    earlier: EarlierModel | None = None

    #: The inputs of a request to the saved model, in the order in which :meth:`respond` takes them.
    request: ClassVar[Sequence[tf.TensorSpec]]

    #: The default of the setting, where split eval has labelled examples.
    patience: ClassVar[int] = 0

    #: The default of the setting.
    learning_rate: ClassVar[float] = RATE

    #: Each step shrinks weights by this multiple of the learning rate; None: by nothing.
    weight_decay: ClassVar[float | None] = None

    #: Few examples are read more often: for each pair of steps and epochs, until one is reached.
    repeats: ClassVar[Sequence[tuple[int, int]]] = ((300, 200),)

    def check(self) -> None:
        """Check that there is something to learn. Raises: DataError."""
        if not self.dataset.labels:
            raise DataError(f"{self.root}: no example has a label: there is nothing to learn")

    @property
    def settings(self) -> Set[str]:
        """The names of the settings that this task uses and others cannot."""
        return set()

    def check_settings(self) -> None:
        """Check that every setting suits the task. Raises: UsageError."""
        config = self.config
        changed = {
            "model": config.model != SMALL_CNN,
            "scale": config.scale != AUTO,
            "augment": config.augment == PHOTO,
            "colour": config.colour > 0,
            "class_weights": config.class_weights == BALANCED,
        }
        for name, is_changed in changed.items():
            if is_changed and name not in self.settings:
                raise UsageError(
                    f"{name}={getattr(config, name)!r} does not suit this dataset "
                    f"({self.dataset.task}); omit it"
                )

    def settled(self: _Trainer) -> _Trainer:
        """Return the trainer with the settings that depend on the number of examples."""
        examples = steps_per_epoch(self.root, split=self.split, **{**self.reading, "batch_size": 1})
        batch_size = min(self.config.batch_size, examples)
        few = [min(math.ceil(n * batch_size / examples), most) for n, most in self.repeats]
        epochs = self.config.epochs or max(EPOCHS, *few)
        rate = self.config.learning_rate or self.learning_rate
        config = replace(self.config, batch_size=batch_size, epochs=epochs, learning_rate=rate)
        return replace(self, config=config)

    def can_validate(self, split: str) -> bool:
        """Return whether a split exists and has a labelled example."""
        found = self.dataset.splits.get(split)
        return found is not None and sum(found.labels.values()) > 0

    @property
    def reading(self) -> Mapping[str, Any]:
        """The arguments of :func:`recordgen.eval_dataset`."""
        return {"batch_size": self.config.batch_size}

    @property
    def training(self) -> Mapping[str, Any]:
        """Further arguments of :func:`recordgen.train_dataset`."""
        return {"weights": BALANCED} if self.config.class_weights == BALANCED else {}

    def steps_per_epoch(self) -> int:
        """Return the number of batches in one pass over the split."""
        full = Tuning(drop_remainder=True)
        return steps_per_epoch(self.root, split=self.split, tuning=full, **self.reading)

    def train_data(self, worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """Return endless, shuffled batches of inputs and targets, without unlabelled examples.

        Each batch is divided among the ``workers``, of which ``worker``, from 0, reads this share.
        """
        share = {"shard": (worker, workers), "batch_size": self.config.batch_size // workers}
        settings = {**self.reading, **self.training, **share, "seed": self.config.seed}
        data = train_dataset(self.root, split=self.split, epochs="endless", **settings)
        return self.prepared(data)

    def eval_data(self, root: Root, split: str) -> tf.data.Dataset:
        """Return one pass over a split, in order; see :meth:`can_validate`."""
        return self.prepared(eval_dataset(root, split=split, **self.reading))

    def prepared(self, data: tf.data.Dataset) -> tf.data.Dataset:
        """Return the batches that the model takes."""
        return data

    @abstractmethod
    def models(self) -> Models:
        """Build the models; adapt their layers to the split.

        Raises: UsageError: a setting does not suit the task or the data.
        """

    def known_inputs(self, model: keras.Model) -> Mapping[str, Any]:
        """Return the facts about a model's inputs that a warm start needs, as JSON values."""
        words = [layer.vocabulary for layer in word_vectors(model)]
        return {"words": words} if words else {}

    def outputs_of(self, labels: Sequence[str]) -> Sequence[str]:
        """Return the names of the last layer's outputs, for the labels of a model."""
        return labels

    @abstractmethod
    def loss(self) -> Any:
        """Return the loss for ``keras.Model.compile``."""

    @abstractmethod
    def metrics(self) -> Sequence[keras.metrics.Metric]:
        """Return new metrics that are logged."""

    def more_signatures(self, model: keras.Model) -> Mapping[str, Signature]:
        """Return the task's own signatures; with ``pixels``, layers must be Keras's own."""
        return {}

    @abstractmethod
    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the answers to a request, by name."""

    def best(self, scores: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return ``labels`` (string [batch, k]) and ``scores``, best first, for :meth:`respond`."""
        best, numbers = tf.math.top_k(scores, min(self.config.top_k, len(self.dataset.labels)))
        return {"labels": tf.gather(tf.constant(list(self.dataset.labels)), numbers), SCORES: best}

    @abstractmethod
    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the model's ``scores`` for records (string [batch]), for ``evaluate``."""

    @abstractmethod
    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of ``truth`` for records (string [batch]).

        Returns:
            ``label``: compared with the scores by the task's measure; ``weight``: float32 [batch],
            0 for an example without a label, whose ``label`` is ignored; ``unknown``: see
            :meth:`unknown`, omitted if the target is a number.
        """

    def truth_of_labels(self, records: tf.Tensor, feature: str) -> dict[str, tf.Tensor]:
        """Return the outputs of :meth:`truth` if ``feature`` holds the text of one label."""
        spec = {feature: tf.io.FixedLenFeature((), tf.string, "")}
        return self.truth_of_texts(tf.io.parse_example(records, spec)[feature])

    def truth_of_texts(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of :meth:`truth` for one label each (string [batch], "" if none)."""
        is_labelled = texts != ""
        return {
            LABEL: tf.where(is_labelled, self.numbers(texts), 0),
            WEIGHT: tf.cast(is_labelled, tf.float32),
            UNKNOWN: self.unknown(tf.RaggedTensor.from_tensor(texts[:, None])),
        }

    def numbers(self, texts: Any) -> Any:
        """Return the model's numbers of labels (int64, as ``texts``), -1 for unknown ones.

        The numbers in records are not used: another dataset may number its labels differently.
        """
        return self.label_table.lookup(texts)

    def unknown(self, texts: tf.RaggedTensor) -> tf.Tensor:
        """Return the labels (string [batch, n]) that the model does not know, padded with ""."""
        is_unknown = (self.numbers(texts) < 0) & (texts != "")
        # One column more than needed: TFMA does not accept an array without values.
        return tf.pad(tf.ragged.boolean_mask(texts, is_unknown).to_tensor(""), [[0, 0], [0, 1]])

    @cached_property
    def label_table(self) -> tf.lookup.StaticHashTable:
        """The table from labels to numbers; the saved model must track it."""
        numbers = {label: number for number, label in enumerate(self.dataset.labels)}
        return lookup_table(numbers, default=-1)


class LabelTrainer(TaskTrainer):
    """The base of the two trainers for labels of whole examples.

    Attributes:
        activation: the activation of the last layer.
        label_mode: see :class:`recordgen.reading.LabelOptions`.
        feature: the feature with the texts of the labels.
    """

    activation: ClassVar[str]
    label_mode: ClassVar[Literal["int", "multi_hot"]]
    feature: ClassVar[str]

    @property
    def reading(self) -> Mapping[str, Any]:
        return {**super().reading, "label_mode": self.label_mode}


class OneLabel(LabelTrainer):
    """One label per example."""

    activation = "softmax"
    label_mode = "int"

    @property
    def settings(self) -> Set[str]:
        return {*super().settings, "class_weights"}

    def loss(self) -> str:
        return "sparse_categorical_crossentropy"

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        return [keras.metrics.SparseCategoricalAccuracy(name=ACCURACY)]

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the number of each label, int64 [batch]; -1 if unknown, 0 without a label."""
        return self.truth_of_labels(records, self.feature)


class ManyLabels(LabelTrainer):
    """Any number of labels per example."""

    activation = "sigmoid"
    label_mode = "multi_hot"

    def loss(self) -> str:
        return "binary_crossentropy"

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        # Use Keras's default thresholds: in a graph, others fail together with multi_label.
        # With num_labels, variables are created here, not in a step on several devices.
        classes = len(self.dataset.labels)
        return [keras.metrics.AUC(multi_label=True, num_labels=classes, name=AUC)]

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return 0 and 1 for each label that the model knows, float32 [batch, classes]."""
        classes = len(self.dataset.labels)
        spec = {self.feature: tf.io.RaggedFeature(tf.string)}
        texts = tf.io.parse_example(records, spec)[self.feature]
        hot = tf.reduce_sum(tf.one_hot(self.numbers(texts), classes), axis=1)
        return {
            LABEL: tf.ensure_shape(hot, [None, classes]),
            WEIGHT: tf.cast(texts.row_lengths() > 0, tf.float32),
            UNKNOWN: self.unknown(texts),
        }


def in_order(data: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
    """Return a dataset with each batch changed by a function, several at a time, in order."""
    function = tf.autograph.experimental.do_not_convert(function)
    return data.map(function, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
