"""The average precision of each label's boxes, and their mean, as a metric of TFMA.

``tfma.MetricConfig(class_name="BoxPrecision", module="recordgen.training.tfma_average_precision")``

TFMA's own COCO metrics need the numbers of the labels when a pipeline is defined.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.config import MEAN_PRECISION
from recordgen.training.measures import BoxAccumulator
from recordgen.training.tfma_counts import counting


class BoxPrecision(metrics.Metric):
    """``map``: the mean over all labels; ``map`` of class id N: the precision of the label N.

    An example's label and prediction are boxes, as :mod:`recordgen.training.average_precision` and
    TFMA's own metrics take them: float32 [n, 5] and [k, 6].
    """

    def __init__(self, name: str = MEAN_PRECISION) -> None:
        super().__init__(counting(_start), name=name)


def _start(scores: npt.NDArray[np.float32]) -> BoxAccumulator:
    return BoxAccumulator(0)
