"""Average precision (AP) of boxes, as COCO computes it at an overlap of 0.5.

In each image, a model's boxes are matched in descending order of their scores. A box matches the
true box of its class that it overlaps most (the last of several), among the true boxes not yet
matched, if their intersection is at least half of their union; else it is false. Over all images,
again in descending order of scores, precision is the share of boxes that are not false, and recall
the share of true boxes that are matched. AP is the mean, over the recalls 0, 0.01, …, 1, of the
best precision at this recall or a higher one; 0 beyond the highest recall.

A true box around a crowd of objects is not to be found: boxes of its class that match no other box,
and at least half of which it covers, do not count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.training.config import MEAN_PRECISION
from recordgen.training.measures import Array, EvalAccumulator, TfmaMetric

#: Maximum number of boxes that count in an image, as in COCO.
MOST_BOXES = 100

#: The class of a box around a crowd is this number minus that of its class.
CROWD = -2

#: Lowest intersection over union (IoU) of a match.
OVERLAP = 0.5

Boxes = npt.NDArray[np.float32]


class _Found(NamedTuple):
    """A model's boxes, as columns."""

    labels: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    are_right: npt.NDArray[np.bool_]


class BoxAccumulator(EvalAccumulator):
    """Mean average precision of boxes; takes 9 bytes for each found box.

    Attributes:
        true: the number of true boxes, by class.
        overlap: the sum over true boxes of the IoU with their match, 0 without a match.
        found: the model's boxes.
    """

    needs = "object"
    tfma = TfmaMetric(MEAN_PRECISION, "BoxPrecision")
    sums = ("true", "overlap", "found")

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.true: Counter[int] = Counter()
        self.overlap = 0.0
        self.found: list[_Found] = []

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
        overlaps = intersections_over_unions(found[:, :4], true[:, :4])
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
        self.found.append(_Found(found[:, 4].astype(np.int32), found[:, 5], are_right))

    def compact(self) -> None:
        if self.found:
            self.found = [_Found(*map(np.concatenate, zip(*self.found, strict=True)))]

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
        if not self.found:
            return {}
        self.compact()
        [(labels, scores, are_right)] = self.found
        order = np.argsort(-scores, kind="stable")
        labels, are_right = labels[order], are_right[order]
        return {
            number: _average(are_right[labels == number], true)
            for number, true in sorted(self.true.items())
        }


def intersections_over_unions(first: Boxes, second: Boxes) -> npt.NDArray[np.float32]:
    """Return the IoU of all pairs of boxes: float32 [n, 4], [m, 4] → [n, m]; 0 without area."""
    shared = _shared_areas(first, second)
    union = _areas(first)[:, None] + _areas(second)[None] - shared
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


def _average(are_right: npt.NDArray[np.bool_], true: int) -> float:
    """Return the AP of boxes that are right or not, best score first."""
    right = are_right.cumsum()
    precision = right / np.arange(1, len(right) + 1)
    # The best precision at each recall or a higher one.
    best = np.maximum.accumulate(precision[::-1])[::-1]
    reached = np.searchsorted(right * 100, np.arange(101) * true)  # whole numbers: no rounding
    return float(np.append(best, 0)[reached].mean())


def _areas(boxes: Boxes) -> npt.NDArray[np.float32]:
    areas: npt.NDArray[np.float32] = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1)
    return areas
