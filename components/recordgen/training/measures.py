"""Accumulators that count a model's answers batch by batch and return a score.

Each task names an :class:`EvalAccumulator` as its ``measure``. The step ``evaluate`` of Kubeflow
pipelines uses it directly, TFX's Evaluator through :mod:`recordgen.training.tfma_metrics`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.core.dataset.vocabulary import shown_labels
from recordgen.errors import DataError
from recordgen.subjects.masks import IGNORED
from recordgen.subjects.objects import areas_of, shared_areas
from recordgen.training import config

# --- mean and deviation of columns of numbers, computed in one pass -------------------------------

Numbers = npt.NDArray[np.float64]


class Scale(NamedTuple):
    """Mean and standard deviation with which columns of numbers are normalised.

    Attributes:
        mean: float64 [columns].
        deviation: float64 [columns]; 0 if all numbers of a column were equal.
    """

    mean: Numbers
    deviation: Numbers

    @classmethod
    def of(cls, values: Mapping[str, Sequence[float]]) -> Scale:
        """Return the scale that :meth:`to_dict` stored."""
        return cls(np.array(values["mean"]), np.array(values["deviation"]))

    def to_dict(self) -> dict[str, list[float]]:
        """Return JSON values."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @property
    def divisor(self) -> Numbers:
        """The deviation; 1 if all numbers of a column were equal."""
        return np.where(self.deviation > 0, self.deviation, 1.0)

    def kept(self, now: Scale) -> Scale:
        """Return this scale for a training on other numbers, whose own scale is ``now``.

        If all numbers of a column were equal, its deviation is that of the new ones from them.
        """
        apart = np.hypot(now.deviation, now.mean - self.mean)
        return Scale(self.mean, np.where(self.deviation > 0, self.deviation, apart))


@dataclass(frozen=True)
class Moments:
    """Mean and variance of columns of numbers (algorithm of Welford and Chan).

    Attributes:
        count: the number of present numbers, float64 [columns].
        mean: their mean, float64 [columns].
        spread: the sum of their squared differences from the mean, float64 [columns].
        rows: the number of rows, with and without numbers.
    """

    count: Numbers
    mean: Numbers
    spread: Numbers
    rows: int

    @classmethod
    def of(cls, numbers: npt.NDArray[Any]) -> Moments:
        """Return the moments of rows (float [rows, columns]); NaN represents a missing number."""
        present = ~np.isnan(numbers)
        values = np.where(present, numbers, 0).astype(np.float64)
        count = present.sum(axis=0)
        mean = values.sum(axis=0) / np.maximum(count, 1)
        spread = np.where(present, np.square(values - mean), 0).sum(axis=0)
        return cls(count, mean, spread, len(numbers))

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        count, apart = self.count + other.count, other.mean - self.mean
        total = np.maximum(count, 1)
        mean = self.mean + apart * other.count / total
        between = np.square(apart) * self.count * other.count / total
        return Moments(count, mean, self.spread + other.spread + between, self.rows + other.rows)

    @property
    def with_gaps(self) -> list[int]:
        """The columns with missing numbers."""
        return [column for column, count in enumerate(self.count) if count < self.rows]

    @property
    def scale(self) -> Scale:
        """Mean and standard deviation."""
        return Scale(self.mean, np.sqrt(self.spread / np.maximum(self.count, 1)))


NOTHING = Moments.of(np.empty((0, 0)))


# --- accumulators ---------------------------------------------------------------------------------

Array = npt.NDArray[Any]

#: Name of the labels that the model does not know, in metrics and confusion matrices.
UNKNOWN_LABELS = "unknown_labels"

#: Consoles chart the scores of each label, and metadata stores limit the size of an artifact.
MOST_LABELS = 100
_SMALLEST = 1e-7  # probability, as in Keras

# The attributes of an accumulator that count nothing.
_KNOWN = ("classes", "known_labels")


