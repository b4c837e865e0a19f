"""Mean IoU of pixels: cases counted by hand, and agreement with Keras."""

import math

import keras
import numpy as np
import pytest

from recordgen.training.measures import MaskAccumulator

# true mask, answer → IoU by class, mean
CASES = [
    ([[0, 0], [1, 1]], [[0, 0], [1, 1]], {0: 1.0, 1: 1.0}, 1.0),
    # class 0: 1 right, 2 true, 1 answered → 1 / 2; class 1: 2 right, 2 true, 3 answered → 2 / 3
    ([[0, 0], [1, 1]], [[0, 1], [1, 1]], {0: 1 / 2, 1: 2 / 3}, 7 / 12),
    # ignored pixels count neither as true nor as answered
    ([[0, 255], [1, 255]], [[0, 1], [1, 0]], {0: 1.0, 1: 1.0}, 1.0),
    # an answer whose class has no true pixel lowers the others only
    ([[0, 0], [0, 0]], [[0, 0], [0, 2]], {0: 3 / 4}, 3 / 4),
    # pixels of a class that the model does not know are wrong answers
    ([[0, 0], [-1, -1]], [[0, 0], [0, 1]], {0: 2 / 3}, 2 / 3),
    ([[255, 255]], [[0, 1]], {}, math.nan),
]


@pytest.mark.parametrize(("true", "answer", "by_class", "mean"), CASES)
def test_cases_by_hand(true, answer, by_class, mean):
    """Right pixels of a class divided by those that have it in either mask."""
    counts = MaskAccumulator(3)
    counts.add(np.array([true], np.int32), np.array([answer], np.int32))
    assert counts.by_label() == pytest.approx(by_class)
    assert counts.score() == pytest.approx(mean, nan_ok=True)
    assert counts.examples == 1


def test_an_unknown_class_has_an_iou_of_0():
    """The mean also counts the classes that the model does not know."""
    counts = MaskAccumulator(2)
    counts.add(np.array([[[0, -1]]], np.int32), np.array([[[0, 1]]], np.int32))
    counts.add_unknown([b"bird", b""])
    assert counts.score() == pytest.approx(1 / 2)
    assert counts.known() == 1


def test_parts_add_up_to_keras_mean_iou():
    """Merged counts of two batches are those of all pixels, as Keras computes them."""
    random = np.random.default_rng(0)
    true, answers = random.integers(0, 4, (2, 6, 8, 9))
    true[random.random(true.shape) < 0.1] = 255
    first, second = MaskAccumulator(4), MaskAccumulator(4)
    first.add(true[:2], answers[:2])
    second.add(true[2:], answers[2:])
    first.merge(second)
    metric = keras.metrics.MeanIoU(4, ignore_class=255)
    metric.update_state(true, answers)
    assert first.score() == pytest.approx(float(metric.result()))
    assert first.loss() == pytest.approx((true != answers)[true != 255].mean())
