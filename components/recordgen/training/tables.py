"""Tables: a small network over normalised numbers and embedded texts.

What is missing is told to the network: a number counts as the mean of its column, with a 1 beside
it; a text as one that was never seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from recordgen.errors import DataError
from recordgen.reading import eval_dataset, steps_per_epoch, train_dataset
from recordgen.reading.tables import feature_spec
from recordgen.tables.columns import Column, Table
from recordgen.training.config import LABEL, WEIGHT
from recordgen.training.learner import Models
from recordgen.training.moments import Moments
from recordgen.training.targets import TargetLearner

NUMBERS = "numbers"

# Texts that are seen in training, the most frequent of each column.
_MOST_TEXTS = 10_000
_EMBEDDING = 8

# No other whole number is rarer. It stands for a missing one until all of them are floats.
_NO_WHOLE = -(1 << 63)
_ROWS_AT_ONCE = 4096


@dataclass
class _Facts:
    """What a pass over the training split has shown.

    Attributes:
        numbers: of the columns of numbers, in their order.
        texts: how often each text was seen, by column.
        target: of a regression.
    """

    numbers: Moments
    texts: Mapping[str, Counter[bytes]]
    target: Moments = field(default_factory=Moments)


@dataclass(frozen=True)
class TableLearner(TargetLearner):
    """Classes or numbers, from the columns of a table."""

    @cached_property
    def table(self) -> Table:
        """The columns."""
        return Table.from_json(self.dataset.options["table"])

    @property
    def are_classes(self) -> bool:
        """Whether the target is one of some classes, not a number."""
        return self.table.prediction == "classification"

    @property
    def _number_columns(self) -> list[Column]:
        return [column for column in self.table.inputs if column.dtype != "bytes"]

    @property
    def _text_columns(self) -> list[Column]:
        return [column for column in self.table.inputs if column.dtype == "bytes"]

    def check(self) -> None:
        """Check that there is a target, and something that it may be predicted from."""
        if self.table.target is None:
            raise DataError(
                f"{self.root}: no column is the target; convert with --target-column NAME"
            )
        self.check_classes()
        if not self.table.inputs:
            raise DataError(f"{self.root}: there is no column beside the target")

    def can_validate(self, split: str) -> bool:
        """Say whether a split is there."""
        return split in self.dataset.splits

    def steps_per_epoch(self) -> int:
        """Return how many batches of rows one pass gives."""
        return steps_per_epoch(
            self.root, self.config.batch_size, split=self.split, drop_remainder=True
        )

    def train_data(self) -> tf.data.Dataset:
        """Return batches of columns, targets and, if there are any, weights."""
        return train_dataset(
            self.root,
            batch_size=self.config.batch_size,
            split=self.split,
            seed=self.config.seed,
            epochs="endless",
            defaults=self._defaults,
            map_batch=self._handed_over,
        )

    def eval_data(self, root: str, split: str) -> tf.data.Dataset:
        """Return the same, once."""
        return eval_dataset(
            root,
            batch_size=self.config.batch_size,
            split=split,
            defaults=self._defaults,
            map_batch=self._handed_over,
        )

    @property
    def _defaults(self) -> dict[str, Any]:
        return {column.name: _NO_WHOLE for column in self.table.inputs if column.dtype == "int64"}

    def _handed_over(self, features: Any, *rest: Any) -> Any:
        return self._inputs(features), *rest

    def _inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return columns as the model takes them; names of columns may be any, of inputs not."""
        found = {}
        numbers = [_as_floats(features[column.name]) for column in self._number_columns]
        if numbers:
            found[NUMBERS] = tf.stack(numbers, axis=1)
        for index, column in enumerate(self._text_columns):
            found[_text_input(index)] = features[column.name][:, None]
        return found

    def models(self) -> Models:
        """Build a network with two hidden layers."""
        self.check_model()
        facts = self._facts()
        inputs: dict[str, Any] = {}
        parts = []
        if self._number_columns:
            numbers = inputs[NUMBERS] = keras.Input((len(self._number_columns),), name=NUMBERS)
            normalised = facts.numbers.normalisation()(numbers)
            is_missing = keras.ops.isnan(numbers)
            parts += [
                keras.ops.where(is_missing, 0.0, normalised),
                keras.ops.cast(is_missing, "float32"),
            ]
        for index, column in enumerate(self._text_columns):
            name = _text_input(index)
            texts = inputs[name] = keras.Input((1,), name=name, dtype="string")
            counts = facts.texts[column.name].most_common(_MOST_TEXTS)
            # Keras has its own name for what is not known.
            known = sorted({text.decode() for text, _ in counts} - {"[UNK]"})
            lookup = keras.layers.StringLookup(vocabulary=known or ["-"])
            size = min(_EMBEDDING, 1 + len(known))
            embedded = keras.layers.Embedding(lookup.vocabulary_size(), size)(lookup(texts))
            parts.append(keras.layers.Flatten()(embedded))
        model = keras.Model(inputs, self.answer(parts, facts.target))
        return Models(model, model)

    def _facts(self) -> _Facts:
        """Look at the rows to train on."""
        facts = _Facts(
            Moments(len(self._number_columns)),
            {column.name: Counter() for column in self._text_columns},
        )
        for features, target in self._all_rows():
            if self._number_columns:
                facts.numbers.add(self._inputs(features)[NUMBERS].numpy())
            for name, counts in facts.texts.items():
                counts.update(text for text in features[name].numpy().tolist() if text)
            if not self.are_classes:
                facts.target.add(target.numpy()[:, None])
        return facts

    def _all_rows(self) -> Iterator[tuple[Mapping[str, tf.Tensor], tf.Tensor]]:
        data = eval_dataset(
            self.root, batch_size=_ROWS_AT_ONCE, split=self.split, defaults=self._defaults
        )
        for features, target, *_ in data:
            yield features, target

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each class, float32 [batch, classes]; of numbers, [batch, 1]."""
        spec = {
            name: tf.io.FixedLenFeature(
                (), item.dtype, self._defaults.get(name, item.default_value)
            )
            for name, item in feature_spec(self.table).items()
        }
        return model(self._inputs(tf.io.parse_example(records, spec)), training=False)

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the number of each class, int64 [batch], or the target, float32 [batch].

        All rows weigh the same: weights say what training is to heed.
        """
        name = str(self.table.target)
        dtype = {"int64": tf.int64, "float32": tf.float32, "bytes": tf.string}
        spec = {name: tf.io.FixedLenFeature((), dtype[self.table.column(name).dtype])}
        target = tf.io.parse_example(records, spec)[name]
        label = self._numbered(target) if self.are_classes else tf.cast(target, tf.float32)
        return {LABEL: label, WEIGHT: tf.ones_like(label, tf.float32)}

    def _numbered(self, target: tf.Tensor) -> tf.Tensor:
        """Return the numbers of classes, without a table, which the saved model would lack."""
        texts = target if target.dtype == tf.string else tf.strings.as_string(target)
        return tf.argmax(texts[:, None] == tf.constant(list(self.dataset.labels))[None], axis=1)


def _as_floats(values: tf.Tensor) -> tf.Tensor:
    """Return numbers as float32, NaN where one is missing."""
    floats = tf.cast(values, tf.float32)
    if values.dtype != tf.int64:
        return floats
    return tf.where(values == _NO_WHOLE, tf.constant(math.nan, tf.float32), floats)


def _text_input(index: int) -> str:
    return f"text_{index}"
