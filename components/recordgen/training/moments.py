"""Mean and deviation of columns of numbers, computed in one pass."""

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

    def kept(self, now: Scale) -> Scale:
        """Return this scale for a training on other numbers, whose own scale is ``now``.

        If all numbers of a column were equal, its deviation is that of the new ones from them.
        """
        apart = np.hypot(now.deviation, now.mean - self.mean)
        return Scale(self.mean, np.where(self.deviation > 0, self.deviation, apart))


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

    @classmethod
    def of(cls, numbers: npt.NDArray[Any]) -> Moments:
        """Return the moments of rows (float [rows, columns]); NaN represents a missing number."""
        present = ~np.isnan(numbers)
        values = np.where(present, numbers, 0).astype(np.float64)
        found = cls(numbers.shape[1])
        found.rows, found.count = len(numbers), present.sum(axis=0)
        found.mean = values.sum(axis=0) / np.maximum(found.count, 1)
        found.spread = np.where(present, np.square(values - found.mean), 0).sum(axis=0)
        return found

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        found = Moments(len(self.count))
        found.rows, found.count = self.rows + other.rows, self.count + other.count
        total, apart = np.maximum(found.count, 1), other.mean - self.mean
        found.mean = self.mean + apart * other.count / total
        between = np.square(apart) * self.count * other.count / total
        found.spread = self.spread + other.spread + between
        return found

    @property
    def with_gaps(self) -> list[int]:
        """The columns with missing numbers."""
        return [column for column, count in enumerate(self.count) if count < self.rows]

    @property
    def scale(self) -> Scale:
        """Mean and standard deviation."""
        return Scale(self.mean, np.sqrt(self.spread / np.maximum(self.count, 1)))
