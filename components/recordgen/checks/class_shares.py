"""Tests whether two counts of the same things differ by more than chance explains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

_Key = TypeVar("_Key")


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
