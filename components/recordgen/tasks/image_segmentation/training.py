"""Image segmentation: a small U-Net that predicts the class of each pixel.

"U-Net: Convolutional Networks for Biomedical Image Segmentation" (Ronneberger et al., 2015), with
fewer filters, and padded convolutions, so that masks have the size of their images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from recordgen import features
from recordgen.errors import DataError
from recordgen.reading.detection import whole_masks
from recordgen.subjects.masks import IGNORED
from recordgen.tasks.images.training import ImageTrainer
from recordgen.training.config import FLOAT32, LABEL, MEAN_IOU, UNKNOWN, WEIGHT, TrainingConfig
from recordgen.training.measures import UNKNOWN_CLASS
from recordgen.training.model import Models, convolved, doubled, predicted

# Filters of the layers before each halving, and of those in the middle.
_FILTERS = (16, 32, 64)
_MIDDLE = 128

# Levels of a mask.
_LEVELS = 256


class ImageSegmenter(ImageTrainer):
    """A class for each pixel."""

    learning_rate = 3e-3

    def check(self) -> None:
        super().check()
        found = [label for split in self.dataset.splits.values() for label in split.labels]
        if len(set(found)) < 2:
            raise DataError(
                f"{self.root}: all pixels of the masks have the class {found[0]!r} or 255, which "
                f"is no class: there is nothing to learn; if 255 is a class, write 1 instead"
            )

    def models(self) -> Models:
        model = build_unet(self.config, len(self.dataset.labels))
        return Models(model, model)

    def loss(self) -> Any:
        return pixels_loss

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        classes = len(self.dataset.labels)
        return [keras.metrics.MeanIoU(classes, MEAN_IOU, None, IGNORED, sparse_y_pred=False)]

    def answers(self, model: keras.Model, images: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return ``masks``: the number of each pixel's class in the resized image."""
        return {"masks": self.image_scores(model, images)}

    def image_scores(self, model: keras.Model, images: tf.Tensor) -> tf.Tensor:
        """Return the number of each pixel's class, int32 [batch, height, width]."""
        return tf.argmax(predicted(model, images), -1, output_type=tf.int32)

    def pixel_scores(self, model: keras.Model, pixels: tf.Tensor) -> tf.Tensor:
        return tf.nn.softmax(predicted(model, pixels))

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the number of each pixel's class, int32 [batch, height, width].

        255: no class; -1: a class that the model does not know.
        """
        encoded, text = features.IMAGE_MASK_ENCODED, features.IMAGE_MASK_TEXT
        spec = {
            encoded: tf.io.FixedLenFeature((), tf.string, ""),
            text: tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64),
            features.IMAGE_MASK_LABEL: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
        }
        parsed = tf.io.parse_example(records, spec)
        stored = whole_masks(parsed[encoded]).decoded(self.config.size)
        texts, numbers = parsed[text], parsed[features.IMAGE_MASK_LABEL]
        # Another dataset may number its classes differently.
        known = tf.cast(self.numbers(texts).values, tf.int32)
        own = tf.where(known < 0, UNKNOWN_CLASS, known)
        places = tf.stack([numbers.value_rowids(), numbers.values], 1)
        table = tf.fill([tf.size(records), _LEVELS], IGNORED)
        table = tf.tensor_scatter_nd_update(table, places, own)
        masks = tf.gather(table, tf.cast(stored, tf.int32), batch_dims=1)
        return {
            LABEL: tf.ensure_shape(masks, (None, *self.config.size)),
            WEIGHT: tf.cast(tf.strings.length(parsed[encoded]) > 0, tf.float32),
            UNKNOWN: self.unknown(texts),
        }


def build_unet(config: TrainingConfig, classes: int) -> keras.Model:
    """Build the network.

    Returns:
        float32 [batch, height, width, 3] in [0, 1] → float32 [batch, height, width, classes], the
        logits of the classes.
    """
    inputs = keras.Input((*config.size, 3), name="image")
    outputs, passed = inputs, []
    for filters in _FILTERS:
        outputs = _twice_convolved(outputs, filters)
        passed.append(outputs)
        outputs = keras.layers.MaxPooling2D(padding="same")(outputs)
    outputs = convolved(outputs, _MIDDLE)
    outputs = keras.layers.SpatialDropout2D(config.dropout, seed=config.seed)(outputs)
    for seen in reversed(passed):
        outputs = keras.layers.Concatenate()([doubled(outputs, seen), seen])
        outputs = _twice_convolved(outputs, seen.shape[-1])
    answers = keras.layers.Conv2D(classes, 1, dtype=FLOAT32, name="classes")(outputs)
    return keras.Model(inputs, answers, name="small_unet")


def _twice_convolved(images: keras.KerasTensor, filters: int) -> keras.KerasTensor:
    return convolved(convolved(images, filters), filters)


def pixels_loss(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    """Return the mean cross-entropy of the pixels that have a class.

    Args:
        y_true: uint8 [batch, height, width]: class numbers, 255 for none.
        y_pred: float32 [batch, height, width, classes]: logits.
    """
    counts = tf.not_equal(tf.cast(y_true, tf.int32), IGNORED)
    numbers = tf.where(counts, tf.cast(y_true, tf.int32), 0)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(numbers, y_pred)
    weights = tf.cast(counts, losses.dtype)
    return tf.reduce_sum(losses * weights) / tf.maximum(tf.reduce_sum(weights), 1.0)
