"""Tables: a small network over normalised numbers and embedded texts.

What is missing is told to the network: a number counts as the mean of its column, with a 1 beside
it; a text as one that was never seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from recordgen.columns import Column, Table
from recordgen.errors import DataError, UsageError
from recordgen.reading import eval_dataset, steps_per_epoch, train_dataset
from recordgen.reading.tables import feature_spec
from recordgen.training.config import ACCURACY, LABEL, RMSE, SCORES, SMALL_CNN, WEIGHT
from recordgen.training.learner import Learner, Models

NUMBERS = "numbers"
_UNITS = (64, 32)

# Texts that are seen in training, the most frequent of each column.
_MOST_TEXTS = 10_000
_EMBEDDING = 8

# No other whole number is rarer. It stands for a missing one until all of them are floats.
_NO_WHOLE = -(1 << 63)
_ROWS_AT_ONCE = 4096

_EXAMPLES = tf.TensorSpec([None], tf.string, name="examples")


@dataclass
class _Moments:
    """Mean and variance of a column's numbers, in one pass (Welford, Chan).

    Attributes:
        count: how many there are, without missing ones.
        mean: theirs.
        spread: sum of the squares of what they differ from it.
    """

    count: int = 0
    mean: float = 0.0
    spread: float = 0.0

    def add(self, values: Any) -> None:
        present = values[~np.isnan(values)].astype(np.float64)
        if present.size:
            count = self.count + present.size
            apart = present.mean() - self.mean
            self.spread += (
                np.square(present - present.mean()).sum()
                + apart**2 * self.count * present.size / count
            )
            self.mean += apart * present.size / count
            self.count = count

    @property
    def variance(self) -> float:
        """The variance; 1 of a column of equal numbers, which then are all 0."""
        found = self.spread / self.count if self.count else 0.0
        return found or 1.0


@dataclass
class _Facts:
    """What a pass over the training split has shown.

    Attributes:
        numbers: by column.
        texts: how often each text was seen, by column.
        target: of a regression.
    """

    numbers: Mapping[str, _Moments]
    texts: Mapping[str, Counter[bytes]]
    target: _Moments = field(default_factory=_Moments)


@dataclass(frozen=True)
class TableLearner(Learner):
    """Classes or numbers, from the columns of a table."""

    @cached_property
    def table(self) -> Table:
        """The columns."""
        return Table.from_json(self.dataset.options["columns"])

    @property
    def _are_classes(self) -> bool:
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
        seen = [label for label, count in self.dataset.splits[self.split].labels.items() if count]
        if self._are_classes and len(seen) < 2:
            raise DataError(
                f"{self.root}: the target has the one class {', '.join(seen)} in split "
                f"{self.split!r}: there is nothing to learn"
            )
        if not self.table.inputs:
            raise DataError(f"{self.root}: there is no column beside the target")

    def can_validate(self, split: str) -> bool:
        """Say whether a split is there."""
        return split in self.dataset.splits

    def steps_per_epoch(self) -> int:
        """Return how many batches of rows one pass gives."""
        return steps_per_epoch(self.root, self.config.batch_size, split=self.split)

    def train_data(self) -> tf.data.Dataset:
        """Return batches of columns, targets and, if there are any, weights."""
        return train_dataset(
            self.root,
            batch_size=self.config.batch_size,
            split=self.split,
            seed=self.config.seed,
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
        if self.config.model != SMALL_CNN:
            raise UsageError(f"model={self.config.model} is for images, and these are tables")
        facts = self._facts()
        inputs: dict[str, Any] = {}
        parts = []
        moments = [facts.numbers[column.name] for column in self._number_columns]
        if moments:
            numbers = inputs[NUMBERS] = keras.Input((len(moments),), name=NUMBERS)
            normalised = keras.layers.Normalization(
                mean=[item.mean for item in moments],
                variance=[item.variance for item in moments],
            )(numbers)
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
        hidden = parts[0] if len(parts) == 1 else keras.layers.Concatenate()(parts)
        for units in _UNITS:
            hidden = keras.layers.Dense(units, activation="relu")(hidden)
            hidden = keras.layers.Dropout(self.config.dropout)(hidden)
        if self._are_classes:
            answer = keras.layers.Dense(len(self.dataset.labels), activation="softmax")(hidden)
        else:
            # The network predicts how far a target is from the mean, in standard deviations.
            answer = keras.layers.Rescaling(
                math.sqrt(facts.target.variance), offset=facts.target.mean
            )(keras.layers.Dense(1)(hidden))
        model = keras.Model(inputs, answer)
        return Models(model, model)

    def _facts(self) -> _Facts:
        """Look at the rows to train on."""
        facts = _Facts(
            {column.name: _Moments() for column in self._number_columns},
            {column.name: Counter() for column in self._text_columns},
        )
        for features, target in self._all_rows():
            for name, moments in facts.numbers.items():
                moments.add(_as_floats(features[name]).numpy())
            for name, counts in facts.texts.items():
                counts.update(text for text in features[name].numpy().tolist() if text)
            if not self._are_classes:
                facts.target.add(target.numpy())
        return facts

    def _all_rows(self) -> Iterator[tuple[Mapping[str, tf.Tensor], tf.Tensor]]:
        data = eval_dataset(
            self.root, batch_size=_ROWS_AT_ONCE, split=self.split, defaults=self._defaults
        )
        for features, target, *_ in data:
            yield features, target

    def loss(self) -> str:
        """Return the cross-entropy, or the mean squared error."""
        return "sparse_categorical_crossentropy" if self._are_classes else "mean_squared_error"

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        """Return the accuracy, or the root of the mean squared error."""
        if self._are_classes:
            return [keras.metrics.SparseCategoricalAccuracy(name=ACCURACY)]
        return [keras.metrics.RootMeanSquaredError(name=RMSE)]

    def serving(self, model: keras.Model) -> tf.types.experimental.PolymorphicFunction:
        """``examples`` → ``labels`` and ``scores``, best first; of numbers ``predictions``.

        Examples are serialised, as TFX has it for tables; they need no target.
        """
        vocabulary = tf.constant(list(self.dataset.labels), tf.string)
        k = min(self.config.top_k, len(self.dataset.labels))

        @tf.function(input_signature=[_EXAMPLES])
        def serve(examples: tf.Tensor) -> dict[str, tf.Tensor]:
            answers = self.scores(model, examples)
            if not self._are_classes:
                return {"predictions": answers[:, 0]}
            scores, numbers = tf.math.top_k(answers, k)
            return {"labels": tf.gather(vocabulary, numbers), SCORES: scores}

        return serve

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
        label = self._numbered(target) if self._are_classes else tf.cast(target, tf.float32)
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
