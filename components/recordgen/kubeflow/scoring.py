"""A model's answers, batch by batch → the numbers that say how good it is.

Each task names the class that measures its models, as its ``measure``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recordgen.training.auc import ScoreCounts, mean_area
from recordgen.training.average_precision import BoxMatches
from recordgen.training.config import ACCURACY, AUC, F1, MEAN_PRECISION, R2, TABLE_SCORE
from recordgen.training.entity_counts import EntityCounts
from recordgen.training.table_score import TableCounts

# Consoles draw each label's numbers, and they lie in the artifacts' metadata.
_MOST_LABELS = 100
_SMALLEST = 1e-7  # of a probability, as Keras has it


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a model's answers came to.

    Attributes:
        measure: what the score is, such as ``accuracy`` or ``auc``.
        score: 0..1; NaN if the examples do not tell.
        loss: the mean; the accumulator says of what.
        examples: labelled examples that were looked at.
        by_label: further numbers for the artifact ``metrics``.
        confusion: metadata of the artifact ``confusion``, a ``system.ClassificationMetrics``.
    """

    measure: str
    score: float
    loss: float
    examples: int
    by_label: Mapping[str, float] = field(default_factory=dict)
    confusion: Mapping[str, Any] = field(default_factory=dict)


class TfmaMetric(NamedTuple):
    """The same measure in TensorFlow Model Analysis, for the Evaluator.

    Attributes:
        name: of the metric in the results.
        class_name: the metric's class.
        module: where it is; empty: TFMA or Keras has it.
    """

    name: str
    class_name: str
    module: str = ""


class EvalAccumulator(Protocol):
    """What is counted of answers, for a number of classes.

    Attributes:
        needs: what a split must have for a score, as an error says it.
        tfma: the same measure in TFX pipelines.
    """

    needs: ClassVar[str]
    tfma: ClassVar[TfmaMetric]

    def __init__(self, classes: int) -> None: ...

    def add(self, truth: npt.NDArray[Any], scores: npt.NDArray[np.float32]) -> None:
        """Count a batch.

        Args:
            truth: ``label`` of the signature ``truth``, of labelled examples.
            scores: what the model says of them, by its signature ``evaluate``; of labels float32
                [batch, classes].
        """
        ...

    def evaluation(self, labels: Sequence[str]) -> Evaluation:
        """Return what it came to."""
        ...


class OneLabelAccumulator:
    """Which label was taken for which, in examples with one label each."""

    needs: ClassVar[str] = "labelled example"
    tfma: ClassVar[TfmaMetric] = TfmaMetric(ACCURACY, "SparseCategoricalAccuracy")

    def __init__(self, classes: int) -> None:
        self._confusion = np.zeros((classes, classes), np.int64)  # by label and answer
        self._loss = 0.0

    def add(self, truth: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]) -> None:
        """Count a batch; ``truth`` is int64 [batch]."""
        np.add.at(self._confusion, (truth, scores.argmax(axis=1)), 1)
        right = scores[np.arange(len(truth)), truth]
        self._loss -= float(np.log(np.clip(right, _SMALLEST, 1)).sum())

    def evaluation(self, labels: Sequence[str]) -> Evaluation:
        """Return accuracy, mean cross-entropy, and the confusion matrix of up to 100 labels."""
        examples = int(self._confusion.sum())
        return Evaluation(
            measure=ACCURACY,
            score=float(self._confusion.trace()) / examples,
            loss=self._loss / examples,
            examples=examples,
            confusion=_matrix(labels, self._confusion) if len(labels) <= _MOST_LABELS else {},
        )


class ManyLabelsAccumulator:
    """How well scores tell which labels an example has, in examples with any number of them."""

    needs: ClassVar[str] = "label that only some of its examples have"
    tfma: ClassVar[TfmaMetric] = TfmaMetric(AUC, "LabelAUC", "recordgen.training.tfma_auc")

    def __init__(self, classes: int) -> None:
        self._counts = ScoreCounts(classes)
        self._examples = 0
        self._loss = 0.0

    def add(self, truth: npt.NDArray[np.float32], scores: npt.NDArray[np.float32]) -> None:
        """Count a batch; ``truth`` is float32 [batch, classes], 0 or 1."""
        self._counts.add(truth, scores, np.ones(len(truth), np.float32))
        self._examples += len(truth)
        right = np.where(truth > 0, scores, 1 - scores)
        self._loss -= float(np.log(np.clip(right, _SMALLEST, 1)).mean(axis=1).sum())

    def evaluation(self, labels: Sequence[str]) -> Evaluation:
        """Return the mean AUC, the mean binary cross-entropy, and the AUC of up to 100 labels."""
        areas = self._counts.areas()
        named = zip(labels, areas.tolist(), strict=True) if len(labels) <= _MOST_LABELS else ()
        return Evaluation(
            measure=AUC,
            score=mean_area(areas),
            loss=self._loss / self._examples,
            examples=self._examples,
            by_label={f"{AUC}/{label}": area for label, area in named if not np.isnan(area)},
        )


