"""The measures of :mod:`recordgen.training.measures` as metrics of TensorFlow Model Analysis.

Unlike TFMA's own metrics of single classes, they find the labels in the data: nobody has to know
their numbers when a pipeline is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics

from recordgen.training.measures import EvalAccumulator

#: Returns an empty accumulator for answers like the one to a single example.
Start = Callable[[npt.NDArray[np.float32]], EvalAccumulator]


class CountAnswers(beam.CombineFn):
    """Examples → the score, and, as metrics of class ids, the scores of single labels.

    The accumulator is None until there was an example.
    """

    def __init__(self, start: Start, key: metrics.MetricKey, eval_config: Any) -> None:
        self._start = start
        self._key = key
        self._eval_config = eval_config

    def create_accumulator(self) -> EvalAccumulator | None:
        """Start."""
        return None

    def add_input(self, accumulator: EvalAccumulator | None, element: Any) -> EvalAccumulator:
        """Count one of TFMA's inputs; an example of weight 0 has no label."""
        [(truth, scores, weight)] = metrics.to_label_prediction_example_weight(
            element,
            eval_config=self._eval_config,
            model_name=self._key.model_name,
            output_name=self._key.output_name,
            example_weighted=self._key.example_weighted,
            flatten=False,
            squeeze=False,
            require_single_example_weight=True,
        )
        accumulator = accumulator or self._start(scores)
        if weight.item() > 0:
            accumulator.add(truth[None], np.atleast_1d(scores)[None], float(weight.item()))
        return accumulator

    def merge_accumulators(
        self, accumulators: Iterable[EvalAccumulator | None]
    ) -> EvalAccumulator | None:
        """Add up."""
        merged = None
        for accumulator in accumulators:
            if merged is None:
                merged = accumulator
            elif accumulator is not None:
                merged.merge(accumulator)
        return merged

    def compact(self, accumulator: EvalAccumulator | None) -> EvalAccumulator | None:
        """Make an accumulator small before it travels."""
        if accumulator is not None:
            accumulator.compact()
        return accumulator

    def extract_output(self, accumulator: EvalAccumulator | None) -> dict[metrics.MetricKey, float]:
        """Return the scores by key; NaN without an example."""
        if accumulator is None:
            return {self._key: float("nan")}
        return {self._key: accumulator.score()} | {
            self._key._replace(sub_key=metrics.SubKey(class_id=number)): score
            for number, score in accumulator.by_label().items()
        }


def counting(start: Start) -> Any:
    """Return the function that ``tfma.metrics.Metric`` calls: a combination per model output."""

    def computations(
        name: str,
        eval_config: Any = None,
        model_names: Iterable[str] = ("",),
        output_names: Iterable[str] = ("",),
        example_weighted: bool = False,
    ) -> list[metrics.MetricComputation]:
        keys = [
            metrics.MetricKey(name, model, output, example_weighted=example_weighted)
            for model in model_names
            for output in output_names
        ]
        return [
            metrics.MetricComputation(
                keys=[key], preprocessors=None, combiner=CountAnswers(start, key, eval_config)
            )
            for key in keys
        ]

    return computations
