"""Measures of parts of an example: its pixels, boxes or tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordgen.core.records.class_masks import IGNORED
from recordgen.training.config import F1, MEAN_IOU, MEAN_PRECISION
from recordgen.training.measures import Array, EvalAccumulator, TfmaMetric

Boxes = npt.NDArray[np.float32]
Tags = npt.NDArray[np.int64]

#: A class that the model does not know; a pixel that has it is a wrong answer.
UNKNOWN_CLASS = -1

# Numbers of classes in a mask.
_LEVELS = 256


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
    tfma = TfmaMetric(MEAN_IOU, "PixelIoU")
    sums = ("pairs",)

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


#: Maximum number of boxes that count in an image, as in COCO.
MOST_BOXES = 100

#: The class of a box around a crowd is this number minus that of its class.
CROWD = -2

#: Lowest intersection over union (IoU) of a match.
OVERLAP = 0.5


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
    tfma = TfmaMetric(MEAN_PRECISION, "BoxPrecision")
    sums = ("true", "overlap", "found")

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
    shared = _shared_areas(first, second)
    union = _areas(first)[:, None] + _areas(second) - shared
    overlaps: Boxes = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return overlaps


def _are_in(found: Boxes, crowds: Boxes) -> npt.NDArray[np.bool_]:
    """Return whether crowds of its class cover at least half of a box: [n, 6], [m, 5] → [n]."""
    shared = _shared_areas(found[:, :4], crowds[:, :4])
    are_covered = shared >= OVERLAP * _areas(found[:, :4])[:, None]
    is_same = found[:, 4, None] == crowds[None, :, 4]
    return (are_covered & is_same & (shared > 0)).any(axis=1)


def _shared_areas(first: Boxes, second: Boxes) -> Boxes:
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    shared: Boxes = np.maximum(high - low, 0).prod(axis=2)
    return shared


def _areas(boxes: Boxes) -> Boxes:
    areas: Boxes = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1)
    return areas


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
    tfma = TfmaMetric(F1, "EntityF1")
    sums = ("true", "found", "right")

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
        true = entities(y_true)
        found = entities(np.where(is_token, y_pred.argmax(axis=-1), y_true))
        are_right = np.isin(_keys(found, y_true.shape), _keys(true, y_true.shape))
        np.add.at(self.true, true[:, -1], 1)
        np.add.at(self.found, found[:, -1], 1)
        np.add.at(self.right, found[are_right, -1], 1)
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


def _keys(found: Tags, shape: tuple[int, ...]) -> Tags:
    """Return a unique number for each entity (int64 [entities, 4])."""
    text, first, last, label = found.T
    texts, tokens = shape
    keys: Tags = ((label * texts + text) * tokens + first) * tokens + last
    return keys
