"""Records → labels and weights: which record is wanted, and what the model is to say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import tensorflow as tf

from recordgen import features
from recordgen.errors import UsageError
from recordgen.reading.options import ReadOptions
from recordgen.reading.plan import ClassPlan, class_weights

# What a text that is not to be read is looked up as, and one that nobody has heard of.
_UNWANTED = -1
_UNKNOWN = -2


@dataclass(frozen=True)
class Targets:
    """How labels are read; see :class:`recordgen.reading.options.ReadOptions`.

    Attributes:
        classes: which classes, and their numbers.
        mode: ``index``, ``one_hot``, ``multi_hot`` or ``none``.
        weights: of each class, or none.
        table: text → number, where labels are known by their text.
    """

    classes: ClassPlan
    mode: str
    weights: tuple[float, ...] = ()
    table: tf.lookup.StaticHashTable | None = None

    @classmethod
    def of(cls, classes: ClassPlan, options: ReadOptions) -> Targets:
        """Return what the options ask for. Raises: UsageError."""
        weights: tuple[float, ...] = ()
        if options.weights is not None:
            if options.label_mode == "multi_hot":
                raise UsageError("weights need one label per example: not label_mode='multi_hot'")
            weights = class_weights(options.weights, classes)
        return cls(classes, options.label_mode, weights, _table(classes))

    @property
    def spec(self) -> dict[str, tf.io.VarLenFeature]:
        """The features that are needed, as lists: an example may have no label, or several."""
        names: dict[str, tf.io.VarLenFeature] = {}
        if self.mode == "none" and self.classes.wanted is None:
            return names
        if self.table is not None:
            names[features.IMAGE_CLASS_TEXT] = tf.io.VarLenFeature(tf.string)
        if self.table is None or (self.mode != "none" and not self.classes.by_text):
            names[features.IMAGE_CLASS_LABEL] = tf.io.VarLenFeature(tf.int64)
        return names

    def is_wanted(self, record: tf.Tensor) -> tf.Tensor:
        """Say (bool []) whether one serialised ``record`` (string []) has a wanted label."""
        parsed = tf.io.parse_single_example(record, self.spec)
        if self.table is not None:
            numbers = self.table.lookup(parsed[features.IMAGE_CLASS_TEXT].values)
            return tf.reduce_any(numbers != _UNWANTED)  # unknown ones are refused, not left out
        return tf.reduce_any(self._numbered(parsed[features.IMAGE_CLASS_LABEL].values) >= 0)

    def labels(self, parsed: Mapping[str, tf.SparseTensor]) -> tf.Tensor:
        """Return the labels of a batch of parsed records, each of which has one that is wanted.

        Returns:
            int64 [batch], or float32 [batch, classes]; of several labels, the first wanted one, or
            all wanted ones.

        Raises:
            tf.errors.InvalidArgumentError: a label is outside the vocabulary, or has no number.
        """
        numbers = self._numbers(parsed)
        if self.mode == "multi_hot":
            return self._multi_hot(numbers)
        first = _first_wanted(numbers)
        return tf.one_hot(first, len(self.classes.names or ())) if self.mode == "one_hot" else first

    def weights_of(self, labels: tf.Tensor) -> tf.Tensor:
        """Return the weights (float32 [batch]) of a batch of labels."""
        weights = tf.constant(self.weights, tf.float32)
        if self.mode == "one_hot":
            return tf.linalg.matvec(labels, weights)
        return tf.gather(weights, labels)

    def _numbers(self, parsed: Mapping[str, tf.SparseTensor]) -> tf.SparseTensor:
        """Return the labels' numbers, negative for those that are left out."""
        if self.table is None:
            stored = parsed[features.IMAGE_CLASS_LABEL]
            numbers = self._numbered(stored.values)
            return tf.SparseTensor(stored.indices, numbers, stored.dense_shape)
        stored = parsed[features.IMAGE_CLASS_TEXT]
        numbers = self.table.lookup(stored.values)
        if self.classes.by_text:
            unknown = tf.boolean_mask(stored.values, numbers == _UNKNOWN)
            is_right = tf.size(unknown) == 0
            message = [
                "labels outside the vocabulary; add them, or leave them out with labels=[…]:"
            ]
            message.append(unknown)
        else:
            given = parsed[features.IMAGE_CLASS_LABEL].values
            is_right = tf.size(given) == tf.size(numbers)
            message = [
                f"a record has not one {features.IMAGE_CLASS_LABEL} for each "
                f"{features.IMAGE_CLASS_TEXT}; give vocabulary=[…] to number the texts"
            ]
        with tf.control_dependencies([tf.debugging.Assert(is_right, message)]):
            if not self.classes.by_text:
                numbers = tf.where(numbers == _UNWANTED, numbers, given)
            return tf.SparseTensor(stored.indices, tf.identity(numbers), stored.dense_shape)

    def _multi_hot(self, numbers: tf.SparseTensor) -> tf.Tensor:
        rows, kept = numbers.indices[:, 0], numbers.values >= 0
        places = tf.stack([tf.boolean_mask(rows, kept), tf.boolean_mask(numbers.values, kept)], 1)
        shape = [numbers.dense_shape[0], len(self.classes.names or ())]
        hot = tf.scatter_nd(places, tf.ones(tf.shape(places)[:1]), shape)
        return tf.minimum(hot, 1.0)  # a label that is there twice

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


def _first_wanted(numbers: tf.SparseTensor) -> tf.Tensor:
    """Return the first number ≥ 0 of each row (int64 [batch]); each row has one."""
    wanted = tf.sparse.retain(numbers, numbers.values >= 0)
    rows = wanted.indices[:, 0]
    starts = tf.searchsorted(rows, tf.range(numbers.dense_shape[0]))
    return tf.gather(wanted.values, starts)


def keep_function(
    targets: Targets, predicate: Callable[[tf.Tensor], tf.Tensor] | None
) -> Callable[[tf.Tensor], tf.Tensor] | None:
    """Return what says (bool []) whether a serialised record (string []) is wanted, or None."""
    filters = targets.classes.filters
    if predicate is None:
        return targets.is_wanted if filters else None
    if not filters:
        return predicate
    return lambda record: targets.is_wanted(record) & predicate(record)
