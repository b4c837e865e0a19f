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
    apart = by_chance = 0.0
    for key in {*expected, *found}:
        share = expected.get(key, 0) / total
        apart += abs(found.get(key, 0) / drawn - share) / 2
        by_chance += math.sqrt(share * (1 - share) / (2 * math.pi * drawn))
    return apart, by_chance


def distance_of_samples(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> tuple[float, float]:
    """Return what :func:`distance` does, for two samples of one whole."""
    apart, by_chance = distance(one, other)
    return apart, math.hypot(by_chance, distance(other, one)[1])


def share(counts: Mapping[_Key, int], key: _Key) -> float:
    """Return what part of all that was counted has a key."""
    return counts.get(key, 0) / max(1, sum(counts.values()))


def most_changed(expected: Mapping[_Key, int], found: Mapping[_Key, int]) -> _Key:
    """Return the key whose share differs most; of several, the one that sorts last."""
    return max(
        {**expected, **found},
        key=lambda key: (abs(share(found, key) - share(expected, key)), key),
    )
