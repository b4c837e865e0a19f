"""The AUC of each label, compared with Keras and scikit-learn, and as TFMA's metric."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import roc_auc_score

from recordgen.training.measures import THRESHOLDS, ManyLabelsAccumulator

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 4))


@st.composite
def answers(draw):
    """Labels (0 or 1) and scores, float32 [examples, classes]; each label is 0 and 1 somewhere."""
    shape = draw(SHAPES)
    truth = draw(arrays.arrays(np.float32, shape, elements=st.sampled_from([0, 1])))
    scores = draw(arrays.arrays(np.float32, shape, elements=st.floats(0, 1, width=32)))
    ends = np.array([[0], [1]], np.float32).repeat(shape[1], 1)
    return np.concatenate([truth, ends]), np.concatenate([scores, 1 - ends * 0.5])


def counted(truth, scores, weights=1.0):
    counts = ManyLabelsAccumulator(truth.shape[1])
    counts.add(truth, scores, weights)
    return counts


@settings(max_examples=50)
@given(answers())
def test_the_mean_is_that_of_keras(answers):
    metric = keras.metrics.AUC(multi_label=True, thresholds=list(THRESHOLDS))
    metric.update_state(*answers)
    assert counted(*answers).score() == pytest.approx(float(metric.result()), abs=1e-5)


@given(answers(), st.integers(0, 42))
def test_the_area_does_not_depend_on_batches_or_accumulators(answers, cut):
    truth, scores = answers
    whole, first = counted(truth, scores), counted(truth[:cut], scores[:cut])
    first.merge(counted(truth[cut:], scores[cut:]))
    assert first.by_label() == whole.by_label()
    assert (first.examples, first.loss()) == (len(truth), pytest.approx(whole.loss()))


@pytest.mark.parametrize("base_rate", [0.5, 0.001])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_that_of_scikit_learn(base_rate, seed):
    """Each label's area is exact, with weights, ties and examples of weight 0.

    This includes rare labels, whose scores are all close to 0.
    """
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, (300, 3)).astype(np.float32)
    odds = base_rate / (1 - base_rate) * np.exp(random.normal(truth, 1).round(1))
    scores = (odds / (1 + odds)).astype(np.float32)
    weights = random.integers(0, 4, 300).astype(np.float32)
    counts = counted(truth, scores, weights)
    exact = [
        roc_auc_score(truth[:, label], scores[:, label], sample_weight=weights)
        for label in range(3)
    ]
    assert list(counts.by_label().values()) == pytest.approx(exact, abs=2e-3)


def test_a_label_of_all_or_no_examples_has_no_area():
    truth = np.array([[1, 1, 0], [0, 1, 0]], np.float32)
    scores = np.array([[0.9, 0.5, 0.5], [0.1, 0.5, 0.5]], np.float32)
    counts = counted(truth, scores)
    assert (counts.by_label(), counts.score()) == ({0: 1}, 1)
    assert np.isnan(counted(truth[:, 1:], scores[:, 1:]).score())
