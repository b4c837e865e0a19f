"""The area under the ROC curve (AUC) of each label, in one pass over any number of examples.

Scores are counted between thresholds, so memory does not grow with the examples. For labels that
some but not all examples have, the areas equal the result of
``keras.metrics.AUC(multi_label=True, thresholds=THRESHOLDS)``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Evenly spaced in log-odds: a rare label's scores are all close to 0, where equal steps would not
# separate them. A barely trained model needs this many thresholds.
_LOG_ODDS = np.linspace(-14, 14, 1000)

# Close to 1, some thresholds are the same float32.
_EDGES = np.unique((1 / (1 + np.exp(-_LOG_ODDS))).astype(np.float32))

#: The thresholds; Keras adds one below 0 and one above 1.
THRESHOLDS: tuple[float, ...] = tuple(_EDGES.tolist())


class ScoreCounts:
    """Counts of each label's scores between the thresholds.

    Attributes:
        positive: scores of examples with the label, float64 [classes, thresholds + 1].
        negative: scores of examples without it, of the same shape.
    """

    def __init__(self, classes: int) -> None:
        self.positive = np.zeros((classes, len(_EDGES) + 1))
        self.negative = np.zeros_like(self.positive)

    def add(
        self,
        truth: npt.NDArray[np.float32],
        scores: npt.NDArray[np.float32],
        weights: npt.NDArray[np.float32],
    ) -> None:
        """Count a batch.

        Args:
            truth: 1 if an example has a label, else 0; float32 [batch, classes].
            scores: the model's scores, 0..1; float32 [batch, classes].
            weights: the weight of each example, float32 [batch].
        """
        labels = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        places = labels, np.searchsorted(_EDGES, scores)
        np.add.at(self.positive, places, truth * weights[:, None])
        np.add.at(self.negative, places, (1 - truth) * weights[:, None])

    def merge(self, other: ScoreCounts) -> None:
        """Add the counts of another instance."""
        self.positive += other.positive
        self.negative += other.negative

    def areas(self) -> npt.NDArray[np.float64]:
        """Return the AUC of each label, 0..1, float64 [classes].

        The AUC is the probability that an example with the label has a higher score than one
        without it; NaN for a label that all examples have, or none.
        """
        from_here_up = self.positive[:, ::-1].cumsum(axis=1)[:, ::-1]
        # Two scores between the same thresholds count half.
        won = (self.negative * (from_here_up - self.positive / 2)).sum(axis=1)
        pairs = self.positive.sum(axis=1) * self.negative.sum(axis=1)
        return np.divide(won, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def mean_area(areas: npt.NDArray[np.float64]) -> float:
    """Return the mean of the areas that are not NaN, or NaN if all are."""
    known = areas[~np.isnan(areas)]
    return float(known.mean()) if known.size else float("nan")
