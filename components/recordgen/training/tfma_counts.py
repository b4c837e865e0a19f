"""Metrics of TensorFlow Model Analysis that count answers, and find the labels in the data.

TFMA's own metrics of single classes are told the classes' numbers when a pipeline is defined.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis import metrics


class Counts(Protocol):
    """What is counted of examples."""

    def merge(self, other: Any) -> None:
        """Add what another has counted."""


CountsT = TypeVar("CountsT", bound=Counts)


class CountAnswers(beam.CombineFn, Generic[CountsT]):
    """Examples → a score of each label, and their mean.

    The accumulator is None until there was an example.
    """

    def __init__(self, key: metrics.MetricKey, eval_config: Any) -> None:
        self._key = key
        self._eval_config = eval_config

    @abstractmethod
    def count(
        self,
        counts: CountsT | None,
        truth: npt.NDArray[Any],
        scores: npt.NDArray[np.float32],
        weight: float,
    ) -> CountsT:
        """Count one example, with what was counted before, if anything was.

        Args:
            counts: changed and returned.
            truth: ``label`` of the example, of the signature ``truth``.
            scores: ``scores`` of the example, of the signature ``evaluate``.
            weight: of the example.
        """

    @abstractmethod
    def by_label(self, counts: CountsT) -> Mapping[int, float]:
        """Return the score of each label that has one, by its number."""

    def create_accumulator(self) -> CountsT | None:
        """Start."""
        return None

    def add_input(self, accumulator: CountsT | None, element: Any) -> CountsT:
        """Count one of TFMA's inputs."""
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
        return self.count(accumulator, truth, scores, float(weight.item()))

    def merge_accumulators(self, accumulators: Iterable[CountsT | None]) -> CountsT | None:
        """Add up."""
        merged = None
        for counts in accumulators:
            if merged is None:
                merged = counts
            elif counts is not None:
                merged.merge(counts)
        return merged

    def extract_output(self, accumulator: CountsT | None) -> dict[metrics.MetricKey, float]:
        """Return the scores by key; without examples that tell, NaN for their mean."""
        found = {} if accumulator is None else self.by_label(accumulator)
        mean = float(np.mean(list(found.values()))) if found else float("nan")
        return {self._key: mean} | {
            self._key._replace(sub_key=metrics.SubKey(class_id=number)): score
            for number, score in found.items()
        }


def counting(combiner: type[CountAnswers[Any]]) -> Any:
    """Return what ``tfma.metrics.Metric`` is made of: a combination for each model and output."""

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
                keys=[key], preprocessors=None, combiner=combiner(key, eval_config)
            )
            for key in keys
        ]

    return computations
