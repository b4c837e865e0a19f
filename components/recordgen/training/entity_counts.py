"""Precision, recall and F1 of entities, counted as in CoNLL's shared tasks.

A found entity is right if a true entity has the same tokens and label. Precision is the share of
found entities that are right, recall the share of true entities that were found; F1 is their
harmonic mean: 2 · right / (true + found).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Tags = npt.NDArray[np.int64]


class EntityCounts:
    """Numbers of ``true``, ``found`` and ``right`` entities by label (int64 [labels])."""

    def __init__(self, labels: int) -> None:
        self.true = np.zeros(labels, np.int64)
        self.found = np.zeros_like(self.true)
        self.right = np.zeros_like(self.true)

    def add(self, y_true: Tags, y_pred: Tags) -> None:
        """Count a batch of texts.

        Args:
            y_true: numbers of tags as in ``tags.txt``, int64 [batch, n]; -1 for padding.
            y_pred: the same of a model's tags; ignored for padding.
        """
        true = entities(y_true)
        found = entities(np.where(y_true < 0, y_true, y_pred))
        are_right = np.isin(_keys(found, y_true.shape), _keys(true, y_true.shape))
        for counts, labels in (
            (self.true, true[:, -1]),
            (self.found, found[:, -1]),
            (self.right, found[are_right, -1]),
        ):
            np.add.at(counts, labels, 1)

    def merge(self, other: EntityCounts) -> None:
        """Add the counts of another instance."""
        self.true += other.true
        self.found += other.found
        self.right += other.right

    def f1(self) -> float:
        """Return F1 over all entities, 0..1; NaN if there are none."""
        if not self.true.any():
            return float("nan")
        return float(2 * self.right.sum() / (self.true.sum() + self.found.sum()))

    def f1_by_label(self) -> Mapping[int, float]:
        """Return the F1 of each label with true entities, by its number."""
        return {
            int(number): float(2 * self.right[number] / (self.true[number] + self.found[number]))
            for number in np.flatnonzero(self.true)
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
