"""The AUC of each label, and their mean, as a metric of TensorFlow Model Analysis.

::

tfma.MetricConfig(class_name="LabelAUC", module="recordgen.training.tfma_auc")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.auc import ScoreCounts
from recordgen.training.config import AUC
from recordgen.training.tfma_counts import CountAnswers, counting


class LabelAUC(metrics.Metric):
    """``auc``: the mean over all labels; ``auc`` of class id N: that of the label N.

    Labels are expected as 0 and 1 for each class (multi-hot). A label that all examples have, or
    none, has no AUC: it is left out, of the mean, too.
    """

    def __init__(self, name: str = AUC) -> None:
        super().__init__(counting(_CountScores), name=name)


class _CountScores(CountAnswers[ScoreCounts]):
    def count(
        self,
        counts: ScoreCounts | None,
        truth: npt.NDArray[Any],
        scores: npt.NDArray[np.float32],
        weight: float,
    ) -> ScoreCounts:
        counts = counts or ScoreCounts(scores.size)
        weights = np.full(1, weight, np.float32)
        counts.add(truth.reshape(1, -1), scores.reshape(1, -1), weights)
        return counts

    def by_label(self, counts: ScoreCounts) -> Mapping[int, float]:
        areas = enumerate(counts.areas().tolist())
        return {number: area for number, area in areas if not np.isnan(area)}
