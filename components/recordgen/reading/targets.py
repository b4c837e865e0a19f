"""Records → labels and weights: the records that are read, and the numbers of their classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import UsageError
from recordgen.reading.options import AUTO, LabelOptions
from recordgen.reading.parsing import Parse, checked, parse_named
from recordgen.reading.plan import ClassPlan, class_weights

# The number of a text that is skipped, and of a text outside the vocabulary.
_UNWANTED = -1
_UNKNOWN = -2


class ClassNumbers:
    """The numbers of stored labels.

    Attributes:
        text: the feature that holds the labels' texts.
        label: the feature that holds their numbers.
        table: text → number, if labels are looked up by text.
    """

    def __init__(self, classes: ClassPlan, *, text: str, label: str) -> None:
        self.classes, self.text, self.label = classes, text, label
        self.table = number_table(classes)

    @property
    def chosen_by(self) -> str:
        """The feature that decides whether a label is read."""
        return self.label if self.table is None else self.text

    @property
    def names(self) -> tuple[str, ...]:
        """The features from which the numbers are read."""
        if self.table is None:
            return (self.label,)
        return (self.text,) if self.classes.by_text else (self.text, self.label)

    def are_wanted(self, stored: tf.Tensor) -> tf.Tensor:
        """Return (bool [n]) which values of the feature ``chosen_by`` are read."""
        if self.table is not None:
            # Unknown texts are not skipped: they become an error.
            return self.table.lookup(stored) != _UNWANTED
        return self._numbered(stored) >= 0

    def numbers(self, parsed: Mapping[str, Any]) -> tf.Tensor:
        """Return the labels' numbers (int64 [n]), negative for skipped labels.

        Raises:
            tf.errors.InvalidArgumentError: a label is outside the vocabulary, or has no number.
        """
        if self.table is None:
            return self._numbered(parsed[self.label].values)
        texts = parsed[self.text].values
        numbers = self.table.lookup(texts)
        if self.classes.by_text:
            unknown = tf.boolean_mask(texts, numbers == _UNKNOWN)
            message = "labels outside the vocabulary; add them, or exclude them with labels=[…]:"
            return checked(numbers, tf.size(unknown) == 0, message, unknown)
        given = parsed[self.label].values
        message = (
            f"a record does not have one {self.label} for each {self.text}; give vocabulary=[…] "
            f"to number the texts"
        )
        given = checked(given, tf.size(given) == tf.size(numbers), message)
        return tf.where(numbers == _UNWANTED, numbers, given)

    def _numbered(self, stored: tf.Tensor) -> tf.Tensor:
        """Return the numbers of stored labels, -1 for skipped ones."""
        if self.classes.numbers is None:
            return stored
        return tf.gather(tf.constant(self.classes.numbers, tf.int64), stored)


class Targets:
    """A reader of labels; see :class:`recordgen.reading.options.LabelOptions`.

    Attributes:
        mode: ``int``, ``binary``, ``categorical``, ``multi_hot`` or None.
    """

    def __init__(
        self,
        classes: ClassPlan,
        options: LabelOptions,
        *,
        text: str = features.IMAGE_CLASS_TEXT,
        label: str = features.IMAGE_CLASS_LABEL,
        text_dtype: tf.DType = tf.string,
    ) -> None:
        """Prepare to read the labels of a plan's classes.

        Args:
            classes: the classes to read.
            options: the user's options, for the weights.
            text: the feature that holds the labels' texts.
            label: the feature that holds their numbers.
            text_dtype: the type of the feature ``text``; int64 if the texts are whole numbers.

        Raises: UsageError: an option does not fit the data.
        """
        self._weights: tuple[float, ...] = ()
        if options.weights is not None:
            if classes.mode == "multi_hot":
                raise UsageError("weights need one label per example: not label_mode='multi_hot'")
            self._weights = class_weights(options.weights, classes)
        self.numbers = ClassNumbers(classes, text=text, label=label)
        self.mode = classes.mode
        # The counts of our own files are known, and so is whether they have several labels.
        self._needs_one = options.label_mode == AUTO and classes.counts is None
        self._size = len(classes.names or ())
        self._text_dtype = text_dtype

    @property
    def spec(self) -> dict[str, tf.io.VarLenFeature]:
        """The features to parse, as lists: an example may have no label, or several."""
        if self.mode is not None:
            names = self.numbers.names
        else:
            names = () if self.numbers.classes.wanted is None else (self.numbers.chosen_by,)
        dtypes = {self.numbers.text: self._text_dtype, self.numbers.label: tf.int64}
        return {name: tf.io.VarLenFeature(dtypes[name]) for name in names}

    def is_wanted(
        self,
        record: tf.Tensor,
        stored: Mapping[str, str] = {},
        parse: Parse = tf.io.parse_example,
    ) -> tf.Tensor:
        """Return (bool []) whether a serialised ``record`` (string []) has a label to read.

        ``stored`` and ``parse`` are as in :func:`recordgen.reading.parsing.parse_named`.
        """
        found = parse_named(record[None], self.spec, stored, parse)
        parsed = self._with_texts(found)
        return tf.reduce_any(self.numbers.are_wanted(parsed[self.numbers.chosen_by].values))

    def labels(self, parsed: Mapping[str, tf.SparseTensor]) -> tf.Tensor:
        """Return the labels of a batch of parsed records, each with at least one label to read.

        Returns:
            int64 [batch], float32 [batch, 1] or float32 [batch, classes]. If an example has several
            labels, and the user gave ``label_mode``, this is the first; for ``multi_hot``, all.

        Raises:
            tf.errors.InvalidArgumentError: a label is outside the vocabulary, or has no number; or
                an example has several labels, and the user did not give ``label_mode``.
        """
        parsed = self._with_texts(parsed)
        stored = parsed[self.numbers.chosen_by]
        numbers = tf.SparseTensor(stored.indices, self.numbers.numbers(parsed), stored.dense_shape)
        if self.mode == "multi_hot":
            return self._multi_hot(numbers)
        first = _first_wanted(numbers)
        if self._needs_one:
            rows, values = numbers.indices[:, 0], numbers.values
            others = tf.boolean_mask(values, (values >= 0) & (values != tf.gather(first, rows)))
            message = (
                "a record has several labels; read all of them with label_mode=multi_hot and "
                "vocabulary=[…], only the first with label_mode=int, or some with only=[…]:"
            )
            first = checked(first, tf.size(others) == 0, message, others)
        return encoded_labels(first, self.mode, self._size)

    def parts(self, label: tf.Tensor, batch_size: int | None) -> list[tf.Tensor]:
        """Return a batch's labels and, if there are any, their weights."""
        label = tf.ensure_shape(label, (batch_size, *label.shape[1:]))
        return [label, self._weights_of(label)] if self._weights else [label]

    def _with_texts(self, parsed: Mapping[str, tf.SparseTensor]) -> Mapping[str, tf.SparseTensor]:
        """Return parsed features with their values as texts."""
        if self._text_dtype == tf.string:
            return parsed
        return {
            name: item.with_values(tf.strings.as_string(item.values))
            for name, item in parsed.items()
        }

    def _weights_of(self, labels: tf.Tensor) -> tf.Tensor:
        weights = tf.constant(self._weights, tf.float32)
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
        return tf.minimum(hot, 1.0)  # a record may have a label twice


