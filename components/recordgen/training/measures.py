"""Accumulators that count a model's answers batch by batch and return a score.

Each task names one of these classes as its ``measure``. The step ``evaluate`` of Kubeflow pipelines
uses it directly, the Evaluator of TFX pipelines through :mod:`recordgen.training.tfma_metrics`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.dataset.vocabulary import shown_labels
from recordgen.errors import DataError
from recordgen.records.tfrecord import read_records
from recordgen.training.auc import ScoreCounts, mean_area
from recordgen.training.average_precision import BoxMatches
from recordgen.training.config import (
    ACCURACY,
    AUC,
    F1,
    LABEL,
    MEAN_PRECISION,
    R2,
    TABLE_SCORE,
    UNKNOWN,
    WEIGHT,
)
from recordgen.training.entity_counts import EntityCounts
from recordgen.training.table_score import TableCounts

Array = npt.NDArray[Any]

#: Name of the labels that the model does not know, in metrics and confusion matrices.
UNKNOWN_LABELS = "unknown_labels"

#: Consoles chart the scores of each label, and metadata stores limit the size of an artifact.
MOST_LABELS = 100
_SMALLEST = 1e-7  # probability, as in Keras


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an evaluation.

    Attributes:
        measure: the name of the score, such as ``accuracy`` or ``auc``.
        score: 0..1; NaN if the examples do not determine it.
        loss: the mean loss.
        examples: number of labelled examples.
        by_label: the scores of single labels, for the artifact ``metrics``.
        unknown: counts of the labels that the model does not know, the most frequent first.
        confusion: metadata of the artifact ``confusion``, a ``system.ClassificationMetrics``.
    """

    measure: str
    score: float
    loss: float
    examples: int
    by_label: Mapping[str, float] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    confusion: Mapping[str, Any] = field(default_factory=dict)


class TfmaMetric(NamedTuple):
    """The same measure in TensorFlow Model Analysis; ``name`` is its name in the results."""

    name: str
    class_name: str
    module: str = "recordgen.training.tfma_metrics"


def record_batches(
    paths: Iterable[str], size: int = 64, most: int | None = None
) -> Iterator[list[bytes]]:
    """Yield the records of TFRecord files in batches: at most ``most`` of them, or all.

    Raises:
        RecordError: a record is damaged.
    """
    records = islice(chain.from_iterable(map(read_records, paths)), most)
    while batch := list(islice(records, size)):
        yield batch


class EvalAccumulator(ABC):
    """Counts a model's answers. Accumulators of separate batches can be merged.

    Labels have the model's numbers. A label that the model does not know counts as a wrong answer.

    Class attributes:
        needs: what a split must have for a score, for error messages.
        tfma: the same measure in TFX pipelines.

    Attributes:
        classes: the number of labels that the model knows; 0 if the target is a number.
        examples: the number of examples counted.
        counts: the counts that the score is computed from.
        unknown: counts of the labels that the model does not know.
        known_labels: the labels that it knows, as a text for errors.
    """

    needs: ClassVar[str]
    tfma: ClassVar[TfmaMetric]

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.examples = 0
        self.counts: Any = None
        self.unknown: Counter[str] = Counter()
        self.known_labels = ""
        self._loss_sum = 0.0
        self._losses = 0

    @abstractmethod
    def add(self, y_true: Array, y_pred: Array, weight: float = 1.0) -> None:
        """Count a batch of labelled examples.

        Args:
            y_true: ``label`` of the signature ``truth``.
            y_pred: ``scores`` of the signature ``evaluate``; float32 [batch, classes] for labels.
            weight: the weight of each example; only the AUC uses it.
        """

    def add_answers(self, scores: Array, truth: Mapping[str, Array]) -> None:
        """Count a batch of a model's answers; skip examples without a label.

        Args:
            scores: ``scores`` of the signature ``evaluate``.
            truth: the outputs of the signature ``truth``.
        """
        is_labelled = truth[WEIGHT] > 0
        self.add(truth[LABEL][is_labelled], scores[is_labelled])
        if UNKNOWN in truth:  # missing if the target is a number
            self.add_unknown(truth[UNKNOWN].ravel())

    def add_unknown(self, labels: Iterable[bytes]) -> None:
        """Count ``unknown`` of the signature ``truth``, flattened, for examples already added."""
        self.unknown.update(label.decode(errors="replace") for label in labels if label)

    def merge(self, other: EvalAccumulator) -> None:
        """Add the counts of another accumulator."""
        self.examples += other.examples
        self.unknown += other.unknown
        self._loss_sum += other._loss_sum
        self._losses += other._losses
        self._merge_counts(other.counts)

    def _merge_counts(self, counts: Any) -> None:
        self.counts.merge(counts)

    def compact(self) -> None:  # noqa: B027  (most are small)
        """Make the accumulator smaller before it is sent to another process."""

    @abstractmethod
    def known(self) -> int:
        """Return the number of the examples' labels that the model knows."""

    def check_labels(self) -> None:
        """Check that the model knows a label of the examples. Raises: DataError."""
        if self.unknown and not self.known():
            raise DataError(
                f"the model knows none of the labels that the examples have: the model knows "
                f"{self.known_labels}, the examples have {shown_labels(sorted(self.unknown))}; "
                f"evaluate it on examples of its own labels, or train a model on these"
            )

    @property
    def measure(self) -> str:
        """The name of the score."""
        return self.tfma.name

    @abstractmethod
    def score(self) -> float:
        """Return the score, 0..1; NaN if the examples do not determine it."""

    def loss(self) -> float:
        """Return the mean cross-entropy; NaN without examples."""
        return self._loss_sum / self._losses if self._losses else math.nan

    def by_label(self) -> Mapping[int, float]:
        """Return the scores by the label's number; labels without a score are missing."""
        return {}

    def confusion(self, labels: Sequence[str]) -> Mapping[str, Any]:
        """Return the metadata of a confusion matrix, for consoles."""
        del labels
        return {}

    def evaluation(self, labels: Sequence[str]) -> Evaluation:
        """Return the result, with scores of single labels if there are at most 100 labels."""
        are_few = len(labels) <= MOST_LABELS
        by_label = self.by_label() if are_few else {}
        return Evaluation(
            measure=self.measure,
            score=self.score(),
            loss=self.loss(),
            examples=self.examples,
            by_label={f"{self.measure}/{labels[n]}": score for n, score in by_label.items()},
            unknown=dict(self.unknown.most_common()),
            confusion=self.confusion(labels) if are_few else {},
        )

    def _add_losses(self, probabilities: Array) -> None:
        """Add the cross-entropies of true labels with these probabilities."""
        self._loss_sum -= float(np.log(np.clip(probabilities, _SMALLEST, 1)).sum())
        self._losses += probabilities.size


