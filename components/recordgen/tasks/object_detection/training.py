"""Object detection: a small network that predicts the box of each cell of a grid.

See :mod:`recordgen.tasks.object_detection.box_grid` for the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from recordgen import features
from recordgen.reading.objects import for_each_box
from recordgen.tasks.images.training import ImageTrainer
from recordgen.tasks.object_detection.box_grid import BOX, CELL, decode, encode
from recordgen.training.config import FLOAT32, LABEL, SCORES, UNKNOWN, WEIGHT, TrainingConfig
from recordgen.training.learner import in_order
from recordgen.training.measures import CROWD, MOST_BOXES
from recordgen.training.model import Models, convolved, doubled

# Almost no cell is a centre, so start with low scores.
_FIRST_SCORE = 0.01

# Filters of the layers before each halving; after the last one, a pixel is a cell.
_TO_CELLS = (16, 32)
_FILTERS = 64
_MORE_FILTERS = 128


class ObjectDetector(ImageTrainer):
    """Any number of labelled boxes per image."""

    def prepared(self, data: tf.data.Dataset) -> tf.data.Dataset:
        return in_order(data, self._targets)

    def models(self) -> Models:
        model = build_detector(self.config, len(self.dataset.labels))
        return Models(model, model)

    def loss(self) -> Any:
        return cells_loss

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        """Return no metric: average precision needs all boxes of a split at once."""
        return []

    def answers(self, model: keras.Model, images: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return ``boxes``, ``labels`` and ``scores``, best first."""
        boxes, labels, scores = self._found(model, images, self.config.top_k)
        names = tf.gather(tf.constant(list(self.dataset.labels)), labels)
        return {"boxes": boxes, "labels": names, SCORES: scores}

    def image_scores(self, model: keras.Model, images: tf.Tensor) -> tf.Tensor:
        """Return the best boxes: float32 [batch, k, 6], padded with -1.

        The columns are left, top, right, bottom, number of the class, score.
        """
        boxes, labels, scores = self._found(model, images, MOST_BOXES)
        last = tf.stack([tf.cast(labels, tf.float32), scores], -1)
        return tf.where(scores[..., None] > 0, tf.concat([boxes, last], -1), -1.0)

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the boxes: float32 [batch, n, 5], padded with -1.

        The columns are left, top, right, bottom, number of the class (-1 if the model does not know
        it; of a box around a crowd, :data:`recordgen.training.measures.CROWD` minus the
        number). An image without boxes counts as labelled, as in training.
        """
        spec = {name: tf.io.RaggedFeature(tf.float32) for name in features.BBOX}
        spec[features.IMAGE_OBJECT_TEXT] = tf.io.RaggedFeature(tf.string)
        spec[features.IMAGE_OBJECT_IS_CROWD] = tf.io.RaggedFeature(tf.int64)
        parsed = tf.io.parse_example(records, spec)
        texts = parsed[features.IMAGE_OBJECT_TEXT]
        is_crowd = for_each_box(parsed[features.IMAGE_OBJECT_IS_CROWD], texts) > 0
        labels = self.numbers(texts)
        labels = tf.where(is_crowd & (labels >= 0), CROWD - labels, labels)
        columns = [parsed[name].values for name in features.BBOX]
        rows = labels.with_values(tf.stack([*columns, tf.cast(labels.values, tf.float32)], 1))
        # One row more than needed: even a batch without boxes needs a row.
        padded = tf.pad(rows.to_tensor(-1.0), ((0, 0), (0, 1), (0, 0)), constant_values=-1.0)
        return {
            LABEL: tf.ensure_shape(padded, (None, None, BOX + 1)),
            WEIGHT: tf.ones_like(records, tf.float32),
            UNKNOWN: self.unknown(tf.ragged.boolean_mask(texts, ~is_crowd)),
        }

    @tf.autograph.experimental.do_not_convert
    def _targets(
        self, images: tf.Tensor, found: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return images, and the score, class and box of each cell, for :func:`cells_loss`."""
        return images, encode(found["boxes"], found["labels"], self.config.size)

    def _found(self, model: keras.Model, images: tf.Tensor, most: int) -> tuple[tf.Tensor, ...]:
        parts = 1, BOX, model.output_shape[-1] - 1 - BOX
        scores, boxes, classes = tf.split(model(images, training=False), parts, -1)
        return decode(
            tf.sigmoid(scores[..., 0]), tf.nn.softmax(classes), boxes, self.config.size, most
        )


def build_detector(config: TrainingConfig, classes: int) -> keras.Model:
    """Build the network.

    It halves the image down to about 4 pixels, and upsamples again to cells of 4 pixels, with skip
    connections: each cell sees its surroundings and its own pixels.

    Returns:
        float32 [batch, height, width, 3] in [0, 1] → float32 [batch, rows, columns, 5 + classes]:
        for each cell the logit of its score, its box, and the logits of the classes.
    """
    inputs = keras.Input((*config.size, 3), name="image")
    outputs = inputs
    for filters in _TO_CELLS:
        outputs = _halved(convolved(outputs, filters))
    outputs, side = convolved(outputs, _FILTERS), min(config.size) // CELL
    passed = []
    while side >= 8:
        passed.append(outputs)
        outputs, side = convolved(_halved(outputs), _MORE_FILTERS), side // 2
    for seen in reversed(passed):
        filters = seen.shape[-1]
        outputs = doubled(keras.layers.Conv2D(filters, 1)(outputs), seen)
        outputs = convolved(keras.layers.Add()([outputs, seen]), filters)
    outputs = keras.layers.SpatialDropout2D(config.dropout, seed=config.seed)(outputs)
    rare = keras.initializers.Constant(float(np.log(_FIRST_SCORE / (1 - _FIRST_SCORE))))
    parts = (
        keras.layers.Conv2D(1, 1, bias_initializer=rare, dtype=FLOAT32, name="score")(outputs),
        keras.layers.Conv2D(BOX, 1, dtype=FLOAT32, name="box")(outputs),
        keras.layers.Conv2D(classes, 1, dtype=FLOAT32, name="classes")(outputs),
    )
    answers = keras.layers.Concatenate(dtype=FLOAT32)(parts)
    return keras.Model(inputs, answers, name="small_detector")


def cells_loss(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    """Return the loss of all cells, divided by the number of boxes.

    It is the sum of the focal cross-entropy of scores, in which nearly right scores hardly count,
    and of the cross-entropy of classes and the Huber loss of boxes, both weighted by true scores.

    Args:
        y_true: float32 [batch, rows, columns, 6]: score, class (-1 if none), box of each cell.
        y_pred: float32 [batch, rows, columns, 5 + classes], see :func:`build_detector`.
    """
    score, label, box = tf.split(y_true, (1, 1, BOX), -1)
    parts = (1, BOX, y_pred.shape[-1] - BOX - 1)
    pred_score, pred_box, pred_classes = tf.split(y_pred, parts, -1)
    of_score = keras.losses.binary_focal_crossentropy(score, pred_score, from_logits=True)
    of_class = keras.losses.sparse_categorical_crossentropy(
        tf.maximum(label[..., 0], 0), pred_classes, from_logits=True
    )
    of_box = BOX * keras.losses.huber(box, pred_box)
    of_cells = of_score + score[..., 0] * (of_class + of_box)
    boxes = tf.reduce_sum(tf.cast(score == 1, tf.float32))
    return tf.reduce_sum(of_cells) / tf.maximum(boxes, 1.0)


def _halved(images: keras.KerasTensor) -> keras.KerasTensor:
    # Odd sides are rounded up, as in the grid.
    return keras.layers.MaxPooling2D(padding="same")(images)
