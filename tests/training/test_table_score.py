"""The score of predictions from a table, compared with scikit-learn, for any batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score

from recordgen.training.table_score import TableCounts


def counted(truth, scores):
    counts = TableCounts()
    counts.add(truth, scores)
    return counts


def in_parts(truth, scores, parts):
    """Return the merged counts of parts of the rows; some parts are empty."""
    merged = TableCounts()
    for part in np.array_split(np.arange(len(truth)), parts):
        merged.merge(counted(truth[part], scores[part]))
    return merged


def test_classes():
    """Accuracy and cross-entropy equal scikit-learn's."""
    random = np.random.default_rng(0)
    scores = random.dirichlet(np.ones(4), 50).astype(np.float32)
    truth = random.integers(0, 4, 50)
    batches = TableCounts()
    batches.add(truth[:20], scores[:20])
    batches.add(truth[20:], scores[20:])
    for counts in (
        counted(truth, scores),
        in_parts(truth, scores, 7),
        in_parts(truth, scores, 60),
        batches,
    ):
        assert counts.examples == 50
        assert counts.accuracy() == pytest.approx(accuracy_score(truth, scores.argmax(1)))
        assert counts.loss() == pytest.approx(log_loss(truth, scores, labels=range(4)))


def test_numbers():
    """R² and squared error equal scikit-learn's, even with targets far from 0."""
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
        assert counts.mean == pytest.approx(wide.mean(), rel=1e-12)
        assert counts.r2() == pytest.approx(r2_score(wide, scores[:, 0]))
        assert counts.loss() == pytest.approx(mean_squared_error(wide, scores[:, 0]))


def test_two_classes():
    """Two scores are classes, not a number; the smallest probability is the same as in Keras."""
    counts = counted(np.array([1, 0]), np.array([[0.25, 0.75], [0.0, 1.0]], np.float32))
    assert (counts.right, counts.examples, counts.accuracy()) == (1, 2, 0.5)
    assert counts.loss() == pytest.approx(-(math.log(0.75) + math.log(1e-7)) / 2)
    sure = counted(np.array([1]), np.array([[0.0, 1.0 + 1e-6]], np.float32))  # rounding of softmax
    assert sure.loss() == 0


def test_where_there_is_little_to_count():
    """Without rows, or with equal targets, there is no score; worse than the mean is 0."""
    empty = TableCounts()
    assert all(map(math.isnan, (empty.r2(), empty.accuracy(), empty.loss())))
    empty.merge(TableCounts())
    assert (empty.examples, empty.mean, empty.spread) == (0, 0.0, 0.0)
    assert math.isnan(counted(np.array([2.0, 2.0]), np.array([[2.0], [3.0]])).r2())
    assert counted(np.array([1.0, 2.0]), np.array([[9.0], [9.0]])).r2() == 0
    assert counted(np.array([1.0, 2.0]), np.array([[1.0], [2.0]])).r2() == 1
