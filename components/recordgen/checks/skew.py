"""A check of columns of tables that are distributed differently in the splits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.checks.check import Examined
from recordgen.checks.tables import KeptRows, TableCheck, kept_rows, shown
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.facts.kept_rows import Values, floats
from recordgen.core.rows.columns import values_of

# Splits with fewer rows in the sample are not compared: chance alone makes them differ.
_LEAST_OF_SPLIT = 100

# Numbers are binned by tenths of train, texts by their most frequent values.
_BINS = 10
_MOST_FREQUENT = 20

_OTHERS, _MISSING = "other values", "no value"


#: What is counted.
_Key = TypeVar("_Key")


class Skew(TableCheck):
    """A column is distributed differently in another split than in train."""

    code = "SKEW"
    threshold = 0.1

    def findings(self, examined: Examined[Any]) -> Iterator[str]:
        """Yield columns and splits that are farther apart than chance and the threshold explain."""
        kept = examined.shared(kept_rows)
        for name in kept.varied(examined.task.table.target):
            yield from _skew(name, kept, examined.thresholds[self.code])


def _skew(name: str, kept: KeptRows, least: float) -> Iterator[str]:
    sample = kept.sample(name)
    is_train = kept.splits == TRAIN
    if is_train.sum() < _LEAST_OF_SPLIT:
        return
    bins = _bins(sample, is_train)
    expected = Counter(bins[is_train].tolist())
    for split in sorted(set(kept.splits.tolist()) - {TRAIN}):
        found = Counter(bins[kept.splits == split].tolist())
        apart, by_chance = distance_of_samples(expected, found)
        if found.total() < _LEAST_OF_SPLIT or apart - by_chance <= least:
            continue
        key = most_changed(expected, found)
        yield (
            f"column {name!r} is distributed differently in split {split} than in train: "
            f"{apart:.0%} of its values there would have to change (by chance: about "
            f"{by_chance:.0%}); {key}: {share(expected, key):.1%} of train, "
            f"{share(found, key):.1%} of {split}"
        )


def _bins(sample: Values, is_train: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return the name of each value's bin."""
    if pa.types.is_string(sample.type):
        texts = values_of(sample)
        counts = Counter(text for text in texts if text is not None)
        frequent = sorted(counts, key=lambda text: (-counts[text], text))[:_MOST_FREQUENT]
        names = {text: shown(text) for text in frequent} | {None: _MISSING}
        return np.array([names.get(text, _OTHERS) for text in texts], object)
    numbers = floats(sample)
    train = sample.filter(pa.array(is_train)).drop_null()
    if not len(train):
        return np.where(np.isnan(numbers), _MISSING, _OTHERS).astype(object)
    ordered = np.sort(floats(train))
    edges = np.unique(ordered[np.arange(1, _BINS) * len(ordered) // _BINS])
    limits = [f"{edge:.6g}" for edge in edges]
    between = pairwise(limits)
    tenths = [
        f"below {limits[0]}",
        *(f"from {low} to below {high}" for low, high in between),
        f"from {limits[-1]}",
        _MISSING,
    ]
    places = np.where(
        np.isnan(numbers), len(tenths) - 1, np.searchsorted(edges, numbers, side="right")
    )
    return np.array(tenths, object)[places]


def distance(expected: Mapping[_Key, int], found: Mapping[_Key, int]) -> tuple[float, float]:
    """Return the total variation distance of two counts, and the distance by chance alone.

    The second is the mean distance if ``found`` were a sample of ``expected``, in the normal
    approximation: a count's mean absolute deviation is √(2/π) of its standard deviation.
    """
    total, sampled = sum(expected.values()), sum(found.values())
    if not total or not sampled:
        return 0.0, 0.0
    shares = [count / total for count in expected.values()]
    by_chance = sum(math.sqrt(part * (1 - part) / (2 * math.pi * sampled)) for part in shares)
    return sum(changes(expected, found).values()) / 2, by_chance


def distance_of_samples(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> tuple[float, float]:
    """Return the same as :func:`distance`, for two samples of one population."""
    apart, by_chance = distance(one, other)
    return apart, math.hypot(by_chance, distance(other, one)[1])


def changes(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> dict[_Key, float]:
    """Return the absolute difference of each key's shares."""
    totals = max(1, sum(one.values())), max(1, sum(other.values()))
    return {
        key: abs(one.get(key, 0) / totals[0] - other.get(key, 0) / totals[1])
        for key in {**one, **other}
    }


def share(counts: Mapping[_Key, int], key: _Key) -> float:
    """Return a key's part of all counts."""
    return counts.get(key, 0) / max(1, sum(counts.values()))


def most_changed(expected: Mapping[_Key, int], found: Mapping[_Key, int]) -> _Key:
    """Return the key whose share differs most; the last in order if several do."""
    changed = changes(expected, found)
    return max(changed, key=lambda key: (changed[key], key))
