"""What differs from task to task: the last layer, the loss, the metric, and the truth for TFMA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import keras
import tensorflow as tf

from recordgen import features
from recordgen.reading import parsing_spec
from recordgen.tasks import ImageClassification, ImageMultiLabel
from recordgen.training.config import ACCURACY, AUC, LABEL, WEIGHT


@dataclass(frozen=True, slots=True)
class Objective:
    """How a model learns a task.

    Attributes:
        activation: of the last layer.
        loss: Keras's name of the loss.
        metric: makes the metric that is logged.
        label_mode: how labels are read, see :class:`recordgen.reading.ReadOptions`.
        truth: takes serialised records (string [batch]) and the number of classes, returns the
            outputs of the signature ``truth``, see :mod:`recordgen.training.serving`.
    """

    activation: str
    loss: str
    metric: Callable[[], keras.metrics.Metric]
    label_mode: str
    truth: Callable[[tf.Tensor, int], dict[str, tf.Tensor]]


def _one_label(records: tf.Tensor, classes: int) -> dict[str, tf.Tensor]:
    """Return the number of each record's label, 0 with a weight of 0 where there is none."""
    parsed = tf.io.parse_example(records, parsing_spec([features.IMAGE_CLASS_LABEL]))
    label = parsed[features.IMAGE_CLASS_LABEL]
    is_labelled = label != features.NO_LABEL
    return {
        LABEL: tf.where(is_labelled, label, tf.zeros_like(label)),
        WEIGHT: tf.cast(is_labelled, tf.float32),
    }


def _many_labels(records: tf.Tensor, classes: int) -> dict[str, tf.Tensor]:
    """Return 0 and 1 for each class, with a weight of 0 for records without any label."""
    spec = {features.IMAGE_CLASS_LABEL: tf.io.RaggedFeature(tf.int64)}
    labels = tf.io.parse_example(records, spec)[features.IMAGE_CLASS_LABEL]
    hot = tf.reduce_sum(tf.one_hot(labels, classes), axis=1)
    return {
        LABEL: tf.ensure_shape(hot, [None, classes]),
        WEIGHT: tf.cast(labels.row_lengths() > 0, tf.float32),
    }


#: By the task of ``dataset.json``.
OBJECTIVES: Mapping[str, Objective] = {
    ImageClassification.name: Objective(
        activation="softmax",
        loss="sparse_categorical_crossentropy",
        metric=lambda: keras.metrics.SparseCategoricalAccuracy(name=ACCURACY),
        label_mode="index",
        truth=_one_label,
    ),
    ImageMultiLabel.name: Objective(
        activation="sigmoid",
        loss="binary_crossentropy",
        # With Keras's own thresholds: given ones fail in a graph together with multi_label.
        metric=lambda: keras.metrics.AUC(multi_label=True, name=AUC),
        label_mode="multi_hot",
        truth=_many_labels,
    ),
}
