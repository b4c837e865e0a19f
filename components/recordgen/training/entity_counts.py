"""Precision, recall and F1 of entities, as CoNLL's shared tasks count them.

A found entity is right if a true one has the same tokens and label. Precision is the share of found
entities that are right, recall the share of true ones that were found; F1 is their harmonic mean:
2 · right / (true + found).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Tags = npt.NDArray[np.int64]


class EntityCounts:
    """Numbers of entities by label (int64 [labels]): ``true``, ``found``, and ``right`` ones."""

    def __init__(self, labels: int) -> None:
        self.true = np.zeros(labels, np.int64)
        self.found = np.zeros_like(self.true)
        self.right = np.zeros_like(self.true)

    def add(self, y_true: Tags, y_pred: Tags) -> None:
        """Count a batch of texts.

        Args:
            y_true: numbers of tags as in ``tags.txt``, int64 [batch, n]; -1: no token.
            y_pred: a model's tags, likewise; ignored if there is no token.
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
        """Add what another has counted."""
        self.true += other.true
        self.found += other.found
        self.right += other.right

    def f1(self) -> float:
        """Return F1 over all entities, 0..1; NaN if there are none."""
        if not self.true.any():
            return float("nan")
        return float(2 * self.right.sum() / (self.true.sum() + self.found.sum()))

    def f1_by_label(self) -> Mapping[int, float]:
        """Return F1 of each label that some entity has, by its number."""
        return {
            int(number): float(2 * self.right[number] / (self.true[number] + self.found[number]))
            for number in np.flatnonzero(self.true)
        }


def entities(tags: Tags) -> Tags:
    """Return the entities of tags: text, first token, last token, label; int64 [entities, 4].

    An entity begins with its ``B-`` tag; or with ``I-``, if the tag before belongs to no entity or
    to one with another label.

    Args:
        tags: numbers of tags as in ``tags.txt``, int64 [batch, n]; -1: no token.
    """
    label = np.where(tags > 0, (tags - 1) // 2, -1)
    aside = np.full((len(tags), 1), -1)
    goes_on = (label >= 0) & (tags % 2 == 0) & (label == np.hstack((aside, label[:, :-1])))
    is_last = (label >= 0) & ~np.hstack((goes_on[:, 1:], aside > 0))
    text, first = np.nonzero((label >= 0) & ~goes_on)
    _, last = np.nonzero(is_last)
    return np.stack((text, first, last, label[text, first]), axis=1)


def _keys(found: Tags, shape: tuple[int, ...]) -> Tags:
    """Return a unique number for each entity (int64 [entities, 4]) of texts."""
    text, first, last, label = found.T
    texts, tokens = shape
    keys: Tags = ((label * texts + text) * tokens + first) * tokens + last
    return keys