# Evenly spaced in log-odds: a rare label's scores are all close to 0, where equal steps would not
# separate them. A barely trained model needs this many. Close to 1, some are the same float32.
_LOG_ODDS = np.linspace(-14, 14, 1000)

_EDGES = np.unique((1 / (1 + np.exp(-_LOG_ODDS))).astype(np.float32))

#: The thresholds; Keras adds one below 0 and one above 1.
THRESHOLDS: tuple[float, ...] = tuple(_EDGES.tolist())

Boxes = npt.NDArray[np.float32]

Tags = npt.NDArray[np.int64]

#: A class that the model does not know; a pixel that has it is a wrong answer.
UNKNOWN_CLASS = -1

# Numbers of classes in a mask.
_LEVELS = 256

#: Maximum number of boxes that count in an image, as in COCO.
MOST_BOXES = 100

#: The class of a box around a crowd is this number minus that of its class.
CROWD = -2

#: Lowest intersection over union (IoU) of a match.
OVERLAP = 0.5


class TfmaMetric(NamedTuple):
    """The same measure in TensorFlow Model Analysis; ``name`` is its name in the results."""

    name: str
    class_name: str
    module: str = "recordgen.training.tfma_metrics"


def check_answers(scores: Array) -> None:
    """Check that a model's scores are numbers: NaN is no answer. Raises: DataError."""
    if np.isnan(scores).any():
        raise DataError(
            "the model answers with NaN, which is no score: its training diverged (a smaller "
            "learning_rate helps), or it says so of an example that it cannot read"
        )


class EvalAccumulator(ABC):
    """Counts a model's answers. Accumulators of separate batches can be merged.

    Labels have the model's numbers. A label that the model does not know counts as a wrong answer.

    Class attributes:
        needs: what a split must have for a score, for error messages.
        tfma: the same measure in TFX pipelines.
        has_confusion: whether :meth:`confusion` returns a matrix.

    Attributes:
        classes: the number of labels that the model knows; 0 if the target is a number.
        unknown: counts of the labels that the model does not know.
        known_labels: the labels that it knows, as a text for errors.
    """

    needs: ClassVar[str]
    tfma: ClassVar[TfmaMetric]
    has_confusion: ClassVar[bool] = False

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.examples = 0
        self.unknown: Counter[str] = Counter()
        self.known_labels = ""
        self._loss_sum = 0.0
        self._losses = 0

    @classmethod
    def of_scores(cls, scores: Array) -> EvalAccumulator:
        """Return an empty accumulator; ``scores`` are a model's scores of one example."""
        return cls(scores.shape[-1])

    @abstractmethod
    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch: ``label`` of the signature ``truth``, ``scores`` of ``evaluate``.

        ``y_pred`` is float32 [batch, classes] for labels. Only the AUC uses ``weight``.
        """

    def add_answers(self, scores: Array, truth: Mapping[str, Array]) -> None:
        """Count a batch of a model's answers, by :meth:`add`; skip examples without a label."""
        is_labelled = truth[config.WEIGHT] > 0
        self.add(truth[config.LABEL][is_labelled], scores[is_labelled])
        if config.UNKNOWN in truth:  # missing if the target is a number
            self.add_unknown(truth[config.UNKNOWN].ravel())

    def add_unknown(self, labels: Iterable[bytes]) -> None:
        """Count ``unknown`` of the signature ``truth``, flattened, for examples already added."""
        self.unknown.update(label.decode(errors="replace") for label in labels if label)

    def merge(self, other: EvalAccumulator) -> None:
        """Add the counts of another accumulator: all attributes but what both know."""
        for name, count in vars(other).items():
            if name not in _KNOWN:
                setattr(self, name, getattr(self, name) + count)

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

    def score(self) -> float:
        """Return the mean over labels, 0..1; one unknown to the model has 0; NaN without labels."""
        found = self.by_label()
        labels = len(found) + len(self.unknown)
        return sum(found.values()) / labels if labels else math.nan

    def loss(self) -> float:
        """Return the mean cross-entropy; NaN without examples."""
        return self._loss_sum / self._losses if self._losses else math.nan

    def by_label(self) -> Mapping[int, float]:
        """Return the scores by the label's number; labels without a score are missing."""
        return {}

    def confusion(self, labels: Sequence[str]) -> tuple[Sequence[str], Array]:
        """Return names, and the examples by true label and answer (int [names, names])."""
        raise NotImplementedError

    def _add_losses(self, probabilities: Array) -> None:
        """Add the cross-entropies of true labels with these probabilities."""
        likely = np.clip(probabilities.astype(np.float64), _SMALLEST, 1)
        self._loss_sum -= float(np.log(likely).sum())
        self._losses += probabilities.size


