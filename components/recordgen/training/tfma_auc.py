"""The AUC of each label, and their mean, as a metric of TensorFlow Model Analysis.

TFMA's own metrics of single classes are told the classes' numbers when a pipeline is defined; this
one finds them in the data::

    tfma.MetricConfig(class_name="LabelAUC", module="recordgen.training.tfma_auc")
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis import metrics

from recordgen.training.auc import ScoreCounts, mean_area
from recordgen.training.config import AUC


class LabelAUC(metrics.Metric):
    """``auc``: the mean over all labels; ``auc`` of class id N: that of the label N.

    Labels are expected as 0 and 1 for each class (multi-hot). A label that all examples have, or
    none, has no AUC: it is left out, of the mean, too.
    """

    def __init__(self, name: str = AUC) -> None:
        super().__init__(_computations, name=name)


def _computations(
    name: str,
    eval_config: Any = None,
    model_names: Iterable[str] = ("",),
    output_names: Iterable[str] = ("",),
    example_weighted: bool = False,
) -> list[metrics.MetricComputation]:
    """Return what TFMA computes: one combination for each model and output."""
    keys = [
        metrics.MetricKey(name, model, output, example_weighted=example_weighted)
        for model in model_names
        for output in output_names
    ]
    return [
        metrics.MetricComputation(
            keys=[key], preprocessors=None, combiner=_CountScores(key, eval_config)
        )
        for key in keys
    ]


class _CountScores(beam.CombineFn):
    """Examples → AUC by key. The accumulator is None until there was an example."""

    def __init__(self, key: metrics.MetricKey, eval_config: Any) -> None:
        self._key = key
        self._eval_config = eval_config

    def create_accumulator(self) -> ScoreCounts | None:
        return None

    def add_input(self, accumulator: ScoreCounts | None, element: Any) -> ScoreCounts:
        [(truth, scores, weight)] = metrics.to_label_prediction_example_weight(
            element,
            eval_config=self._eval_config,
            model_name=self._key.model_name,
            output_name=self._key.output_name,
            example_weighted=self._key.example_weighted,
            flatten=False,
            require_single_example_weight=True,
        )
        counts = accumulator or ScoreCounts(scores.size)
        counts.add(truth.reshape(1, -1), scores.reshape(1, -1), weight.reshape(1))
        return counts

    def merge_accumulators(self, accumulators: Iterable[ScoreCounts | None]) -> ScoreCounts | None:
        merged = None
        for counts in accumulators:
            if merged is None:
                merged = counts
            elif counts is not None:
                merged.merge(counts)
        return merged

    def extract_output(self, accumulator: ScoreCounts | None) -> dict[metrics.MetricKey, float]:
        areas = np.empty(0) if accumulator is None else accumulator.areas()
        found = {self._key: mean_area(areas)}
        for number, area in enumerate(areas):
            if not np.isnan(area):
                found[self._key._replace(sub_key=metrics.SubKey(class_id=number))] = float(area)
        return found
