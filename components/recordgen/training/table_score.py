"""The score of predictions from a table, from 0 to 1: accuracy of classes, R² of numbers.

Accuracy is the share of rows whose class has the best score. R² is the share of the target's
variance that the predictions explain: 1 if all are right, and 0 if they are no better than the mean
of all targets (a negative R², for even worse predictions, becomes 0).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


class TableCounts:
    """The counts of the score. For precision, squares are summed around the mean.

    Attributes:
        examples: the number of rows.
        right: the number of right classes.
        mean: the mean of targets that are numbers.
        spread: the sum of their squared differences from the mean.
        error: the sum of the squared errors, or of the cross-entropies of classes.
    """

    def __init__(self) -> None:
        self.examples = 0
        self.right = 0
        self.mean = 0.0
        self.spread = 0.0
        self.error = 0.0

    def add(self, truth: npt.NDArray[Any], scores: npt.NDArray[np.float32]) -> None:
        """Count rows.

        Args:
            truth: the number of each class, int64 [batch], -1 if the model does not know it; or
                the target, float32 [batch].
            scores: the score of each of at least two classes, float32 [batch, classes]; or the
                prediction, float32 [batch, 1].
        """
        if scores.shape[1] > 1:
            classes = truth.astype(np.int64)
            self.right += int((scores.argmax(axis=1) == classes).sum())
            padded = np.pad(scores, ((0, 0), (0, 1)))  # class -1 has probability 0
            chosen = padded[np.arange(len(classes)), classes].astype(np.float64)
            self.error -= float(np.log(np.clip(chosen, _SMALLEST, 1)).sum())
            self.examples += len(classes)
            return
        targets = truth.astype(np.float64)
        new = TableCounts()
        new.examples = len(targets)
        new.mean = float(targets.mean()) if len(targets) else 0.0
        new.spread = float(np.square(targets - new.mean).sum())
        new.error = float(np.square(targets - scores[:, 0]).sum())
        self.merge(new)

    def merge(self, other: TableCounts) -> None:
        """Add the counts of another instance."""
        examples = self.examples + other.examples
        if examples:
            apart = other.mean - self.mean
            self.spread += other.spread + apart**2 * self.examples * other.examples / examples
            self.mean += apart * other.examples / examples
        self.examples = examples
        self.right += other.right
        self.error += other.error

    def accuracy(self) -> float:
        """Return the share of right classes; NaN without rows."""
        return self.right / self.examples if self.examples else math.nan

    def r2(self) -> float:
        """Return R², 0 if it is negative; NaN if all targets are equal, or there are none."""
        return max(0.0, 1 - self.error / self.spread) if self.spread else math.nan

    def loss(self) -> float:
        """Return the mean cross-entropy, or the mean squared error; NaN without rows."""
        return self.error / self.examples if self.examples else math.nan


_SMALLEST = 1e-7  # probability, as in Keras
