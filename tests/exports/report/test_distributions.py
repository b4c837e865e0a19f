"""Histograms and top values of the report."""

import numpy as np
import pyarrow as pa
import pytest

from recordgen.core.dataset.counts import Split
from recordgen.exports.report.contents import charted, histogram, top_values
from tests.datasets import dataset_of

NAN = float("nan")

# numbers of train → the texts of the ticks, whether the scale is logarithmic
SCALES = [
    ([3], ["3"], False),
    ([0, 1, 1, 3], ["0", "1", "2", "3"], False),
    ([0.5, 0.5], ["0.5"], False),
    ([0, 100], ["0", "25", "50", "75", "100"], False),
    ([1, 10, 10_000], ["1", "10", "100", "1,000", "10,000"], True),
    ([*range(0, 400), 100_000], ["≤ 2", "101", "200", "299", "≥ 398"], False),
    ([*np.linspace(-1, 1, 401), -1e6], ["≤ -0.995", "-0.499", "-0.0025", "0.494", "≥ 0.99"], False),
]


@pytest.mark.parametrize(("numbers", "ticks", "is_log"), SCALES, ids=range(len(SCALES)))
def test_the_scale_follows_the_numbers(numbers, ticks, is_log):
    """Few whole numbers have a bar each, wide ranges are logarithmic, outliers are clipped."""
    found = histogram("n", {"train": np.array(numbers, float)})
    assert found is not None
    assert [text for _, text in found.ticks] == ticks
    assert found.is_log == is_log
    assert max(found.series[0].heights) == 1


def test_splits_are_shares_of_themselves():
    """Bars are shares of their split; unknown numbers are counted separately."""
    found = histogram(
        "n", {"train": np.array([1.0, 2, 2, 2] * 50), "eval": np.array([2.0, NAN]), "test": _none()}
    )
    assert found is not None
    assert [(item.split, item.count, item.missing, item.heights) for item in found.series] == [
        ("train", 200, 0, [0.25, 0.75]),
        ("eval", 1, 1, [0, 1]),
        ("test", 0, 0, [0, 0]),
    ]
    assert [item.quantiles for item in found.series] == [["1", "2", "2"], ["2", "2", "2"], []]


def _none():
    return np.zeros(0)


def test_nothing_known_is_nothing_drawn():
    """Without known numbers or values there is no chart."""
    assert histogram("n", {"train": np.array([NAN]), "eval": _none()}) is None
    assert top_values("v", {"train": []}) is None


def test_frequent_values_come_first():
    """By their number in all splits, each with its share of each split."""
    found = top_values("v", {"train": ["b", "a", "b", "c"], "eval": [*"bcdefghij"]})
    assert found is not None
    assert found.values[:3] == [("b", [0.5, 1 / 9]), ("c", [0.25, 1 / 9]), ("a", [0.25, 0])]
    assert (len(found.values), found.others) == (8, 2)


def test_the_boxes_of_many_examples_are_sampled():
    """Annotations of at most 5,000 examples of a split are kept; one without boxes counts, too."""
    splits = {"train": Split(20_000, 0, {}, ()), "eval": Split(2, 0, {}, ())}
    names = [name for name, split in splits.items() for _ in range(split.examples)]
    facts = pa.table({"split": names, "annotation": [None, *["[]"] * 20_001]})
    parts = [
        charted(facts[start : start + 3], dataset_of(splits=splits), start)
        for start in range(0, 20_002, 3)
    ]
    texts = pa.concat_tables(parts)["annotation"].to_pylist()
    assert texts[:20_000:4] + texts[20_000:] == ["", *["[]"] * 5_001]
    assert texts.count(None) == 15_000
