"""F1 of the entities in texts, and that of each label, as a metric of TensorFlow Model Analysis.

``tfma.MetricConfig(class_name="EntityF1", module="recordgen.training.tfma_entities")``
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.config import F1
from recordgen.training.measures import EntityAccumulator
from recordgen.training.tfma_counts import counting


class EntityF1(metrics.Metric):
    """``f1``: over all entities; ``f1`` of class id N: over those with the label N.

    An example's label is the number of each token's tag (int64 [n], -1: no token), its prediction
    the score of each tag (float32 [n, tags]).
    """

    def __init__(self, name: str = F1) -> None:
        super().__init__(counting(_start), name=name)


def _start(scores: npt.NDArray[np.float32]) -> EntityAccumulator:
    return EntityAccumulator(scores.shape[-1] // 2)
