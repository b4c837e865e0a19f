import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from recordgen.access.boxes import BOX_FORMATS, formatted
from recordgen.reading import detection as boxes

FEW = settings(max_examples=25)  # TensorFlow computes each

shares = st.floats(0, 1, width=32)
sides = st.floats(0.125, 1, width=32)


@st.composite
def corners(draw, least=0, most=6):
    """Draw boxes [n, 4] with an area: top, left, bottom, right."""
    n = draw(st.integers(least, most))
    starts = draw(arrays.arrays(np.float32, (n, 2), elements=shares))
    extents = draw(arrays.arrays(np.float32, (n, 2), elements=sides))
    return np.concatenate([starts, starts + extents], 1)


# top, left, bottom, right; the share of the area inside, None without an area
VISIBLE = [
    ((0, 0, 1, 1), 1),
    ((-0.25, 0, 0.25, 1), 0.5),
    ((-0.25, -0.25, 0.25, 0.25), 0.25),
    ((-1, -1, 2, 2), 1 / 9),
    ((0.5, 0.9, 0.75, 1.9), 0.1),
    ((1.5, 0, 2, 1), None),
    ((0.5, 0, 0.5, 1), None),
    ((0, 0.5, 1, 0.5), None),
    ((0.75, 0.75, 0.25, 0.25), None),
]


@pytest.mark.parametrize(("box", "share"), VISIBLE)
def test_a_box_is_visible_with_the_requested_share_inside(box, share):
    """A box counts as visible by the share of its area inside, and never without an area."""
    box = tf.constant([box], tf.float32)
    assert bool(boxes.are_visible(box, share or 0.0)) == (share is not None)
    assert share == 1 or not boxes.are_visible(box, min(1, (share or 0) + 0.01))


@FEW
@given(found=corners(0, 12), most=st.integers(1, 4), data=st.data())
def test_the_largest_boxes_are_chosen_and_of_equal_ones_the_first(found, most, data):
    """The largest boxes of each image are kept, of equal ones the first."""
    images = sorted(
        data.draw(st.lists(st.integers(0, 3), min_size=len(found), max_size=len(found)))
    )
    areas = np.prod(found[:, 2:] - found[:, :2], 1)
    expected = np.zeros(len(found), bool)
    for image in set(images):
        mine = [n for n in range(len(found)) if images[n] == image]
        expected[sorted(mine, key=lambda n: (-areas[n], n))[:most]] = True
    arguments = tf.constant(found), tf.constant(images, tf.int64)
    np.testing.assert_array_equal(boxes.are_largest(*arguments, most).numpy(), expected)


@pytest.mark.parametrize("box_format", BOX_FORMATS)
@FEW
@given(found=corners())
def test_formats_are_those_of_keras(box_format, found):
    """Each format is converted back by Keras's function."""
    height, width = 30, 50
    given = np.stack(formatted(found.T, box_format, (height, width)), 1)
    if box_format == "rel_center_xywh":  # Keras swaps height and width here
        given, box_format = given * [width, height, width, height], "center_xywh"
    expected = found[:, [1, 0, 3, 2]] * [width, height, width, height]
    how = {"source": box_format, "target": "xyxy", "height": height, "width": width}
    back = keras.utils.bounding_boxes.convert_format(given, **how)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(back), expected, atol=1e-3)