def encoded_labels(numbers: tf.Tensor, mode: str | None, classes: int) -> tf.Tensor:
    """Encode the numbers of classes (int64 [batch]) for a label mode.

    Returns:
        ``categorical``: float32 [batch, classes]; ``binary``: float32 [batch, 1]; else unchanged.
    """
    if mode == "categorical":
        return tf.one_hot(numbers, classes)
    if mode == "binary":
        return tf.cast(numbers, tf.float32)[:, None]
    return numbers


def _first_wanted(numbers: tf.SparseTensor) -> tf.Tensor:
    """Return the first number ≥ 0 of each row (int64 [batch]); each row has one."""
    wanted = tf.where(numbers.values >= 0)[:, 0]  # tf.sparse.retain has three times the steps
    rows = tf.gather(numbers.indices[:, 0], wanted)
    starts = tf.searchsorted(rows, tf.range(numbers.dense_shape[0]))
    return tf.gather(numbers.values, tf.gather(wanted, starts))


def number_table(classes: ClassPlan) -> tf.lookup.StaticHashTable | None:
    """Return the table from texts to numbers; None if the stored numbers suffice."""
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
    return lookup_table(numbers, default)


def lookup_table(numbers: Mapping[str, int], default: int) -> tf.lookup.StaticHashTable:
    """Return a table from texts to numbers (int64), with ``default`` for all other texts."""
    texts = tf.constant(list(numbers), tf.string)
    values = tf.constant(list(numbers.values()), tf.int64)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(texts, values), default)