class OneLabelAccumulator(EvalAccumulator):
    """Accuracy of examples with one label each."""

    needs = "labelled example"
    tfma = TfmaMetric(config.ACCURACY, "LabelAccuracy")
    has_confusion = True

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.pairs: Counter[tuple[int, int]] = Counter()  # (label, -1 if unknown; answer)

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch; ``y_true`` is int64 [batch], -1 if the model does not know the label."""
        y_true = y_true.reshape(len(y_pred))  # TFMA adds a dimension
        self.pairs.update(zip(y_true.tolist(), y_pred.argmax(axis=1).tolist(), strict=True))
        self.examples += len(y_true)
        # Index -1, an unknown label, gets the last column: probability 0.
        self._add_losses(np.pad(y_pred, ((0, 0), (0, 1)))[np.arange(len(y_true)), y_true])

    def known(self) -> int:
        return sum(count for (true, _), count in self.pairs.items() if true >= 0)

    def score(self) -> float:
        right = sum(count for (true, answer), count in self.pairs.items() if true == answer)
        return right / self.examples if self.examples else math.nan

    def confusion(self, labels: Sequence[str]) -> tuple[Sequence[str], Array]:
        names = [*labels, *([UNKNOWN_LABELS] if self.unknown else [])]
        counts = np.zeros((len(names), len(names)), int)
        for pair, count in self.pairs.items():  # label -1 is the last row
            counts[pair] = count
        return names, counts


class TableAccumulator(OneLabelAccumulator):
    """Accuracy and mean cross-entropy of classes; R² and mean squared error of numbers.

    R² is the share of the target's variance that the predictions explain: 1 if all are right, and 0
    if they are no better than the mean of all targets (a negative R² becomes 0).
    """

    needs = "rows of different targets"
    tfma = TfmaMetric(config.TABLE_SCORE, "TableScore")
    has_confusion = False

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.targets = Moments.of(np.empty((0, 1)))

    @classmethod
    def of_scores(cls, scores: Array) -> EvalAccumulator:
        """Return an accumulator for classes, or for numbers if there is a single score."""
        return cls(scores.size if scores.size > 1 else 0)

    @property
    def measure(self) -> str:
        return config.ACCURACY if self.classes else config.R2

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch.

        ``y_true`` is the number of each class, int64 [batch], -1 if the model does not know it, or
        the target, float32 [batch]; ``y_pred`` is float32 [batch, classes or 1].
        """
        if self.classes:
            super().add(y_true.astype(np.int64), y_pred)
        elif len(y_pred):
            targets = y_true.astype(np.float64).reshape(-1, 1)
            self.targets += Moments.of(targets)
            self._loss_sum += float(np.square(targets - y_pred).sum())
            self._losses += len(targets)
            self.examples += len(targets)

    def score(self) -> float:
        """Return the accuracy; or R², NaN if all targets are equal."""
        if self.classes:
            return super().score()
        spread = float(self.targets.spread[0])
        return max(0.0, 1 - self._loss_sum / spread) if spread else math.nan


