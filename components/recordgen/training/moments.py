"""Mean and variance of columns of numbers, found in one pass, and the layer that evens them out."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt


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

    def normalisation(self) -> keras.layers.Layer:
        """Return the layer that gives such columns a mean of 0 and a variance of 1."""
        return keras.layers.Normalization(mean=self.mean, variance=self.variance)
