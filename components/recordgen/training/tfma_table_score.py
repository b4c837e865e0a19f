"""The score of predictions from a table as a metric of TensorFlow Model Analysis.

::

tfma.MetricConfig(class_name="TableScore", module="recordgen.training.tfma_table_score")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.config import TABLE_SCORE
from recordgen.training.table_score import TableCounts
from recordgen.training.tfma_counts import CountAnswers, counting


class TableScore(metrics.Metric):
    """``score``: accuracy of classes, R² of numbers; see :mod:`recordgen.training.table_score`."""

    def __init__(self, name: str = TABLE_SCORE) -> None:
        super().__init__(counting(_CountRows), name=name)


class _Counted(TableCounts):
    """Counts that know of which kind they are.

    Attributes:
        are_classes: whether the answers are scores of classes.
    """

    are_classes = False


class _CountRows(CountAnswers[_Counted]):
    def count(
        self,
        counts: _Counted | None,
        truth: npt.NDArray[Any],
        scores: npt.NDArray[np.float32],
        weight: float,
    ) -> _Counted:
        counts = counts or _Counted()
        counts.are_classes = scores.size > 1
        if weight:  # else there is no label
            counts.add(truth.reshape(1), scores.reshape(1, -1))
        return counts

    def by_label(self, counts: _Counted) -> Mapping[int, float]:
        return {}

    def extract_output(self, accumulator: _Counted | None) -> dict[metrics.MetricKey, float]:
        """Return the score by its key; without rows that tell, NaN."""
        if accumulator is None:
            return {self._key: float("nan")}
        return {self._key: accumulator.accuracy() if accumulator.are_classes else accumulator.r2()}