class OneLabelAccumulator(EvalAccumulator):
    """Accuracy of examples with one label each."""

    needs = "labelled example"
    tfma = TfmaMetric(ACCURACY, "LabelAccuracy")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.counts: Counter[tuple[int, int]] = Counter()  # (label, -1 if unknown; answer)

    def add(self, y_true: Array, y_pred: Array, weight: float = 1.0) -> None:
        """Count a batch; ``y_true`` is int64 [batch], -1 if the model does not know the label."""
        y_true = y_true.reshape(len(y_pred))  # TFMA adds a dimension
        self.counts.update(zip(y_true.tolist(), y_pred.argmax(axis=1).tolist(), strict=True))
        self.examples += len(y_true)
        # Index -1, an unknown label, gets the last column: probability 0.
        self._add_losses(np.pad(y_pred, ((0, 0), (0, 1)))[np.arange(len(y_true)), y_true])

    def _merge_counts(self, counts: Counter[tuple[int, int]]) -> None:
        self.counts += counts

    def known(self) -> int:
        """Return the number of examples whose label the model knows."""
        return sum(count for (true, _), count in self.counts.items() if true >= 0)

    def score(self) -> float:
        """Return the accuracy."""
        right = sum(count for (true, answer), count in self.counts.items() if true == answer)
        return right / self.examples if self.examples else math.nan

    def confusion(self, labels: Sequence[str]) -> Mapping[str, Any]:
        """Return the counts of each pair of label and answer."""
        names = [*labels, *([UNKNOWN_LABELS] if self.unknown else [])]
        counts = np.zeros((len(names), len(names)), int)
        for pair, count in self.counts.items():  # label -1 is the last row
            counts[pair] = count
        return {
            "confusionMatrix": {
                "annotationSpecs": [{"displayName": name} for name in names],
                "rows": [{"row": row} for row in counts.tolist()],
            }
        }


