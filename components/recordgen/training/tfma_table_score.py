"""The score of predictions from a table as a metric of TensorFlow Model Analysis.

``tfma.MetricConfig(class_name="TableScore", module="recordgen.training.tfma_table_score")``
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.config import TABLE_SCORE
from recordgen.training.measures import TableAccumulator
from recordgen.training.tfma_counts import counting


class TableScore(metrics.Metric):
    """``score``: accuracy of classes, R² of numbers; see :mod:`recordgen.training.table_score`."""

    def __init__(self, name: str = TABLE_SCORE) -> None:
        super().__init__(counting(_start), name=name)


def _start(scores: npt.NDArray[np.float32]) -> TableAccumulator:
    return TableAccumulator(scores.size if scores.size > 1 else 0)
