"""Labels of whole images: one for each, or any number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import keras
import tensorflow as tf

from recordgen import features
from recordgen.reading import (
    decode_images,
    eval_dataset,
    parsing_spec,
    steps_per_epoch,
    train_dataset,
)
from recordgen.training.config import ACCURACY, AUC, LABEL, SCORES, WEIGHT
from recordgen.training.images import IMAGE_BYTES, stored_images
from recordgen.training.learner import Learner, Models
from recordgen.training.model import augmented, build_model


class ImageLabels(Learner):
    """What both have in common: a score for each label.

    Attributes:
        activation: of the last layer.
        label_mode: how labels are read, see :class:`recordgen.reading.ReadOptions`.
    """

    activation: ClassVar[str]
    label_mode: ClassVar[str]

    def steps_per_epoch(self) -> int:
        """Return how many batches of labelled images one pass gives."""
        return steps_per_epoch(
            self.root, self.config.batch_size, split=self.split, label_mode=self.label_mode
        )

    def train_data(self) -> tf.data.Dataset:
        """Return batches of images and labels."""
        return train_dataset(
            self.root,
            batch_size=self.config.batch_size,
            image_size=self.config.image_size,
            split=self.split,
            seed=self.config.seed,
            label_mode=self.label_mode,
            augment=None,  # the model does that itself; see TrainingConfig.augmentation
        )

    def eval_data(self, root: str, split: str) -> tf.data.Dataset:
        """Return batches of images and labels."""
        return eval_dataset(
            root,
            batch_size=self.config.batch_size,
            image_size=self.config.image_size,
            split=split,
            label_mode=self.label_mode,
        )

    def models(self) -> Models:
        """Build a classifier, and train it behind random shifts, turns and zooms."""
        model = build_model(self.config, len(self.dataset.labels), self.activation)
        return Models(augmented(model, self.config), model)

    def serving(self, model: keras.Model) -> tf.types.experimental.PolymorphicFunction:
        """``image_bytes`` → ``labels`` and ``scores``, best first."""
        vocabulary = tf.constant(list(self.dataset.labels))
        k = min(self.config.top_k, len(self.dataset.labels))

        @tf.function(input_signature=[IMAGE_BYTES])
        def serve(image_bytes: tf.Tensor) -> dict[str, tf.Tensor]:
            images = decode_images(image_bytes, self.config.image_size)
            scores, numbers = tf.math.top_k(model(images, training=False), k)
            return {"labels": tf.gather(vocabulary, numbers), SCORES: scores}

        return serve

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each label, float32 [batch, classes]."""
        return model(stored_images(records, self.config.image_size), training=False)

    @abstractmethod
    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return what the records are labelled with."""


class OneImageLabel(ImageLabels):
    """One label per image."""

    activation = "softmax"
    label_mode = "index"

    def loss(self) -> str:
        """Return the cross-entropy."""
        return "sparse_categorical_crossentropy"

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        """Return the accuracy."""
        return [keras.metrics.SparseCategoricalAccuracy(name=ACCURACY)]

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the number of each label, int64 [batch], 0 where there is none."""
        parsed = tf.io.parse_example(records, parsing_spec([features.IMAGE_CLASS_LABEL]))
        label = parsed[features.IMAGE_CLASS_LABEL]
        is_labelled = label != features.NO_LABEL
        return {
            LABEL: tf.where(is_labelled, label, tf.zeros_like(label)),
            WEIGHT: tf.cast(is_labelled, tf.float32),
        }


class ManyImageLabels(ImageLabels):
    """Any number of labels per image."""

    activation = "sigmoid"
    label_mode = "multi_hot"

    def loss(self) -> str:
        """Return the mean over the labels of each one's cross-entropy."""
        return "binary_crossentropy"

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        """Return the mean AUC of the labels."""
        # With Keras's own thresholds: given ones fail in a graph together with multi_label.
        return [keras.metrics.AUC(multi_label=True, name=AUC)]

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return 0 and 1 for each label, float32 [batch, classes]."""
        classes = len(self.dataset.labels)
        spec = {features.IMAGE_CLASS_LABEL: tf.io.RaggedFeature(tf.int64)}
        labels = tf.io.parse_example(records, spec)[features.IMAGE_CLASS_LABEL]
        hot = tf.reduce_sum(tf.one_hot(labels, classes), axis=1)
        return {
            LABEL: tf.ensure_shape(hot, [None, classes]),
            WEIGHT: tf.cast(labels.row_lengths() > 0, tf.float32),
        }
