"""Trainers for labels of whole examples: one label per example, or any number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Literal

import keras
import tensorflow as tf

from recordgen.training.config import ACCURACY, AUC, LABEL, UNKNOWN, WEIGHT
from recordgen.training.learner import TaskTrainer


class LabelTrainer(TaskTrainer):
    """The base of both trainers.

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
