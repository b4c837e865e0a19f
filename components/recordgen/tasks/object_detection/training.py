"""Object detection: a small network that predicts the box of each cell of a grid.

Each cell has a score, near 1 at the centre of a box; the class of that box; the offset of the box's
centre from the cell's (x, y; in cells); and the logarithms of its width and height (in cells). So
there are no anchors to choose, and boxes of any size are restored exactly. If several boxes have
their centres in the same cell, one remains.

As in CenterNet ("Objects as Points", 2019), scores fall off around a centre, and only peaks are
boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from recordgen import features
from recordgen.reading.detection import for_each_box
from recordgen.tasks.images.training import ImageTrainer
from recordgen.training.config import FLOAT32, LABEL, SCORES, UNKNOWN, WEIGHT, TrainingConfig
from recordgen.training.learner import in_order
from recordgen.training.measures import CROWD, MOST_BOXES
from recordgen.training.model import Models, convolved, doubled, predicted

# Almost no cell is a centre, so start with low scores.
_FIRST_SCORE = 0.01

# Filters of the layers before each halving; after the last one, a pixel is a cell.
_TO_CELLS = (16, 32)
_FILTERS = 64
_MORE_FILTERS = 128


#: Height and width of a cell, in pixels.
CELL = 4

#: Numbers that describe a cell's box.
BOX = 4

# Half a box is three standard deviations of the scores. A deviation is at least half a cell: a
# centre near the edge of its cell belongs almost as much to the neighbouring cell.
_DEVIATIONS = 6.0

_LEAST_DEVIATION = 0.5


class ObjectDetector(ImageTrainer):
    """Any number of labelled boxes per image."""

    learning_rate = 3e-3

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
        return images, encode_boxes(found["boxes"], found["labels"], self.config.size)

    def _found(self, model: keras.Model, images: tf.Tensor, most: int) -> tuple[tf.Tensor, ...]:
        parts = 1, BOX, model.output_shape[-1] - 1 - BOX
        scores, boxes, classes = tf.split(predicted(model, images), parts, -1)
        return decode_boxes(
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
    outputs = keras.layers.SpatialDropout2D(config.dropout, seed=config.seed)(outputs)
    for seen in reversed(passed):
        filters = seen.shape[-1]
        outputs = doubled(keras.layers.Conv2D(filters, 1)(outputs), seen)
        outputs = convolved(keras.layers.Add()([outputs, seen]), filters)
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


def grid_size(image_size: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns for images of a height and width in pixels: (64, 30) → (16, 8)."""
    height, width = image_size
    return -(-height // CELL), -(-width // CELL)


def encode_boxes(boxes: tf.Tensor, labels: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Encode boxes as targets of the grid's cells.

    Args:
        boxes: float32 [batch, n, 4]: left, top, right, bottom, in shares of the image.
        labels: int64 [batch, n], their classes; -1 for padding.
        image_size: height and width in pixels.

    Returns:
        float32 [batch, rows, columns, 6]: the score, 1 at centres and less around them; the class
        of the box with the highest score here, -1 without boxes; the offset and size of that box.
    """
    rows, columns = grid_size(image_size)
    is_box = labels >= 0
    low, high = boxes[..., :2], boxes[..., 2:]
    centres, sizes = (low + high) / 2 * _scale(image_size), (high - low) * _scale(image_size)
    sizes = tf.where(is_box[..., None], sizes, 1.0)  # padding has no logarithm
    own = tf.clip_by_value(tf.floor(centres), 0.0, tf.constant([columns - 1.0, rows - 1.0])) + 0.5
    deviations = tf.maximum(sizes / _DEVIATIONS, _LEAST_DEVIATION)
    across = _fall_off(own[..., 0], deviations[..., 0], columns)
    down = _fall_off(own[..., 1], deviations[..., 1], rows)
    # [batch, n, rows, columns]: the scores of each box.
    each = down[..., :, None] * across[..., None, :] * tf.cast(is_box, tf.float32)[..., None, None]

    nearest = tf.argmax(each, 1)
    described = tf.concat([centres, tf.math.log(sizes)], -1)
    described = tf.gather(described, nearest, axis=1, batch_dims=1)
    label = tf.gather(tf.cast(labels, tf.float32), nearest, axis=1, batch_dims=1)
    offset = described[..., :2] - _centres(rows, columns)
    first = tf.stack([tf.reduce_max(each, 1), label], -1)
    return tf.concat([first, offset, described[..., 2:]], -1)


def decode_boxes(
    scores: tf.Tensor, classes: tf.Tensor, boxes: tf.Tensor, image_size: tuple[int, int], most: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return the boxes of up to ``most`` peaks per image.

    A peak is a cell whose score is no lower than the scores of the eight cells around it.

    Args:
        scores: float32 [batch, rows, columns], 0..1.
        classes: float32 [batch, rows, columns, classes], the probabilities of the classes.
        boxes: float32 [batch, rows, columns, 4].
        image_size: height and width in pixels.
        most: the maximum number of boxes.

    Returns:
        Best first: the boxes (float32 [batch, k, 4]: left, top, right, bottom, in shares of the
        image, 0..1), their classes (int64 [batch, k]), and scores (float32 [batch, k], 0..1, padded
        with 0 if an image has fewer peaks).
    """
    rows, columns = grid_size(image_size)
    is_peak = scores == tf.nn.max_pool2d(scores[..., None], 3, 1, "SAME")[..., 0]
    sure = tf.where(is_peak, scores * tf.reduce_max(classes, -1), 0.0)
    best, cells = tf.math.top_k(_flat(sure), min(most, rows * columns))
    described = tf.gather(_flat(boxes), cells, batch_dims=1)
    centres = described[..., :2] + tf.gather(tf.reshape(_centres(rows, columns), (-1, 2)), cells)
    half = tf.exp(described[..., 2:]) / 2
    corners = tf.concat([centres - half, centres + half], -1) / tf.tile(_scale(image_size), [2])
    return (
        tf.clip_by_value(corners, 0.0, 1.0),
        tf.gather(_flat(tf.argmax(classes, -1)), cells, batch_dims=1),
        best,
    )


def _flat(cells: tf.Tensor) -> tf.Tensor:
    """Return [batch, rows, columns, …] as [batch, cells, …]."""
    _, rows, columns, *rest = cells.shape
    return tf.reshape(cells, (-1, rows * columns, *rest))


def _scale(image_size: tuple[int, int]) -> tf.Tensor:
    """Return width and height of an image in cells, float32 [2]."""
    height, width = image_size
    return tf.constant([width / CELL, height / CELL])


def _centres(rows: int, columns: int) -> tf.Tensor:
    """Return the centres of cells (x, y) in cells, float32 [rows, columns, 2]."""
    x, y = tf.meshgrid(tf.range(columns), tf.range(rows))
    return tf.cast(tf.stack([x, y], -1), tf.float32) + 0.5


def _fall_off(centres: tf.Tensor, deviations: tf.Tensor, cells: int) -> tf.Tensor:
    """Return a bell of height 1 around each centre, float32 [batch, n, cells]."""
    distances = tf.range(cells, dtype=tf.float32) + 0.5 - centres[..., None]
    return tf.exp(-tf.square(distances / deviations[..., None]) / 2)