class BoxAccumulator:
    """How well boxes were found."""

    needs: ClassVar[str] = "object"
    tfma: ClassVar[TfmaMetric] = TfmaMetric(
        MEAN_PRECISION, "BoxPrecision", "recordgen.training.tfma_average_precision"
    )

    def __init__(self, classes: int) -> None:
        self._matches = BoxMatches()
        self._examples = 0

    def add(self, truth: npt.NDArray[np.float32], scores: npt.NDArray[np.float32]) -> None:
        """Count a batch; ``truth`` is float32 [batch, n, 5], ``scores`` float32 [batch, k, 6]."""
        for true, found in zip(truth, scores, strict=True):
            self._matches.add(true, found)
        self._examples += len(truth)

    def evaluation(self, labels: Sequence[str]) -> Evaluation:
        """Return the mean average precision, and the average precision of up to 100 labels.

        The loss is the mean over true boxes of the part that was missed: 1 less the intersection
        over union with the box that found it, 1 for one that was not found.
        """
        precisions = self._matches.average_precisions()
        if not precisions:
            return Evaluation(MEAN_PRECISION, math.nan, math.nan, self._examples)
        return Evaluation(
            measure=MEAN_PRECISION,
            score=sum(precisions.values()) / len(precisions),
            loss=1 - self._matches.overlap / self._matches.true.total(),
            examples=self._examples,
            by_label={
                f"{MEAN_PRECISION}/{labels[number]}": precision
                for number, precision in precisions.items()
                if len(labels) <= _MOST_LABELS
            },
        )


class EntityAccumulator:
    """How well entities were found."""

    needs: ClassVar[str] = "entity"
    tfma: ClassVar[TfmaMetric] = TfmaMetric(F1, "EntityF1", "recordgen.training.tfma_entities")

    def __init__(self, classes: int) -> None:
        self._counts = EntityCounts(classes)
        self._examples = 0
        self._tokens = 0
        self._loss = 0.0

    def add(self, truth: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]) -> None:
        """Count a batch; ``truth`` is int64 [batch, n], ``scores`` float32 [batch, n, tags]."""
        self._counts.add(truth, scores.argmax(axis=-1))
        self._examples += len(truth)
        is_token = truth >= 0
        right = np.take_along_axis(scores[is_token], truth[is_token, None], axis=1)
        self._tokens += len(right)
        self._loss -= float(np.log(np.clip(right, _SMALLEST, 1)).sum())

    def evaluation(self, labels: Sequence[str]) -> Evaluation:
        """Return F1, the tokens' mean cross-entropy, and the F1 of up to 100 labels."""
        by_label = self._counts.f1_by_label() if len(labels) <= _MOST_LABELS else {}
        return Evaluation(
            measure=F1,
            score=self._counts.f1(),
            loss=self._loss / self._tokens,
            examples=self._examples,
            by_label={f"{F1}/{labels[number]}": score for number, score in by_label.items()},
        )


class TableAccumulator:
    """How well the target of a table was predicted."""

    needs: ClassVar[str] = "rows of different targets"
    tfma: ClassVar[TfmaMetric] = TfmaMetric(
        TABLE_SCORE, "TableScore", "recordgen.training.tfma_table_score"
    )

    def __init__(self, classes: int) -> None:
        self._counts = TableCounts()
        self._classes = classes

    def add(self, truth: npt.NDArray[Any], scores: npt.NDArray[np.float32]) -> None:
        """Count a batch; see :meth:`recordgen.training.table_score.TableCounts.add`."""
        self._counts.add(truth, scores)

    def evaluation(self, labels: Sequence[str]) -> Evaluation:
        """Return accuracy and mean cross-entropy; of numbers, R² and the mean squared error."""
        counts = self._counts
        measure, score = (ACCURACY, counts.accuracy()) if self._classes else (R2, counts.r2())
        return Evaluation(measure, score, counts.loss(), counts.examples)


def _matrix(labels: Sequence[str], confusion: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the metadata from which consoles draw a confusion matrix."""
    return {
        "confusionMatrix": {
            "annotationSpecs": [{"displayName": label} for label in labels],
            "rows": [{"row": row} for row in confusion.tolist()],
        }
    }
