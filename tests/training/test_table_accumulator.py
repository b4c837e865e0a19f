"""The score of predictions from a table, compared with scikit-learn, for any batches."""

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score

from recordgen.training.measures import TableAccumulator


def counted(truth, scores):
    width = scores.shape[1]
    counts = TableAccumulator(width if width > 1 else 0)
    counts.add(truth, scores)
    return counts


def in_parts(truth, scores, parts):
    """Return the merged counts of parts of the rows; some parts are empty."""
    merged = counted(truth[:0], scores[:0])
    for part in np.array_split(np.arange(len(truth)), parts):
        merged.merge(counted(truth[part], scores[part]))
    return merged


def test_accuracy_and_cross_entropy_equal_scikit_learns():
    random = np.random.default_rng(0)
    scores = random.dirichlet(np.ones(4), 50).astype(np.float32)
    truth = random.integers(0, 4, 50)
    batches = counted(truth[:20], scores[:20])
    batches.add(truth[20:], scores[20:])
    for counts in (
        counted(truth, scores),
        in_parts(truth, scores, 7),
        in_parts(truth, scores, 60),
        batches,
    ):
        assert counts.examples == 50
        assert counts.score() == pytest.approx(accuracy_score(truth, scores.argmax(1)))
        assert counts.loss() == pytest.approx(log_loss(truth, scores, labels=range(4)))


def test_r2_and_squared_error_equal_scikit_learns():
    random = np.random.default_rng(1)
    truth = random.normal(1e6, 1, 100).astype(np.float32)
    scores = (truth + random.normal(0, 0.5, 100)).astype(np.float32)[:, None]
    wide = truth.astype(np.float64)
    for counts in (
        counted(truth, scores),
        in_parts(truth, scores, 7),
        in_parts(truth, scores, 120),
    ):
        assert counts.examples == 100
        assert counts.targets.mean[0] == pytest.approx(wide.mean(), rel=1e-12)
        assert counts.score() == pytest.approx(r2_score(wide, scores[:, 0]))
        assert counts.loss() == pytest.approx(mean_squared_error(wide, scores[:, 0]))


def test_two_scores_are_classes_and_one_is_a_number():
    counts = counted(np.array([1, 0]), np.array([[0.25, 0.75], [0.0, 1.0]], np.float32))
    assert (counts.examples, counts.score()) == (2, 0.5)
    assert counts.loss() == pytest.approx(-(math.log(0.75) + math.log(1e-7)) / 2)
    sure = counted(np.array([1]), np.array([[0.0, 1.0 + 1e-6]], np.float32))  # rounding of softmax
    assert sure.loss() == 0
    assert [TableAccumulator.of_scores(np.zeros(n)).classes for n in (1, 2)] == [0, 2]


def test_without_rows_or_with_equal_targets_there_is_no_score():
    for classes in (0, 2):
        empty = TableAccumulator(classes)
        empty.merge(TableAccumulator(classes))
        assert empty.examples == 0
        assert all(map(math.isnan, (empty.score(), empty.loss())))
    assert math.isnan(counted(np.array([2.0, 2.0]), np.array([[2.0], [3.0]])).score())
    assert counted(np.array([1.0, 2.0]), np.array([[9.0], [9.0]])).score() == 0
    assert counted(np.array([1.0, 2.0]), np.array([[1.0], [2.0]])).score() == 1