class ManyLabelsAccumulator(EvalAccumulator):
    """Mean area under the ROC curve (AUC) of examples with any number of labels.

    Scores are counted between thresholds, float64 [classes, thresholds + 1], so memory does not
    grow with the examples: ``positive`` of those with the label, ``negative`` of the others. The
    areas are those of ``keras.metrics.AUC(multi_label=True, thresholds=THRESHOLDS)``.
    """

    needs = "label that only some of its examples have"
    tfma = TfmaMetric(config.AUC, "LabelAUC")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.positive = np.zeros((classes, len(_EDGES) + 1))
        self.negative = np.zeros_like(self.positive)

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch; ``y_true`` is float32 [batch, classes], 0 or 1."""
        weights = np.broadcast_to(np.float32(weight), len(y_true))[:, None]
        labels = np.broadcast_to(np.arange(y_pred.shape[1]), y_pred.shape)
        places = labels, np.searchsorted(_EDGES, y_pred)
        np.add.at(self.positive, places, y_true * weights)
        np.add.at(self.negative, places, (1 - y_true) * weights)
        self.examples += len(y_true)
        self._add_losses(np.where(y_true > 0, y_pred, 1 - y_pred))

    def known(self) -> int:
        return int((self.positive > 0).any(axis=1).sum())

    def score(self) -> float:
        """Return the mean AUC of the labels that have one; an unknown one has 0.5, as guesses."""
        guessed = sum(0 < count < self.examples for count in self.unknown.values())
        areas = [*self.by_label().values(), *[0.5] * guessed]
        return float(np.mean(areas)) if areas else math.nan

    def by_label(self) -> Mapping[int, float]:
        """Return the AUC of each label that only some examples have: the share of won pairs."""
        from_here_up = self.positive[:, ::-1].cumsum(axis=1)[:, ::-1]
        # Two scores between the same thresholds count half.
        won = (self.negative * (from_here_up - self.positive / 2)).sum(axis=1)
        pairs = self.positive.sum(axis=1) * self.negative.sum(axis=1)
        return {int(n): float(won[n] / pairs[n]) for n in np.flatnonzero(pairs)}


class MaskAccumulator(EvalAccumulator):
    """Mean IoU of the classes that have pixels, as VOC and DeepLab compute it over a whole split.

    The IoU of a class is the number of pixels that have it in both the mask and the answer, divided
    by the number of pixels that have it in either. Pixels without a class do not count. The loss is
    the share of wrong pixels.

    Attributes:
        pairs: pixels by true class and answer, int64 [257, 256]; the first row are classes that the
            model does not know.
    """

    needs = "mask"
    tfma = TfmaMetric(config.MEAN_IOU, "PixelIoU")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.pairs = np.zeros((_LEVELS + 1, _LEVELS), np.int64)

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch of masks and answers, int32 [batch, height, width].

        ``y_true`` has 255 for no class, and -1 for a class that the model does not know.
        """
        counts = y_true != IGNORED
        true, answers = y_true[counts].astype(np.int64), y_pred[counts].astype(np.int64)
        codes = (true - UNKNOWN_CLASS) * _LEVELS + answers
        self.pairs += np.bincount(codes, minlength=self.pairs.size).reshape(self.pairs.shape)
        self.examples += len(y_true)
        self._loss_sum += float((true != answers).sum())
        self._losses += len(true)

    def known(self) -> int:
        return int(self.pairs[1:].sum())

    def by_label(self) -> Mapping[int, float]:
        """Return the IoU, 0..1, of each class that has true pixels, by number."""
        known = self.pairs[1:]
        right, true = known.diagonal(), known.sum(axis=1)
        either = true + self.pairs.sum(axis=0) - right
        return {int(n): float(right[n] / either[n]) for n in np.flatnonzero(true)}


