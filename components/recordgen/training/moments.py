"""Mean and variance of columns of numbers, found in one pass, and the layer that evens them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


class Scale(NamedTuple):
    """What columns of numbers are normalised with.

    Attributes:
        mean: float64 [columns].
        deviation: the standard deviations, float64 [columns]; 0: all numbers were equal.
    """

    mean: Numbers
    deviation: Numbers

    @classmethod
    def of(cls, values: Mapping[str, Sequence[float]]) -> Scale:
        """Return what :meth:`to_dict` gave."""
        return cls(np.array(values["mean"]), np.array(values["deviation"]))

    def to_dict(self) -> dict[str, list[float]]:
        """Return JSON values."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @property
    def divisor(self) -> Numbers:
        """What numbers are divided by; 1 if all were equal."""
        return np.where(self.deviation > 0, self.deviation, 1.0)


def restate(
    weights: npt.NDArray[Any], before: Scale, now: Scale
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return weights that see in numbers on one scale what they saw on another.

    A column whose numbers were all equal has taught nothing: its weights become 0, lest they answer
    the first different number at random.

    Args:
        weights: of a layer, [columns, units].
        before: the scale on which they were learnt.
        now: the scale of the numbers to come.

    Returns:
        The new weights, and what to add to the layer's bias for each column, [columns, units] both.
    """
    least = keras.config.epsilon()  # which keras.layers.Normalization divides by, at least
    old, new = (np.maximum(scale.divisor, least)[:, None] for scale in (before, now))
    by_number = np.where(before.deviation[:, None] > 0, weights / old, 0)
    return by_number * new, by_number * (now.mean - before.mean)[:, None]


class Moments:
    """Mean and variance of each of some columns (Welford, Chan).

    Attributes:
        count: how many numbers there are, without missing ones, float64 [columns].
        mean: theirs, float64 [columns].
        spread: sums of the squares of what they differ from it, float64 [columns].
        rows: how many there are, with missing numbers.
    """

    def __init__(self, columns: int = 1) -> None:
        self.count = np.zeros(columns)
        self.mean = np.zeros(columns)
        self.spread = np.zeros(columns)
        self.rows = 0

    def add(self, numbers: npt.NDArray[Any]) -> None:
        """Add rows (float [rows, columns]); NaN stands for a missing number."""
        present = ~np.isnan(numbers)
        values = np.where(present, numbers, 0).astype(np.float64)
        count = present.sum(axis=0)
        mean = values.sum(axis=0) / np.maximum(count, 1)
        spread = np.where(present, np.square(values - mean), 0).sum(axis=0)
        total = np.maximum(self.count + count, 1)
        apart = mean - self.mean
        self.spread += spread + np.square(apart) * self.count * count / total
        self.mean += apart * count / total
        self.count += count
        self.rows += len(numbers)

    @property
    def with_gaps(self) -> list[int]:
        """The columns in which a number is missing."""
        return [column for column, count in enumerate(self.count) if count < self.rows]

    @property
    def variance(self) -> npt.NDArray[np.float64]:
        """The variances; 1 of a column of equal numbers, which then are all 0."""
        found = self.spread / np.maximum(self.count, 1)
        return np.where(found > 0, found, 1.0)

    @property
    def scale(self) -> Scale:
        """Mean and standard deviation."""
        return Scale(self.mean, np.where(self.spread > 0, np.sqrt(self.variance), 0))

    def normalisation(self) -> keras.layers.Layer:
        """Return the layer that gives such columns a mean of 0 and a variance of 1."""
        return keras.layers.Normalization(mean=self.mean, variance=self.variance)
