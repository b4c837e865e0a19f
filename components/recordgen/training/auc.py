"""The area under the ROC curve (AUC) of each label, in one pass over any number of examples.

Scores are counted between thresholds, so memory does not grow with the examples. For labels that
some but not all examples have, the areas equal the result of
``keras.metrics.AUC(multi_label=True, thresholds=THRESHOLDS)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recordgen.training.config import AUC
from recordgen.training.measures import Array, EvalAccumulator, TfmaMetric

# Evenly spaced in log-odds: a rare label's scores are all close to 0, where equal steps would not
# separate them. A barely trained model needs this many thresholds.
_LOG_ODDS = np.linspace(-14, 14, 1000)

# Close to 1, some thresholds are the same float32.
_EDGES = np.unique((1 / (1 + np.exp(-_LOG_ODDS))).astype(np.float32))

#: The thresholds; Keras adds one below 0 and one above 1.
THRESHOLDS: tuple[float, ...] = tuple(_EDGES.tolist())


class ManyLabelsAccumulator(EvalAccumulator):
    """Mean AUC of examples with any number of labels.

    Attributes:
        positive: scores of examples with the label, float64 [classes, thresholds + 1].
        negative: scores of examples without it, of the same shape.
    """

    needs = "label that only some of its examples have"
    tfma = TfmaMetric(AUC, "LabelAUC")
    sums = ("positive", "negative")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.positive = np.zeros((classes, len(_EDGES) + 1))
        self.negative = np.zeros_like(self.positive)

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch; ``y_true`` is float32 [batch, classes], 0 or 1."""
        weights = np.broadcast_to(np.float32(weight), len(y_true))[:, None]
        labels = np.broadcast_to(np.arange(y_pred.shape[1]), y_pred.shape)
        places = labels, np.searchsorted(_EDGES, y_pred)
        np.add.at(self.positive, places, y_true * weights)
        np.add.at(self.negative, places, (1 - y_true) * weights)
        self.examples += len(y_true)
        self._add_losses(np.where(y_true > 0, y_pred, 1 - y_pred))

    def known(self) -> int:
        return int((self.positive > 0).any(axis=1).sum())

    def score(self) -> float:
        """Return the mean AUC of the labels that have one.

        A label that the model does not know has an AUC of 0.5, the AUC of guesses: the model gives
        all examples the same score for it.
        """
        guessed = sum(0 < count < self.examples for count in self.unknown.values())
        areas = [*self.by_label().values(), *[0.5] * guessed]
        return float(np.mean(areas)) if areas else math.nan

    def by_label(self) -> Mapping[int, float]:
        """Return the AUC of each label that only some examples have.

        The AUC is the probability that an example with the label has a higher score than one
        without it.
        """
        from_here_up = self.positive[:, ::-1].cumsum(axis=1)[:, ::-1]
        # Two scores between the same thresholds count half.
        won = (self.negative * (from_here_up - self.positive / 2)).sum(axis=1)
        pairs = self.positive.sum(axis=1) * self.negative.sum(axis=1)
        return {int(n): float(won[n] / pairs[n]) for n in np.flatnonzero(pairs)}
