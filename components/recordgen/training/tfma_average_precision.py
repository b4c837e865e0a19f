"""The average precision of each label's boxes, and their mean, as a metric of TFMA.

::

    tfma.MetricConfig(
        class_name="BoxPrecision", module="recordgen.training.tfma_average_precision"
    )

TFMA has COCO's metrics, too, but for labels whose numbers are known when a pipeline is defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.average_precision import BoxMatches
from recordgen.training.config import MEAN_PRECISION
from recordgen.training.tfma_counts import CountAnswers, counting


class BoxPrecision(metrics.Metric):
    """``map``: the mean over all labels; ``map`` of class id N: the precision of the label N.

    An example's label and prediction are boxes, as :mod:`recordgen.training.average_precision` and
    TFMA's own metrics take them: float32 [n, 5] and [k, 6].
    """

    def __init__(self, name: str = MEAN_PRECISION) -> None:
        super().__init__(counting(_MatchBoxes), name=name)


class _MatchBoxes(CountAnswers[BoxMatches]):
    def count(
        self,
        counts: BoxMatches | None,
        truth: npt.NDArray[Any],
        scores: npt.NDArray[np.float32],
        weight: float,
    ) -> BoxMatches:
        counts = counts or BoxMatches()
        if weight > 0:
            counts.add(truth, scores)
        return counts

    def compact(self, accumulator: BoxMatches | None) -> BoxMatches | None:
        """Make it small before it travels."""
        if accumulator is not None:
            accumulator.compact()
        return accumulator

    def by_label(self, counts: BoxMatches) -> Mapping[int, float]:
        return counts.average_precisions()
