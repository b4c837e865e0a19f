"""The measures of :mod:`recordgen.training.measures` as metrics of TensorFlow Model Analysis.

Unlike TFMA's own metrics of single classes, they take the labels from the data: a pipeline's
definition does not need their numbers, which differ between models. As well as its score, each
metric returns ``unknown_labels``, the number of labels that the model does not know, and
``unknown_labels:LABEL`` for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis import EvalConfig, SlicingSpec, metrics

from recordgen.training import measures
from recordgen.training.config import KNOWN, UNKNOWN
from recordgen.training.measures import EvalAccumulator


class _CountingMetric(metrics.Metric):
    """A metric that counts with an accumulator."""

    accumulator: ClassVar[type[EvalAccumulator]]

    def __init__(self, name: str = "") -> None:
        super().__init__(self._computations, name=name or self.accumulator.tfma.name)

    def _computations(
        self,
        name: str,
        eval_config: Any = None,
        model_names: Iterable[str] = ("",),
        output_names: Iterable[str] = ("",),
        example_weighted: bool = False,
    ) -> list[metrics.MetricComputation]:
        """Return one computation for each output of a model, as TFMA asks for them."""
        keys = [
            metrics.MetricKey(name, model, output, example_weighted=example_weighted)
            for model in model_names
            for output in output_names
        ]
        return [
            metrics.MetricComputation(
                keys=[key],
                preprocessors=[
                    metrics.CombinedFeaturePreprocessor(
                        [UNKNOWN, KNOWN],
                        # With several models, each has its own features.
                        model_names=[key.model_name] if key.model_name else None,
                    )
                ],
                combiner=CountAnswers(self.accumulator, key, eval_config),
            )
            for key in keys
        ]


class LabelAccuracy(_CountingMetric):
    """``accuracy``: the share of examples whose label has the best score.

    An example's label is a number, -1 if the model does not know it.
    """

    accumulator = measures.OneLabelAccumulator


class LabelAUC(_CountingMetric):
    """``auc``: the mean over all labels; ``auc`` of class id N: the AUC of label N.

    Labels are 0 and 1 for each class (multi-hot). A label that all examples have, or none, has no
    AUC and is not part of the mean.
    """

    accumulator = measures.ManyLabelsAccumulator


class BoxPrecision(_CountingMetric):
    """``map``: the mean over all labels; ``map`` of class id N: the precision of label N.

    An example's label and prediction are boxes, float32 [n, 5] and [k, 6], in the format of
    :class:`recordgen.training.measures.BoxAccumulator` and of TFMA's own metrics.
    """

    accumulator = measures.BoxAccumulator


class PixelIoU(_CountingMetric):
    """``mean_iou``: the mean over all classes; ``mean_iou`` of class id N: the IoU of class N.

    An example's label and prediction are the class numbers of pixels, int32 [height, width].
    """

    accumulator = measures.MaskAccumulator


class EntityF1(_CountingMetric):
    """``f1``: over all entities; ``f1`` of class id N: over the entities with label N.

    An example's label is the number of each token's tag (int64 [n], -1 for padding), its prediction
    the score of each tag (float32 [n, tags]).
    """

    accumulator = measures.EntityAccumulator


class TableScore(_CountingMetric):
    """``score``: accuracy of classes, R² of numbers."""

    accumulator = measures.TableAccumulator


class CountAnswers(beam.CombineFn):
    """Examples → the score, and, as metrics of class ids, the scores of single labels.

    The accumulator is None before the first example.
    """

    def __init__(
        self, kind: type[EvalAccumulator], key: metrics.MetricKey, eval_config: Any
    ) -> None:
        self._kind = kind
        self._key = key
        self._eval_config = eval_config or EvalConfig()

    def create_accumulator(self) -> EvalAccumulator | None:
        return None

    def add_input(self, accumulator: EvalAccumulator | None, element: Any) -> EvalAccumulator:
        """Count one of TFMA's inputs; an example with weight 0 has no label.

        Raises: DataError: a score is NaN.
        """
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
        measures.check_answers(scores)
        accumulator = accumulator or self._kind.of_scores(scores)
        if weight.item() > 0:
            accumulator.add(truth[None], np.atleast_1d(scores)[None], float(weight.item()))
            features = element.get_transformed_features(self._key.model_name) or {}
            # A SavedModel of another trainer may lack these outputs.
            if UNKNOWN in features:
                accumulator.add_unknown(np.ravel(features[UNKNOWN]).tolist())
            if KNOWN in features:
                accumulator.known_labels = np.ravel(features[KNOWN])[0].decode()
        return accumulator

    def merge_accumulators(
        self, accumulators: Iterable[EvalAccumulator | None]
    ) -> EvalAccumulator | None:
        counted = [each for each in accumulators if each is not None]
        for each in counted[1:]:
            counted[0].merge(each)
        return counted[0] if counted else None

    def compact(self, accumulator: EvalAccumulator | None) -> EvalAccumulator | None:
        if accumulator is not None:
            accumulator.compact()
        return accumulator

    def extract_output(self, accumulator: EvalAccumulator | None) -> dict[metrics.MetricKey, float]:
        """Return the scores by key; NaN without an example.

        Raises: DataError: the model knows none of the labels; not checked if there are slices.
        """
        if accumulator is None:
            return {self._key: float("nan")}
        if not any(spec != SlicingSpec() for spec in self._eval_config.slicing_specs):
            accumulator.check_labels()
        unknown = accumulator.unknown.most_common(measures.MOST_LABELS)
        return {
            self._key: accumulator.score(),
            self._key._replace(name=measures.UNKNOWN_LABELS): float(len(accumulator.unknown)),
            **{
                self._key._replace(sub_key=metrics.SubKey(class_id=number)): score
                for number, score in accumulator.by_label().items()
            },
            **{
                self._key._replace(name=f"{measures.UNKNOWN_LABELS}:{label}"): float(count)
                for label, count in unknown
            },
        }
