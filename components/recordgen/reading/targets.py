"""Records → labels and weights: which record is wanted, and what the model is to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from recordgen import features
from recordgen.errors import UsageError
from recordgen.reading.class_numbers import ClassNumbers
from recordgen.reading.classes import ClassPlan, class_weights
from recordgen.reading.options import LabelOptions


@dataclass(frozen=True)
class Targets:
    """How labels are read; see :class:`recordgen.reading.options.LabelOptions`.

    Attributes:
        numbers: how classes are numbered.
        weights: of each class, or none.
        text_dtype: of the feature that holds the labels' texts; int64: these are whole numbers.
    """

    numbers: ClassNumbers
    weights: tuple[float, ...] = ()
    text_dtype: tf.DType = tf.string

    @classmethod
    def of(
        cls,
        classes: ClassPlan,
        options: LabelOptions,
        *,
        text: str = features.IMAGE_CLASS_TEXT,
        label: str = features.IMAGE_CLASS_LABEL,
        text_dtype: tf.DType = tf.string,
    ) -> Targets:
        """Return what the options ask for.

        Args:
            classes: which are read.
            options: label_mode and weights.
            text: the feature that holds the labels' texts.
            label: the feature that holds their numbers.
            text_dtype: see :class:`Targets`.

        Raises:
            UsageError: an option does not go with the data.
        """
        weights: tuple[float, ...] = ()
        if options.weights is not None:
            if classes.mode == "multi_hot":
                raise UsageError("weights need one label per example: not label_mode='multi_hot'")
            weights = class_weights(options.weights, classes)
        return cls(ClassNumbers.of(classes, text=text, label=label), weights, text_dtype)

    @property
    def mode(self) -> str | None:
        """``int``, ``binary``, ``categorical``, ``multi_hot`` or None."""
        return self.numbers.classes.mode

    @property
    def _size(self) -> int:
        """The number of classes."""
        return len(self.numbers.classes.names or ())

    @property
    def spec(self) -> dict[str, tf.io.VarLenFeature]:
        """The features that are needed, as lists: an example may have no label, or several."""
        if self.mode is not None:
            names = self.numbers.names
        else:
            names = () if self.numbers.classes.wanted is None else (self.numbers.chosen_by,)
        dtypes = {self.numbers.text: self.text_dtype, self.numbers.label: tf.int64}
        return {name: tf.io.VarLenFeature(dtypes[name]) for name in names}

    def is_wanted(self, record: tf.Tensor) -> tf.Tensor:
        """Say (bool []) whether one serialised ``record`` (string []) has a wanted label."""
        parsed = self._with_texts(tf.io.parse_single_example(record, self.spec))
        return tf.reduce_any(self.numbers.are_wanted(parsed[self.numbers.chosen_by].values))

    def labels(self, parsed: Mapping[str, tf.SparseTensor]) -> tf.Tensor:
        """Return the labels of a batch of parsed records, each of which has one that is wanted.

        Returns:
            int64 [batch], float32 [batch, 1] or float32 [batch, classes]; of several labels, the
            first wanted one, or all wanted ones.

        Raises:
            tf.errors.InvalidArgumentError: a label is outside the vocabulary, or has no number.
        """
        parsed = self._with_texts(parsed)
        stored = parsed[self.numbers.chosen_by]
        numbers = tf.SparseTensor(stored.indices, self.numbers.numbers(parsed), stored.dense_shape)
        if self.mode == "multi_hot":
            return self._multi_hot(numbers)
        return encoded_labels(_first_wanted(numbers), self.mode, self._size)

    def _with_texts(self, parsed: Mapping[str, tf.SparseTensor]) -> Mapping[str, tf.SparseTensor]:
        """Return parsed features with labels as texts."""
        if self.text_dtype == tf.string:
            return parsed
        return {
            name: item.with_values(tf.strings.as_string(item.values))
            for name, item in parsed.items()
        }

    def weights_of(self, labels: tf.Tensor) -> tf.Tensor:
        """Return the weights (float32 [batch]) of a batch of labels."""
        weights = tf.constant(self.weights, tf.float32)
        if self.mode == "categorical":
            return tf.linalg.matvec(labels, weights)
        if self.mode == "binary":
            labels = tf.cast(labels[:, 0], tf.int64)
        return tf.gather(weights, labels)

    def _multi_hot(self, numbers: tf.SparseTensor) -> tf.Tensor:
        rows, kept = numbers.indices[:, 0], numbers.values >= 0
        places = tf.stack([tf.boolean_mask(rows, kept), tf.boolean_mask(numbers.values, kept)], 1)
        shape = [numbers.dense_shape[0], self._size]
        hot = tf.scatter_nd(places, tf.ones(tf.shape(places)[:1]), shape)
        return tf.minimum(hot, 1.0)  # a label that is there twice


def encoded_labels(numbers: tf.Tensor, mode: str | None, classes: int) -> tf.Tensor:
    """Return the numbers of classes (int64 [batch]) as a label mode has them.

    Returns:
        ``categorical``: float32 [batch, classes]; ``binary``: float32 [batch, 1]; else as they are.
    """
    if mode == "categorical":
        return tf.one_hot(numbers, classes)
    if mode == "binary":
        return tf.cast(numbers, tf.float32)[:, None]
    return numbers


def _first_wanted(numbers: tf.SparseTensor) -> tf.Tensor:
    """Return the first number ≥ 0 of each row (int64 [batch]); each row has one."""
    wanted = tf.sparse.retain(numbers, numbers.values >= 0)
    rows = wanted.indices[:, 0]
    starts = tf.searchsorted(rows, tf.range(numbers.dense_shape[0]))
    return tf.gather(wanted.values, starts)
