"""The AUC of each label, and their mean, as a metric of TensorFlow Model Analysis.

``tfma.MetricConfig(class_name="LabelAUC", module="recordgen.training.tfma_auc")``
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.config import AUC
from recordgen.training.measures import ManyLabelsAccumulator
from recordgen.training.tfma_counts import counting


class LabelAUC(metrics.Metric):
    """``auc``: the mean over all labels; ``auc`` of class id N: that of the label N.

    Labels are 0 and 1 for each class (multi-hot). A label that all examples have, or none, has no
    AUC and does not count for the mean.
    """

    def __init__(self, name: str = AUC) -> None:
        super().__init__(counting(_start), name=name)


def _start(scores: npt.NDArray[np.float32]) -> ManyLabelsAccumulator:
    return ManyLabelsAccumulator(scores.size)
