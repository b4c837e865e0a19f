"""Declared columns: a network over images, texts, numbers and vectors of a row.

Each image passes through a small CNN of its own, each text through the mean of its words' vectors;
numbers and vectors are normalised. What all of them say meets in two hidden layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from recordgen.errors import DataError
from recordgen.reading import eval_dataset, read, steps_per_epoch, train_dataset
from recordgen.reading.columns import ColumnReader
from recordgen.reading.decoding import ImageDecoder
from recordgen.reading.parsing import parsed_as
from recordgen.reading.vectorization import learn_words
from recordgen.tables.schema import Schema
from recordgen.training.config import LABEL, WEIGHT
from recordgen.training.labels import truth_of_labels
from recordgen.training.learner import Models
from recordgen.training.model import augmentation, small_cnn
from recordgen.training.moments import Moments
from recordgen.training.targets import TargetLearner
from recordgen.training.words import MOST_TOKENS, NGRAMS, mean_of_words

NUMBERS = "numbers"

_ROWS_AT_ONCE = 1024

# What Keras's vocabularies begin with: padding, and any other word.
_NO_WORDS = ("", "[UNK]")


@dataclass(frozen=True)
class DeclaredLearner(TargetLearner):
    """Classes or numbers, from columns of any kinds."""

    @cached_property
    def schema(self) -> Schema:
        """What the columns hold."""
        return Schema.from_json(self.dataset.options["schema"])

    @property
    def are_classes(self) -> bool:
        """Whether the target is one of some classes, not a number."""
        return self.schema.label is not None

    def _inputs_of(self, *kinds: str) -> Sequence[str]:
        return [name for name in self.schema.inputs if self.schema.columns[name].kind in kinds]

    @property
    def _images(self) -> Sequence[str]:
        return self._inputs_of("image")

    @property
    def _texts(self) -> Sequence[str]:
        return self._inputs_of("text")

    @property
    def _numbers(self) -> Sequence[str]:
        return self._inputs_of("int", "float", "floats")

    def check(self) -> None:
        """Check that there is a label, and something that it may be predicted from."""
        if self.schema.target is None:
            raise DataError(
                f"{self.root}: no column of the schema is a label, only "
                f"{', '.join(self.schema.columns)}; declare what is to be predicted as label, "
                f"int_label or float_label"
            )
        self.check_classes()
        if not self.schema.inputs:
            raise DataError(f"{self.root}: there is no column beside the label")

    def can_validate(self, split: str) -> bool:
        """Say whether a split is there and, of classes, has a labelled example."""
        if self.are_classes:
            return super().can_validate(split)
        return split in self.dataset.splits

    @property
    def _read_as(self) -> dict[str, Any]:
        return {
            "batch_size": self.config.batch_size,
            "columns": self.schema.inputs,
            "image_size": self.config.image_size,
            "vectors": "ragged",
            "map_batch": lambda columns, target: (self._inputs(columns), target),
        }

    def steps_per_epoch(self) -> int:
        """Return how many batches of labelled rows one pass gives."""
        return steps_per_epoch(self.root, split=self.split, drop_remainder=True, **self._read_as)

    def train_data(self) -> tf.data.Dataset:
        """Return batches of columns and targets."""
        return train_dataset(
            self.root, split=self.split, seed=self.config.seed, epochs="endless", **self._read_as
        )

    def eval_data(self, root: str, split: str) -> tf.data.Dataset:
        """Return the same, once."""
        return eval_dataset(root, split=split, **self._read_as)

    def _inputs(self, columns: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        """Return columns as the model takes them; names of columns may be any, of inputs not."""
        found = {_image_input(at): columns[name] for at, name in enumerate(self._images)}
        found |= {_text_input(at): columns[name] for at, name in enumerate(self._texts)}
        numbers = [_as_numbers(columns[name]) for name in self._numbers]
        if numbers:
            found[NUMBERS] = tf.concat(numbers, axis=1)
        return found

    def models(self) -> Models:
        """Build the network; it is trained behind random shifts, turns and zooms of images."""
        self.check_model()
        numbers, target = self._moments()
        inputs: dict[str, Any] = {}
        parts = []
        for at in range(len(self._images)):
            name = _image_input(at)
            inputs[name] = keras.Input((*self.config.image_size, 3), name=name)
            parts.append(small_cnn(inputs[name], self.config.image_size))
        for at, column in enumerate(self._texts):
            name = _text_input(at)
            inputs[name] = keras.Input((), name=name, dtype="string")
            parts.append(mean_of_words(self._words(column), inputs[name]))
        if numbers is not None:
            inputs[NUMBERS] = keras.Input((len(numbers.mean),), name=NUMBERS)
            parts.append(numbers.normalisation()(inputs[NUMBERS]))
        model = keras.Model(inputs, self.answer(parts, target))
        return Models(self._augmented(model, inputs), model)

    def _augmented(self, model: keras.Model, inputs: Mapping[str, Any]) -> keras.Model:
        """Return ``model`` behind changes of its images, as for one image."""
        if not self.config.augmentation or not self._images:
            return model
        again = {
            name: keras.Input(item.shape[1:], name=name, dtype=item.dtype)
            for name, item in inputs.items()
        }
        changed = dict(again)
        for at in range(len(self._images)):
            name = _image_input(at)
            changed[name] = augmentation(self.config)(again[name])
        return keras.Model(again, model(changed))

    def _moments(self) -> tuple[Moments | None, Moments]:
        """Look at the rows to train on: at their numbers, and at the target if it is one."""
        target = Moments()
        names = [*self._numbers, *(() if self.are_classes else (str(self.schema.target),))]
        if not names:
            return None, target
        numbers = None
        for rows in self._rows(names):
            if not self.are_classes:
                target.add(rows[str(self.schema.target)].numpy()[:, None])
            if self._numbers:
                found = tf.concat([_as_numbers(rows[name]) for name in self._numbers], axis=1)
                numbers = numbers or Moments(found.shape[1])
                numbers.add(found.numpy())
        return numbers, target

    def _rows(self, names: Sequence[str]) -> tf.data.Dataset:
        """Return the rows to train on as they are stored, also those without a label."""
        known = self.schema.features
        spec = {name: parsed_as(known[name]) for name in names}
        return read(self.root, split=self.split, batch_size=_ROWS_AT_ONCE, feature_spec=spec)

    def _words(self, column: str) -> keras.layers.TextVectorization:
        """Return a layer that knows the words of a column."""
        texts = self._rows([column]).map(lambda rows: rows[column])
        layer = learn_words(texts, MOST_TOKENS, ngrams=NGRAMS)
        if layer.vocabulary_size() <= len(_NO_WORDS):
            layer.set_vocabulary(["-"])  # one without words cannot be looked up in
        return layer

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each class, float32 [batch, classes]; of numbers, [batch, 1]."""
        decoder = ImageDecoder(self.config.image_size)
        reader = ColumnReader(self.schema, self.schema.inputs, decoder, vectors="ragged")
        columns = reader.columns(tf.io.parse_example(records, reader.spec))
        return model(self._inputs(columns), training=False)

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the number of each label, int64 [batch], or the target, float32 [batch]."""
        if not self.are_classes:
            name = str(self.schema.target)
            spec = {name: tf.io.FixedLenFeature((), tf.float32)}
            number = tf.io.parse_example(records, spec)[name]
            return {LABEL: number, WEIGHT: tf.ones_like(number)}
        return truth_of_labels(records, self.schema.label_features[1])


def _as_numbers(values: Any) -> tf.Tensor:
    """Return a column as float32 [batch, n]; a list of any length as what it comes to.

    That is how many numbers there are, their mean, standard deviation, least and greatest.
    """
    if not isinstance(values, tf.RaggedTensor):
        floats = tf.cast(values, tf.float32)
        return floats[:, None] if len(floats.shape) == 1 else floats
    count = tf.cast(values.row_lengths(), tf.float32)
    there = tf.maximum(count, 1.0)  # a list of no numbers is all 0
    mean = tf.reduce_sum(values, 1) / there
    apart = values.flat_values - tf.gather(mean, values.value_rowids())
    spread = tf.reduce_sum(values.with_flat_values(tf.square(apart)), 1)
    ends = [
        tf.where(count > 0, end, 0.0)
        for end in (tf.reduce_min(values, 1), tf.reduce_max(values, 1))
    ]
    return tf.stack([count, mean, tf.sqrt(spread / there), *ends], axis=1)


def _image_input(at: int) -> str:
    return f"image_{at}"


def _text_input(at: int) -> str:
    return f"text_{at}"
