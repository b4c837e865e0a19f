"""Whether two counts of the same things differ by more than chance explains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

_Key = TypeVar("_Key")


def distance(expected: Mapping[_Key, int], found: Mapping[_Key, int]) -> tuple[float, float]:
    """Return the total variation distance of two counts, and what chance makes of it.

    The second number is its mean if ``found`` were drawn from the shares of ``expected``, in the
    normal approximation: a count's mean absolute deviation is √(2/π) of its standard deviation.
    """
    total, drawn = sum(expected.values()), sum(found.values())
    if not total or not drawn:
        return 0.0, 0.0
    shares = [count / total for count in expected.values()]
    by_chance = sum(math.sqrt(part * (1 - part) / (2 * math.pi * drawn)) for part in shares)
    return sum(changes(expected, found).values()) / 2, by_chance


def distance_of_samples(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> tuple[float, float]:
    """Return what :func:`distance` does, for two samples of one whole."""
    apart, by_chance = distance(one, other)
    return apart, math.hypot(by_chance, distance(other, one)[1])


def changes(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> dict[_Key, float]:
    """Return by how much the share of each key differs."""
    totals = max(1, sum(one.values())), max(1, sum(other.values()))
    return {
        key: abs(one.get(key, 0) / totals[0] - other.get(key, 0) / totals[1])
        for key in {**one, **other}
    }


def share(counts: Mapping[_Key, int], key: _Key) -> float:
    """Return what part of all that was counted has a key."""
    return counts.get(key, 0) / max(1, sum(counts.values()))


def most_changed(expected: Mapping[_Key, int], found: Mapping[_Key, int]) -> _Key:
    """Return the key whose share differs most; of several, the one that sorts last."""
    changed = changes(expected, found)
    return max(changed, key=lambda key: (changed[key], key))
