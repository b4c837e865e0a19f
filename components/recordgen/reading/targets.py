"""Records → labels and weights: which record is wanted, and what the model is to say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import tensorflow as tf

from recordgen import features
from recordgen.errors import UsageError
from recordgen.reading.options import ReadOptions
from recordgen.reading.plan import ClassPlan, class_weights


@dataclass(frozen=True)
class Targets:
    """How labels are read; see :class:`recordgen.reading.options.ReadOptions`.

    Attributes:
        classes: which classes, and their numbers.
        mode: ``index``, ``one_hot``, ``multi_hot`` or ``none``.
        weights: of each class, or none.
    """

    classes: ClassPlan
    mode: str
    weights: tuple[float, ...] = ()

    @classmethod
    def of(cls, classes: ClassPlan, options: ReadOptions) -> Targets:
        """Return what the options ask for. Raises: UsageError."""
        if options.weights is None:
            return cls(classes, options.label_mode)
        if options.label_mode == "multi_hot":
            raise UsageError("weights need one label per example: not label_mode='multi_hot'")
        return cls(classes, options.label_mode, class_weights(options.weights, classes))

    @property
    def spec(self) -> dict[str, tf.io.VarLenFeature]:
        """The features that are needed, as lists: an example may have no label, or several."""
        if self.mode == "none" and self.classes.wanted is None:
            return {}
        by_text = self.classes.by_text or (
            self.classes.wanted is not None and self.classes.numbers is None
        )
        names = {features.IMAGE_CLASS_LABEL: tf.int64}
        if by_text:
            names[features.IMAGE_CLASS_TEXT] = tf.string
        if self.classes.by_text:
            del names[features.IMAGE_CLASS_LABEL]
        return {name: tf.io.VarLenFeature(dtype) for name, dtype in names.items()}

    def is_wanted(self, record: tf.Tensor) -> tf.Tensor:
        """Say (bool []) whether one serialised ``record`` (string []) has a wanted label."""
        parsed = tf.io.parse_single_example(record, self.spec)
        wanted = self.classes.wanted
        if features.IMAGE_CLASS_TEXT in parsed:
            texts = parsed[features.IMAGE_CLASS_TEXT].values
            if wanted is None:
                return tf.size(texts) > 0
            return tf.reduce_any(texts[:, None] == tf.constant(wanted)[None])
        return tf.reduce_any(self._numbered(parsed[features.IMAGE_CLASS_LABEL].values) >= 0)

    def labels(self, parsed: Mapping[str, tf.SparseTensor]) -> tf.Tensor:
        """Return the labels of a batch of parsed records, each of which has one that is wanted.

        Returns:
            int64 [batch], or float32 [batch, classes].

        Raises:
            tf.errors.InvalidArgumentError: a label is outside the vocabulary.
        """
        if self.classes.by_text:
            stored = parsed[features.IMAGE_CLASS_TEXT]
            numbers = self._looked_up(stored.values)
        else:
            stored = parsed[features.IMAGE_CLASS_LABEL]
            numbers = self._numbered(stored.values)
        numbers = tf.SparseTensor(stored.indices, numbers, stored.dense_shape)
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

    def _looked_up(self, texts: tf.Tensor) -> tf.Tensor:
        names = tf.constant(self.classes.names)
        found = texts[:, None] == names[None]
        is_known = tf.reduce_any(found, 1)
        unknown = tf.boolean_mask(texts, ~is_known)
        message = "labels outside the vocabulary; add them, or leave them out with labels=[…]:"
        with tf.control_dependencies(
            [tf.debugging.Assert(tf.reduce_all(is_known), [message, unknown])]
        ):
            return tf.argmax(found, 1)


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
