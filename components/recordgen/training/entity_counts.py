"""Precision, recall and F1 of entities, counted as in CoNLL's shared tasks.

A found entity is right if a true entity has the same tokens and label. Precision is the share of
found entities that are right, recall the share of true entities that were found; F1 is their
harmonic mean: 2 · right / (true + found).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordgen.training.config import F1
from recordgen.training.measures import Array, EvalAccumulator, TfmaMetric

Tags = npt.NDArray[np.int64]


class EntityAccumulator(EvalAccumulator):
    """F1 of entities; the loss is the cross-entropy of the tokens' tags.

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
