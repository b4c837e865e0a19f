"""Mean and deviation of columns of numbers, computed in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Moments:
    """Mean and variance of columns of numbers (algorithm of Welford and Chan).

    Attributes:
        count: the number of present numbers, float64 [columns].
        mean: their mean, float64 [columns].
        spread: the sum of their squared differences from the mean, float64 [columns].
        rows: the number of rows, with and without numbers.
    """

    count: Numbers
    mean: Numbers
    spread: Numbers
    rows: int

    @classmethod
    def of(cls, numbers: npt.NDArray[Any]) -> Moments:
        """Return the moments of rows (float [rows, columns]); NaN represents a missing number."""
        present = ~np.isnan(numbers)
        values = np.where(present, numbers, 0).astype(np.float64)
        count = present.sum(axis=0)
        mean = values.sum(axis=0) / np.maximum(count, 1)
        spread = np.where(present, np.square(values - mean), 0).sum(axis=0)
        return cls(count, mean, spread, len(numbers))

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        count, apart = self.count + other.count, other.mean - self.mean
        total = np.maximum(count, 1)
        mean = self.mean + apart * other.count / total
        between = np.square(apart) * self.count * other.count / total
        return Moments(count, mean, self.spread + other.spread + between, self.rows + other.rows)

    @property
    def with_gaps(self) -> list[int]:
        """The columns with missing numbers."""
        return [column for column, count in enumerate(self.count) if count < self.rows]

    @property
    def scale(self) -> Scale:
        """Mean and standard deviation."""
        return Scale(self.mean, np.sqrt(self.spread / np.maximum(self.count, 1)))


NOTHING = Moments.of(np.empty((0, 0)))
