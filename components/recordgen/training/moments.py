"""Mean and variance of columns of numbers, computed in one pass, and changes of scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


class Scale(NamedTuple):
    """Mean and standard deviation with which columns of numbers are normalised.

    Attributes:
        mean: float64 [columns].
        deviation: float64 [columns]; 0 if all numbers of a column were equal.
    """

    mean: Numbers
    deviation: Numbers

    @classmethod
    def of(cls, values: Mapping[str, Sequence[float]]) -> Scale:
        """Return the scale that :meth:`to_dict` stored."""
        return cls(np.array(values["mean"]), np.array(values["deviation"]))

    def to_dict(self) -> dict[str, list[float]]:
        """Return JSON values."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @property
    def divisor(self) -> Numbers:
        """The deviation; 1 if all numbers of a column were equal."""
        return np.where(self.deviation > 0, self.deviation, 1.0)


def rescale(
    weights: npt.NDArray[Any], before: Scale, now: Scale
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return weights that give the same output for numbers normalised with another scale.

    If all numbers of a column were equal, its weights were never trained: they become 0, so that
    the first different number does not change the output at random.

    Args:
        weights: the weights of a layer, [columns, units].
        before: the scale with which they were trained.
        now: the new scale.

    Returns:
        The new weights, and each column's addition to the layer's bias, both [columns, units].
    """
    least = 1e-7  # keras.layers.Normalization never divides by less
    old, new = (np.maximum(scale.divisor, least)[:, None] for scale in (before, now))
    by_number = np.where(before.deviation[:, None] > 0, weights / old, 0)
    return by_number * new, by_number * (now.mean - before.mean)[:, None]


class Moments:
    """Mean and variance of columns of numbers (algorithm of Welford and Chan).

    Attributes:
        count: the number of present numbers, float64 [columns].
        mean: their mean, float64 [columns].
        spread: the sum of their squared differences from the mean, float64 [columns].
    """

    def __init__(self, columns: int = 1) -> None:
        self.count = np.zeros(columns)
        self.mean = np.zeros(columns)
        self.spread = np.zeros(columns)
        self.rows = 0

    def add(self, numbers: npt.NDArray[Any]) -> None:
        """Add rows (float [rows, columns]); NaN represents a missing number."""
        present = ~np.isnan(numbers)
        values = np.where(present, numbers, 0).astype(np.float64)
        new = Moments(numbers.shape[1])
        new.count = present.sum(axis=0)
        new.mean = values.sum(axis=0) / np.maximum(new.count, 1)
        new.spread = np.where(present, np.square(values - new.mean), 0).sum(axis=0)
        new.rows = len(numbers)
        self.merge(new)

    def merge(self, other: Moments) -> None:
        """Add the rows of another instance."""
        total = np.maximum(self.count + other.count, 1)
        apart = other.mean - self.mean
        self.spread += other.spread + np.square(apart) * self.count * other.count / total
        self.mean += apart * other.count / total
        self.count += other.count
        self.rows += other.rows

    @property
    def with_gaps(self) -> list[int]:
        """The columns with missing numbers."""
        return [column for column, count in enumerate(self.count) if count < self.rows]

    @property
    def variance(self) -> npt.NDArray[np.float64]:
        """The variances; 1 if all numbers of a column are equal, so that they become 0."""
        found = self.spread / np.maximum(self.count, 1)
        return np.where(found > 0, found, 1.0)

    @property
    def scale(self) -> Scale:
        """Mean and standard deviation."""
        return Scale(self.mean, np.where(self.spread > 0, np.sqrt(self.variance), 0))