class BoxAccumulator(EvalAccumulator):
    """Mean average precision (AP) of boxes, as COCO computes it at an overlap of 0.5.

    In each image, a model's boxes are matched in descending order of their scores. A box matches
    the true box of its class that it overlaps most (the last of several), among the true boxes not
    yet matched, if their intersection is at least half of their union; else it is false. Over all
    images, again in descending order of scores, precision is the share of boxes that are not false,
    and recall the share of true boxes that are matched. AP is the mean, over the recalls 0, 0.01,
    …, 1, of the best precision at this recall or a higher one; 0 beyond the highest recall.

    A true box around a crowd of objects is not to be found: boxes of its class that match no other
    box, and at least half of which it covers, do not count.

    Attributes:
        true: the number of true boxes, by class.
        overlap: the sum over true boxes of the IoU with their match, 0 without a match.
        found: the model's boxes, float32 [n, 3]: class, score, and 1 if it is right, else 0.
    """

    needs = "object"
    tfma = TfmaMetric(config.MEAN_PRECISION, "BoxPrecision")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.true: Counter[int] = Counter()
        self.overlap = 0.0
        self.found: list[Boxes] = []

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch of images; -1 is padding.

        ``y_true`` is float32 [batch, n, 5]: left, top, right, bottom, number of the class
        (:data:`CROWD` minus the number for a crowd); ``y_pred`` has the score, 0..1, after them.
        """
        for true, found in zip(y_true, y_pred, strict=True):
            is_crowd = true[:, 4] <= CROWD
            crowds = np.c_[true[is_crowd, :4], CROWD - true[is_crowd, 4]]
            self._add_image(true[true[:, 4] >= 0], found[found[:, 5] > 0], crowds)
        self.examples += len(y_true)

    def _add_image(self, true: Boxes, found: Boxes, crowds: Boxes) -> None:
        found = found[np.argsort(-found[:, 5], kind="stable")]
        overlaps = overlaps_of(found[:, :4], true[:, :4])
        overlaps[found[:, 4, None] != true[None, :, 4]] = 0
        are_right = np.zeros(len(found), np.bool_)
        # Skip most boxes: they do not overlap a true box enough.
        for number in np.flatnonzero((overlaps >= OVERLAP).any(axis=1)):
            best = len(true) - 1 - overlaps[number, ::-1].argmax()  # of equal ones, the last
            if overlaps[number, best] >= OVERLAP:
                are_right[number] = True
                self.overlap += float(overlaps[number, best])
                overlaps[:, best] = 0  # matched
        if len(crowds):
            counts = are_right | ~_are_in(found, crowds)
            found, are_right = found[counts], are_right[counts]
        self.true.update(true[:, 4].astype(int).tolist())
        self.found.append(np.c_[found[:, 4:6], are_right])

    def compact(self) -> None:
        self.found = [np.concatenate(self.found)] if self.found else []

    def known(self) -> int:
        return self.true.total()

    def loss(self) -> float:
        """Return the mean loss of the true boxes.

        The loss of a box is 1 - IoU with the predicted box that matches it; 1 without a match.
        """
        true = self.true.total() + self.unknown.total()
        return 1 - self.overlap / true if true else math.nan

    def by_label(self) -> Mapping[int, float]:
        """Return the average precision, 0..1, of each class that has true boxes, by number."""
        found = np.concatenate(self.found) if self.found else np.empty((0, 3))
        labels, _, are_right = found[np.argsort(-found[:, 1], kind="stable")].T
        return {
            number: _average(are_right[labels == number], true)
            for number, true in sorted(self.true.items())
        }


def overlaps_of(first: Boxes, second: Boxes) -> Boxes:
    """Return the IoU of all pairs of boxes: float32 [n, 4], [m, 4] → [n, m]; 0 without area."""
    shared = shared_areas(first[:, None], second)
    union = areas_of(first)[:, None] + areas_of(second) - shared
    overlaps: Boxes = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return overlaps


def _are_in(found: Boxes, crowds: Boxes) -> npt.NDArray[np.bool_]:
    """Return whether crowds of its class cover at least half of a box: [n, 6], [m, 5] → [n]."""
    shared = shared_areas(found[:, None, :4], crowds[:, :4])
    are_covered = shared >= OVERLAP * areas_of(found[:, :4])[:, None]
    is_same = found[:, 4, None] == crowds[None, :, 4]
    return (are_covered & is_same & (shared > 0)).any(axis=1)


def _average(are_right: Boxes, true: int) -> float:
    """Return the AP of boxes that are right (1) or not (0), best score first."""
    right = are_right.cumsum()
    precision = right / np.arange(1, len(right) + 1)
    # The best precision at each recall or a higher one.
    best = np.maximum.accumulate(precision[::-1])[::-1]
    reached = np.searchsorted(right * 100, np.arange(101) * true)  # whole numbers: no rounding
    return float(np.append(best, 0)[reached].mean())


class EntityAccumulator(EvalAccumulator):
    """F1 of entities, counted as in CoNLL's shared tasks.

    A found entity is right if a true entity has the same tokens and label. Precision is the share
    of found entities that are right, recall the share of true entities that were found; F1 is their
    harmonic mean: 2 · right / (true + found). The loss is the cross-entropy of the tokens' tags.

    Attributes:
        true: true entities by label, int64 [classes + 1]; the last label represents all labels that
            the model does not know.
        found: the model's entities, of the same shape.
        right: the found entities that are right.
    """

    needs = "entity"
    tfma = TfmaMetric(config.F1, "EntityF1")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.true, self.found, self.right = np.zeros((3, classes + 1), np.int64)

    @classmethod
    def of_scores(cls, scores: Array) -> EvalAccumulator:
        """Return an empty accumulator; each label has two tags, B- and I-."""
        return cls(scores.shape[-1] // 2)

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch of texts.

        ``y_true`` is as in :func:`entities`; ``y_pred`` is float32 [batch, n, tags].
        """
        y_pred = np.pad(y_pred, ((0, 0), (0, 0), (0, 2)))
        is_token = y_true >= 0
        true, found = (
            set(map(tuple, entities(tags).tolist()))
            for tags in (y_true, np.where(is_token, y_pred.argmax(axis=-1), y_true))
        )
        for counts, each in ((self.true, true), (self.found, found), (self.right, true & found)):
            np.add.at(counts, [label for *_, label in each], 1)
        self.examples += len(y_true)
        self._add_losses(np.take_along_axis(y_pred[is_token], y_true[is_token, None], axis=1))

    def known(self) -> int:
        return int(self.true[:-1].sum())

    def score(self) -> float:
        """Return F1 over all entities (micro-averaged); NaN if there are none."""
        if not self.true.any():
            return math.nan
        return float(2 * self.right.sum() / (self.true.sum() + self.found.sum()))

    def by_label(self) -> Mapping[int, float]:
        return {
            int(number): float(2 * self.right[number] / (self.true[number] + self.found[number]))
            for number in np.flatnonzero(self.true[:-1])
        }


def entities(tags: Tags) -> Tags:
    """Return the entities of tags: text, first token, last token, label; int64 [entities, 4].

    An entity begins with a ``B-`` tag, or with an ``I-`` tag after a token without an entity or
    with another label.

    Args:
        tags: numbers of tags as in ``tags.txt``, int64 [batch, n]; -1 for padding.
    """
    label = np.where(tags > 0, (tags - 1) // 2, -1)
    edge = np.full((len(tags), 1), -1)
    is_inside = (label >= 0) & (tags % 2 == 0) & (label == np.hstack((edge, label[:, :-1])))
    is_last = (label >= 0) & ~np.hstack((is_inside[:, 1:], edge > 0))
    text, first = np.nonzero((label >= 0) & ~is_inside)
    _, last = np.nonzero(is_last)
    return np.stack((text, first, last, label[text, first]), axis=1)
