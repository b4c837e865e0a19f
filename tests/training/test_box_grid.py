"""Boxes encoded on the grid and decoded."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.tasks.object_detection.training import decode_boxes, encode_boxes, grid_size

SIZE = (30, 50)  # not multiples of a cell: 8 rows, 13 columns
CLASSES = 3

# The centre: its cell, and its place in the cell. The size: in shares of the room around it.
PLACES = st.tuples(st.integers(0, 3), st.integers(0, 5))
SHARES = st.floats(0.0625, 0.9375, width=32)
BOXES = st.dictionaries(PLACES, st.tuples(SHARES, SHARES, SHARES, SHARES, st.integers(0, 2)))


def decoded(cells, classes, size, most):
    """Decode targets as if a model had answered them."""
    labels = tf.one_hot(tf.cast(cells[..., 1], tf.int64), classes)
    return decode_boxes(cells[..., 0], labels, cells[..., 2:], size, most)


def laid(boxes):
    """Return boxes (left, top, right, bottom, in shares) of all sizes, two or more cells apart."""
    height, width = SIZE
    for (row, column), (x, y, w, h, label) in boxes.items():
        centre_x, centre_y = (2 * column + x) * 4, (2 * row + y) * 4
        half_w = w * min(centre_x, width - centre_x)
        half_h = h * min(centre_y, height - centre_y)
        left, right = (centre_x - half_w) / width, (centre_x + half_w) / width
        upper, lower = (centre_y - half_h) / height, (centre_y + half_h) / height
        yield left, upper, right, lower, label


@settings(max_examples=50)
@given(st.lists(BOXES, min_size=1, max_size=3))
def test_decoding_encoded_boxes_gives_the_boxes(images):
    """Boxes far enough apart survive encoding and decoding."""
    rows = [sorted(laid(boxes)) for boxes in images]
    most = max(1, *map(len, rows))
    padded = np.full((len(rows), most, 5), -1, np.float32)
    for image, boxes in zip(padded, rows, strict=True):
        image[: len(boxes)] = np.reshape(boxes, (-1, 5))
    cells = encode_boxes(tf.constant(padded[..., :4]), tf.constant(padded[..., 4], tf.int64), SIZE)
    found_boxes, found_labels, found_scores = decoded(cells, CLASSES, SIZE, most)
    for number, boxes in enumerate(rows):
        scores = found_scores[number].numpy()
        # Scores fall off around a centre, so that each box has one peak.
        assert scores.tolist() == [1.0] * len(boxes) + [0.0] * (most - len(boxes))
        back = np.column_stack([found_boxes[number], found_labels[number]])[: len(boxes)]
        back = back[np.lexsort(back.T[::-1])]
        np.testing.assert_allclose(back, np.reshape(boxes, (-1, 5)), atol=1e-5)


# height and width in pixels, rows and columns
GRIDS = [((64, 64), (16, 16)), ((65, 3), (17, 1))]


@pytest.mark.parametrize(("image_size", "grid"), GRIDS)
def test_the_grid_covers_the_image(image_size, grid):
    """A part of a cell at the border is a cell."""
    assert grid_size(image_size) == grid


def test_a_cell_belongs_to_the_box_with_the_nearest_centre():
    """Of boxes that cover a cell, the one with the nearest centre has it."""
    boxes = tf.constant([[[0.0, 0.0, 1.0, 1.0], [0.6, 0.6, 0.7, 0.7]]])
    cells = encode_boxes(boxes, tf.constant([[0, 1]], tf.int64), (64, 64))
    labels = cells[0, ..., 1].numpy()
    assert labels[8, 8] == 0
    assert labels[10, 10] == 1
    assert labels[10, 3] == 0
    assert (cells[0, ..., 0].numpy() == 1).sum() == 2


def test_of_two_boxes_in_one_cell_one_is_left():
    """Two centres in one cell leave one box."""
    boxes = tf.constant([[[0.1, 0.1, 0.3, 0.3], [0.11, 0.11, 0.3, 0.3]]])
    cells = encode_boxes(boxes, tf.constant([[0, 1]], tf.int64), (64, 64))
    _, _, scores = decoded(cells, 2, (64, 64), 2)
    assert scores.numpy().tolist() == [[1.0, 0.0]]
