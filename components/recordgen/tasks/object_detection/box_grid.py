"""Encode boxes as targets for the cells of a grid over the image; decode a model's output.

Each cell has a score, near 1 at the centre of a box; the class of that box; the offset of the box's
centre from the cell's (x, y; in cells); and the logarithms of its width and height (in cells). So
there are no anchors to choose, and boxes of any size are restored exactly. If several boxes have
their centres in the same cell, one remains.

As in CenterNet ("Objects as Points", 2019), scores fall off around a centre, and only peaks are
boxes.
"""

from __future__ import annotations

import tensorflow as tf

#: Height and width of a cell, in pixels.
CELL = 4

#: Numbers that describe a cell's box.
BOX = 4

# Half a box is three standard deviations of the scores. A deviation is at least half a cell: a
# centre near the edge of its cell belongs almost as much to the neighbouring cell.
_DEVIATIONS = 6.0
_LEAST_DEVIATION = 0.5


def grid_size(image_size: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns for images of a height and width in pixels: (64, 30) → (16, 8)."""
    height, width = image_size
    return -(-height // CELL), -(-width // CELL)


def encode(boxes: tf.Tensor, labels: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
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


def decode(
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