class ManyLabelsAccumulator(EvalAccumulator):
    """Mean AUC of examples with any number of labels."""

    needs = "label that only some of its examples have"
    tfma = TfmaMetric(AUC, "LabelAUC")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.counts = ScoreCounts(classes)

    def add(self, y_true: Array, y_pred: Array, weight: float = 1.0) -> None:
        """Count a batch; ``y_true`` is float32 [batch, classes], 0 or 1."""
        self.counts.add(y_true, y_pred, np.full(len(y_true), weight, np.float32))
        self.examples += len(y_true)
        self._add_losses(np.where(y_true > 0, y_pred, 1 - y_pred))

    def known(self) -> int:
        """Return the number of labels that the model knows and some example has."""
        return int((self.counts.positive > 0).any(axis=1).sum())

    def score(self) -> float:
        """Return the mean AUC of the labels that have one.

        A label that the model does not know has an AUC of 0.5, the AUC of guesses: the model gives
        all examples the same score for it.
        """
        guessed = [count for count in self.unknown.values() if 0 < count < self.examples]
        return mean_area(np.append(self.counts.areas(), np.full(len(guessed), 0.5)))

    def by_label(self) -> Mapping[int, float]:
        """Return the AUC of each label that only some examples have."""
        areas = enumerate(self.counts.areas().tolist())
        return {number: area for number, area in areas if not math.isnan(area)}


class BoxAccumulator(EvalAccumulator):
    """Mean average precision of boxes."""

    needs = "object"
    tfma = TfmaMetric(MEAN_PRECISION, "BoxPrecision")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.counts = BoxMatches()

    def add(self, y_true: Array, y_pred: Array, weight: float = 1.0) -> None:
        """Count a batch; ``y_true`` is float32 [batch, n, 5], ``y_pred`` float32 [batch, k, 6]."""
        for true, found in zip(y_true, y_pred, strict=True):
            self.counts.add(true, found)
        self.examples += len(y_true)

    def compact(self) -> None:
        """Keep a few large arrays instead of many small ones."""
        self.counts.compact()

    def known(self) -> int:
        """Return the number of boxes whose label the model knows."""
        return int(self.counts.true.total())

    def score(self) -> float:
        """Return the mean over all labels with boxes; a label unknown to the model has 0."""
        found = self.by_label()
        labels = len(found) + len(self.unknown)
        return sum(found.values()) / labels if labels else math.nan

    def loss(self) -> float:
        """Return the mean loss of the true boxes.

        The loss of a box is 1 - IoU with the predicted box that matches it; 1 without a match.
        """
        true = self.counts.true.total() + self.unknown.total()
        return 1 - self.counts.overlap / true if true else math.nan

    def by_label(self) -> Mapping[int, float]:
        """Return the average precision of each label that has boxes."""
        found: Mapping[int, float] = self.counts.average_precisions()
        return found


class EntityAccumulator(EvalAccumulator):
    """F1 of entities; the loss is the cross-entropy of the tokens' tags."""

    needs = "entity"
    tfma = TfmaMetric(F1, "EntityF1")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        # The last label represents all labels that the model does not know.
        self.counts = EntityCounts(classes + 1)

    def add(self, y_true: Array, y_pred: Array, weight: float = 1.0) -> None:
        """Count a batch; ``y_true`` is int64 [batch, n], ``y_pred`` float32 [batch, n, tags]."""
        y_pred = np.pad(y_pred, ((0, 0), (0, 0), (0, 2)))
        self.counts.add(y_true, y_pred.argmax(axis=-1))
        self.examples += len(y_true)
        is_token = y_true >= 0
        self._add_losses(np.take_along_axis(y_pred[is_token], y_true[is_token, None], axis=1))

    def known(self) -> int:
        """Return the number of entities whose label the model knows."""
        return int(self.counts.true[:-1].sum())

    def score(self) -> float:
        """Return F1 over all entities (micro-averaged)."""
        return float(self.counts.f1())

    def by_label(self) -> Mapping[int, float]:
        """Return the F1 of each label that has entities."""
        found: Mapping[int, float] = self.counts.f1_by_label()
        return {number: score for number, score in found.items() if number < self.classes}


class TableAccumulator(EvalAccumulator):
    """Accuracy and mean cross-entropy of classes; R² and mean squared error of numbers."""

    needs = "rows of different targets"
    tfma = TfmaMetric(TABLE_SCORE, "TableScore")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.counts = TableCounts()

    @property
    def measure(self) -> str:
        """The name of the score: ``accuracy`` or ``r2``."""
        return ACCURACY if self.classes else R2

    def add(self, y_true: Array, y_pred: Array, weight: float = 1.0) -> None:
        """Count a batch; see :meth:`recordgen.training.table_score.TableCounts.add`."""
        self.counts.add(y_true, y_pred)
        self.examples += len(y_true)

    def known(self) -> int:
        """Return the number of rows whose class the model knows; all rows if numbers."""
        return self.examples - self.unknown.total()

    def score(self) -> float:
        """Return accuracy or R²."""
        return float(self.counts.accuracy() if self.classes else self.counts.r2())

    def loss(self) -> float:
        """Return the mean cross-entropy or the mean squared error."""
        return float(self.counts.loss())
