"""Records → batches of tokens and tags.

files ─▶ records ─shuffle─▶ repeat ─▶ window, sorted by length ─▶ batch ─▶ parse, pad

A window is a few batches' worth of records. Sorting inside it brings texts of like length together
without changing how many batches there are: every one but the last is full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import DataError
from recordgen.features import TEXT_ENTITIES
from recordgen.reading.foreign import first_record
from recordgen.reading.options import EntityOptions
from recordgen.reading.order import random_numbers
from recordgen.reading.parsing import parsing_spec
from recordgen.reading.plan import ReadPlan
from recordgen.reading.records import (
    Keep,
    cached,
    finished,
    keeping,
    ordered,
    parallel_calls,
    read_records,
)
from recordgen.reading.shards import ShardSet
from recordgen.reading.tuning import AUTO
from recordgen.tasks import TextEntities

#: The tag that pads a batch; tokens are padded with "".
PADDING = -1

#: The parts of a batch's tokens.
TOKENS, MASK = "tokens", "mask"

# Batches that are sorted by length together: with more, neighbours are more alike, and batches of
# short texts and of long ones come less mixed.
_WINDOW_BATCHES = 16

_NEEDED = (features.TOKENS, features.TAGS_LABEL)


@dataclass(frozen=True)
class EntityReading:
    """A planned reading of tokens and tags.

    Attributes:
        plan: the decisions.
        options: the user's options.
        spec: how the returned features are parsed.
    """

    plan: ReadPlan
    options: EntityOptions
    spec: Mapping[str, Any]

    @classmethod
    def of(cls, shards: ShardSet, plan: ReadPlan, options: EntityOptions) -> EntityReading:
        """Prepare a planned reading; look at the first record of other tools' files.

        Raises:
            DataError: the first record lacks a feature.
            RecordError: the first file is damaged.
        """
        names = dict.fromkeys((*_NEEDED, *options.extras))
        if shards.dataset is None or shards.dataset.features:
            path, first = first_record(plan.files)
            for name in names:
                if name not in first and TEXT_ENTITIES[name].default is None:
                    raise DataError(
                        f"{path}: record 0 has no feature {name!r}, only "
                        f"{', '.join(sorted(first)) or 'none'}; recordgen.read(files, "
                        f"feature_spec=…) reads any features"
                    )
        return cls(plan, options, parsing_spec(names, task=TextEntities.name))

    @property
    def keep(self) -> Keep | None:
        """The function that selects records; None: all are read."""
        return keeping(self.options.predicate, partial(parsing_spec, task=TextEntities.name))

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order."""
        plan, options = self.plan, self.options
        records = ordered(
            cached(read_records(plan, options, self.keep), plan, options), plan, options
        )
        if options.buckets is not None and plan.shuffle_buffer:
            windows = records.batch(_WINDOW_BATCHES * options.batch_size)
            windows = tf.data.Dataset.zip((windows, random_numbers(options.seed)))
            records = windows.map(self._sorted, **parallel_calls(options)).unbatch()
        # Batch before parse: one vectorised call for all records.
        records = records.batch(options.batch_size, drop_remainder=options.has_full_batches)
        return finished(records.map(self._elements, **parallel_calls(options)), plan, options)

    def _sorted(self, records: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
        """Sort the records of a window by length, and shuffle its whole batches."""
        size = tf.shape(records)[0]
        whole = size // self.options.batch_size
        full = whole * self.options.batch_size
        if self.options.has_full_batches:
            # Before they are sorted: else the longest would be left out.
            records = records[:full]
        spec = {features.TOKENS: self.spec[features.TOKENS]}
        lengths = tf.io.parse_example(records, spec)[features.TOKENS].row_lengths()
        records = tf.gather(records, tf.argsort(lengths, stable=True))
        batches = tf.reshape(records[:full], [whole, self.options.batch_size])
        seed = tf.stack([number, 0])
        drawn = tf.argsort(tf.random.stateless_uniform([whole], seed))
        mixed = tf.reshape(tf.gather(batches, drawn), [-1])
        return tf.concat([mixed, records[full:]], 0)

    def _elements(self, records: tf.Tensor) -> Any:
        """Turn records (string [batch]) into a batch."""
        parsed = tf.io.parse_example(records, dict(self.spec))
        tokens, tags = parsed[features.TOKENS], parsed[features.TAGS_LABEL]
        message = "a record has not one number in tags/label for each of its tokens"
        is_right = tf.reduce_all(tokens.row_lengths() == tags.row_lengths())
        with tf.control_dependencies([tf.debugging.Assert(is_right, [message])]):
            length = self._length(tokens.row_lengths())
        static = (records.shape[0], self.options.sequence_length)

        def padded(values: tf.RaggedTensor, padding: str | int) -> tf.Tensor:
            shape = tf.stack([values.nrows(), length])
            return tf.ensure_shape(values.to_tensor(padding, shape=shape), static)

        texts = padded(tokens, "")
        places = tf.range(length, dtype=tf.int64)
        mask = tf.ensure_shape(places[None] < tokens.row_lengths()[:, None], static)
        found = texts if self.options.tokenizer is None else self.options.tokenizer(texts)
        parts: list[Any] = [{TOKENS: found, MASK: mask}, padded(tags, PADDING)]
        if self.options.extras:
            parts.append({name: parsed[name] for name in self.options.extras})
        return tuple(parts)

    def _length(self, lengths: tf.Tensor) -> tf.Tensor:
        """Return the padded length of texts of these lengths (int64 [batch])."""
        if self.options.sequence_length is not None:
            return tf.constant(self.options.sequence_length, tf.int64)
        longest = tf.maximum(tf.reduce_max(lengths), 1)
        if self.options.buckets in (None, AUTO):
            return longest
        bounds = tf.constant(self.options.buckets, tf.int64)
        place = tf.searchsorted(bounds, longest[None])[0]
        return tf.concat([bounds, longest[None]], 0)[place]
