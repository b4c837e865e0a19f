"""F1 of the entities in texts, and that of each label, as a metric of TensorFlow Model Analysis.

::

    tfma.MetricConfig(class_name="EntityF1", module="recordgen.training.tfma_entities")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.config import F1
from recordgen.training.entity_counts import EntityCounts
from recordgen.training.tfma_counts import CountAnswers, counting


class EntityF1(metrics.Metric):
    """``f1``: over all entities; ``f1`` of class id N: of those with the label N.

    An example's label is the number of each token's tag (int64 [n], -1: no token), its prediction
    the score of each tag (float32 [n, tags]).
    """

    def __init__(self, name: str = F1) -> None:
        super().__init__(counting(_CountEntities), name=name)


class _CountEntities(CountAnswers[EntityCounts]):
    def count(
        self,
        counts: EntityCounts | None,
        truth: npt.NDArray[Any],
        scores: npt.NDArray[np.float32],
        weight: float,
    ) -> EntityCounts:
        counts = counts or EntityCounts(scores.shape[-1] // 2)
        if weight > 0:
            said = scores.argmax(axis=-1)
            counts.add(truth.reshape(1, -1), said.reshape(1, -1))
        return counts

    def by_label(self, counts: EntityCounts) -> Mapping[int, float]:
        return counts.f1_by_label()

    def extract_output(self, accumulator: EntityCounts | None) -> dict[metrics.MetricKey, float]:
        """Return F1 over all entities, not the mean of the labels'."""
        found = super().extract_output(accumulator)
        return found if accumulator is None else {**found, self._key: accumulator.f1()}
