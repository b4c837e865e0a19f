"""Labels as they are stored → the numbers that a model learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from recordgen.reading.classes import ClassPlan

# What a text that is not to be read is looked up as, and one that nobody has heard of.
_UNWANTED = -1
_UNKNOWN = -2


@dataclass(frozen=True)
class ClassNumbers:
    """How stored labels are numbered.

    Attributes:
        classes: which classes, and their numbers.
        text: the feature that holds the labels' texts.
        label: the feature that holds their numbers.
        table: text → number, where labels are known by their text.
    """

    classes: ClassPlan
    text: str
    label: str
    table: tf.lookup.StaticHashTable | None

    @classmethod
    def of(cls, classes: ClassPlan, *, text: str, label: str) -> ClassNumbers:
        """Return how the classes of a plan are numbered."""
        return cls(classes, text, label, _table(classes))

    @property
    def chosen_by(self) -> str:
        """The feature that says whether a label is wanted."""
        return self.label if self.table is None else self.text

    @property
    def names(self) -> tuple[str, ...]:
        """The features that are needed for the numbers."""
        if self.table is None:
            return (self.label,)
        return (self.text,) if self.classes.by_text else (self.text, self.label)

    def are_wanted(self, stored: tf.Tensor) -> tf.Tensor:
        """Say (bool [n]) which values of the feature ``chosen_by`` are of wanted classes."""
        if self.table is not None:
            # Unknown ones are refused, not left out.
            return self.table.lookup(stored) != _UNWANTED
        return self._numbered(stored) >= 0

    def numbers(self, parsed: Mapping[str, Any]) -> tf.Tensor:
        """Return the labels' numbers (int64 [n]), negative for those that are left out.

        Args:
            parsed: the features ``names``, sparse or ragged; their ``values`` are [n].

        Raises:
            tf.errors.InvalidArgumentError: a label is outside the vocabulary, or has no number.
        """
        if self.table is None:
            return self._numbered(parsed[self.label].values)
        texts = parsed[self.text].values
        numbers = self.table.lookup(texts)
        if self.classes.by_text:
            unknown = tf.boolean_mask(texts, numbers == _UNKNOWN)
            is_right = tf.size(unknown) == 0
            message = [
                "labels outside the vocabulary; add them, or leave them out with labels=[…]:"
            ]
            message.append(unknown)
        else:
            given = parsed[self.label].values
            is_right = tf.size(given) == tf.size(numbers)
            message = [
                f"a record has not one {self.label} for each {self.text}; give vocabulary=[…] to "
                f"number the texts"
            ]
        with tf.control_dependencies([tf.debugging.Assert(is_right, message)]):
            if not self.classes.by_text:
                numbers = tf.where(numbers == _UNWANTED, numbers, given)
            return tf.identity(numbers)

    def _numbered(self, stored: tf.Tensor) -> tf.Tensor:
        """Return the numbers of stored labels, -1 for those that are left out."""
        if self.classes.numbers is None:
            return stored
        return tf.gather(tf.constant(self.classes.numbers, tf.int64), stored)


def _table(classes: ClassPlan) -> tf.lookup.StaticHashTable | None:
    """Return a table that looks texts up, if labels have to be told by their text."""
    wanted = classes.wanted
    if classes.by_text:
        numbers = {
            name: number if wanted is None or name in set(wanted) else _UNWANTED
            for number, name in enumerate(classes.names or ())
        }
        default = _UNKNOWN if wanted is None else _UNWANTED
    elif wanted is not None and classes.numbers is None:
        numbers, default = dict.fromkeys(wanted, 0), _UNWANTED
    else:
        return None
    pairs = tf.lookup.KeyValueTensorInitializer(
        tf.constant(list(numbers)), tf.constant(list(numbers.values()), tf.int64)
    )
    return tf.lookup.StaticHashTable(pairs, default)
