"""Hand-written scripts for comparison: plain Keras on arrays, without Recordgen.

Each function trains a model on arrays and returns its predictions for other arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from benchmarks.labelled import Training

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_CELL = 8  # cell size of the detector's grid, in pixels
_NONE = -1


class Answers(NamedTuple):
    """Predictions and size of a model.

    Attributes:
        values: scores of classes, float32 [n, classes]; for boxes float32 [n, k, 6]: left, top,
            right, bottom in shares of the image, class, score; -1 pads.
        parameters: number of weights.
    """

    values: Floats
    parameters: int


def simple_convnet(
    images: Floats, labels: Integers, others: Floats, classes: int, training: Training
) -> Answers:
    """Train the network of Keras's first tutorial: two convolutions, dropout, one dense layer.

    Args:
        images: float32 [n, height, width, 3] in [0, 1].
        labels: int64 [n].
        others: images to predict.
        classes: number of labels.
        training: training settings.
    """
    keras.utils.set_random_seed(training.seed)
    model = keras.Sequential(
        [
            keras.Input(images.shape[1:]),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(classes, activation="softmax"),
        ]
    )
    return _fitted_classifier(model, images, labels, others, training)


def normalised_convnet(
    images: Floats, labels: Integers, others: Floats, classes: int, training: Training
) -> Answers:
    """Train a network of the size of ``small_cnn``, augmented alike; see :func:`simple_convnet`."""
    keras.utils.set_random_seed(training.seed)
    layers: list[keras.layers.Layer] = [
        keras.layers.RandomTranslation(0.05, 0.05, fill_mode="nearest"),
        keras.layers.RandomRotation(0.05, fill_mode="nearest"),
        keras.layers.RandomZoom(0.05, fill_mode="nearest"),
    ]
    depth = int(np.log2(images.shape[1])) - 1
    for number in range(depth):
        layers += [keras.layers.MaxPooling2D()] if number else []
        layers += [
            keras.layers.Conv2D(min(256, 32 << number), 3, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
        ]
    layers += [
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(classes, activation="softmax"),
    ]
    model = keras.Sequential([keras.Input(images.shape[1:]), *layers])
    return _fitted_classifier(model, images, labels, others, training)


def _fitted_classifier(
    model: keras.Model, images: Floats, labels: Integers, others: Floats, training: Training
) -> Answers:
    model.compile(keras.optimizers.Adam(training.learning_rate), "sparse_categorical_crossentropy")
    model.fit(images, labels, batch_size=training.batch_size, epochs=training.epochs, verbose=0)
    return Answers(model.predict(others, verbose=0), model.count_params())


def grid_detector(
    images: Floats, boxes: Floats, others: Floats, classes: int, training: Training
) -> Answers:
    """Train a grid of cells of 8 pixels that each find one box, as in YOLO.

    Args:
        images: float32 [n, side, side, 3] in [0, 1].
        boxes: float32 [n, k, 5]: left, top, right, bottom in shares of the image, class; -1 pads.
        others: images to predict.
        classes: number of labels.
        training: training settings.
    """
    keras.utils.set_random_seed(training.seed)
    model = keras.Sequential([keras.Input(images.shape[1:])])
    for depth, filters in enumerate((16, 32, 64, 128)):
        if depth:
            model.add(keras.layers.MaxPooling2D())
        for _ in range(2):
            model.add(keras.layers.Conv2D(filters, 3, padding="same"))
            model.add(keras.layers.BatchNormalization())
            model.add(keras.layers.ReLU())
    model.add(keras.layers.Conv2D(5 + classes, 1))
    model.compile(keras.optimizers.Adam(training.learning_rate), _grid_loss)
    targets = grid_targets(boxes, images.shape[1] // _CELL)
    model.fit(images, targets, batch_size=training.batch_size, epochs=training.epochs, verbose=0)
    return Answers(grid_boxes(model.predict(others, verbose=0)), model.count_params())


def grid_targets(boxes: Floats, cells: int) -> Floats:
    """Return for each cell whether it has a box, its box and its class, [n, cells, cells, 6]."""
    targets = np.zeros((len(boxes), cells, cells, 6), np.float32)
    for number, of_image in enumerate(boxes):
        for left, top, right, bottom, label in of_image[of_image[:, 4] != _NONE]:
            x, y = (left + right) / 2 * cells, (top + bottom) / 2 * cells
            column, row = min(int(x), cells - 1), min(int(y), cells - 1)
            # Roots, as in YOLO: an error of one pixel matters more for a small box.
            size = np.sqrt(right - left), np.sqrt(bottom - top)
            targets[number, row, column] = (1, x - column, y - row, *size, label)
    return targets


def _grid_loss(y_true: Any, y_pred: Any) -> Any:
    has_box = y_true[..., 0]
    of_score = keras.losses.binary_crossentropy(y_true[..., :1], y_pred[..., :1], from_logits=True)
    of_box = 5 * tf.reduce_sum(tf.square(y_true[..., 1:5] - y_pred[..., 1:5]), -1)
    of_class = keras.losses.sparse_categorical_crossentropy(
        y_true[..., 5], y_pred[..., 5:], from_logits=True
    )
    of_cells = of_score + has_box * (of_box + of_class)
    return tf.reduce_sum(of_cells, (1, 2))


def grid_boxes(cells: Floats) -> Floats:
    """Return the boxes of all cells, without those that overlap a better box by half."""
    count = cells.shape[1]
    own = np.arange(count)
    centres = np.stack(np.broadcast_arrays(own, own[:, None]), -1) + cells[..., 1:3]
    half = np.square(np.maximum(cells[..., 3:5], 0)) / 2
    corners = np.concatenate([centres / count - half, centres / count + half], -1)
    scores = tf.sigmoid(cells[..., :1]) * tf.nn.softmax(cells[..., 5:])
    boxes, best, labels, valid = tf.image.combined_non_max_suppression(
        corners.reshape(len(cells), -1, 1, 4),
        tf.reshape(scores, (len(cells), count * count, -1)),
        max_output_size_per_class=50,
        max_total_size=100,
        score_threshold=0.01,
    )
    found = tf.concat([boxes, labels[..., None], best[..., None]], -1).numpy()
    found[np.arange(found.shape[1]) >= valid.numpy()[:, None]] = _NONE
    answers: Floats = found
    return answers
