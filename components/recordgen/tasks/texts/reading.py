"""Records → batches of texts and labels, or of tokens and tags: shuffle, repeat, batch, parse.

files ─▶ records ─shuffle─▶ repeat ─▶ window, sorted by length ─▶ batch ─▶ parse, pad

A window, of tokens only, holds the records of a few batches. Sorting inside a window brings texts
of similar length together, and the number of batches stays the same: every batch but the last is
full.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.access.shards import ShardSet
from recordgen.features import TEXT_ENTITIES
from recordgen.reading.foreign import check_first
from recordgen.reading.kinds import Kind, labelled_kind
from recordgen.reading.options import EntityOptions
from recordgen.reading.parsing import parsing_spec
from recordgen.reading.plan import ReadPlan, plan_records
from recordgen.reading.records import BatchReading, keeping, parallel_calls, random_numbers
from recordgen.reading.targets import lookup_table
from recordgen.tasks import TextEntities
from recordgen.tasks.texts.tags import tag_names

TEXTS = labelled_kind(
    {features.TEXT: features.TEXT_CLASSIFICATION[features.TEXT]},
    lambda parsed, _: parsed[features.TEXT],
    text=features.CLASS_TEXT,
    label=features.CLASS_LABEL,
)


# --- entities ------------------------------------------------------------------------------------


#: The tag that pads a batch; tokens are padded with "".
PADDING = -1

#: The parts of a batch's tokens.
TOKENS, MASK = "tokens", "mask"

# Batches in a window: with more, the texts of a batch are more alike, but batches of short and of
# long texts are mixed less well.
_WINDOW_BATCHES = 16

_NEEDED: tuple[str, ...] = (features.TOKENS, features.TAGS_LABEL)


def read_entities(shards: ShardSet, plan: ReadPlan, options: EntityOptions) -> BatchReading:
    """Prepare a planned reading; check the first record of other tools' files.

    Raises: DataError: the first record lacks a feature; RecordError: the first file is damaged.
    """
    numbers, needed = None, _NEEDED
    if shards.dataset is not None and shards.renumbered:
        tags = tag_names(shards.dataset.labels)
        numbers = lookup_table({tag: number for number, tag in enumerate(tags)}, PADDING)
        needed = (*_NEEDED, features.TAGS_TEXT)
    names = dict.fromkeys((*needed, *options.extras))
    if shards.dataset is None or shards.dataset.features:
        required = [name for name in names if TEXT_ENTITIES[name].default is None]
        remedy = "recordgen.read(files, feature_spec=…) reads any features"
        check_first(plan.files, required, remedy)
    spec = parsing_spec(names, task=TextEntities.name)
    keep = keeping(options.predicate, partial(parsing_spec, task=TextEntities.name))
    is_free = options.groups_lengths and plan.shuffle_buffer > 0
    arrange = partial(_sorted_windows, options) if is_free else None
    return BatchReading(plan, options, keep, partial(_to_batch, options, spec, numbers), arrange)


def _sorted_windows(options: EntityOptions, records: tf.data.Dataset) -> tf.data.Dataset:
    windows = records.batch(_WINDOW_BATCHES * options.batch_size)
    windows = tf.data.Dataset.zip((windows, random_numbers(options.seed)))
    return windows.map(partial(_sorted, options), **parallel_calls(options)).unbatch()


def _sorted(options: EntityOptions, records: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    """Sort the records of a window by length, and shuffle its whole batches."""
    whole = tf.shape(records)[0] // options.batch_size
    full = whole * options.batch_size
    if options.has_full_batches:
        # Cut before sorting: otherwise the longest texts would be missing.
        records = records[:full]
    spec = parsing_spec([features.TOKENS], task=TextEntities.name)
    lengths = tf.io.parse_example(records, spec)[features.TOKENS].row_lengths()
    records = tf.gather(records, tf.argsort(lengths, stable=True))
    batches = tf.reshape(records[:full], [whole, options.batch_size])
    order = tf.argsort(tf.random.stateless_uniform([whole], tf.stack([number, 0])))
    mixed = tf.reshape(tf.gather(batches, order), [-1])
    return tf.concat([mixed, records[full:]], 0)


def _to_batch(
    options: EntityOptions,
    spec: Mapping[str, Any],
    numbers: tf.lookup.StaticHashTable | None,
    records: tf.Tensor,
) -> Any:
    """Turn records (string [batch]) into a batch; ``numbers`` replaces the stored tag numbers."""
    parsed = tf.io.parse_example(records, dict(spec))
    tokens, tags = parsed[features.TOKENS], parsed[features.TAGS_LABEL]
    if numbers is not None:
        texts = parsed[features.TAGS_TEXT]
        tags = texts.with_values(numbers.lookup(texts.values))
    message = "a record does not have one number in tags/label for each of its tokens"
    is_right = tf.reduce_all(tokens.row_lengths() == tags.row_lengths())
    with tf.control_dependencies([tf.debugging.Assert(is_right, [message])]):
        length = _length(options, tokens.row_lengths())
    static = (records.shape[0], options.sequence_length)

    def padded(values: tf.RaggedTensor, padding: str | int) -> tf.Tensor:
        shape = tf.stack([values.nrows(), length])
        return tf.ensure_shape(values.to_tensor(padding, shape=shape), static)

    words = padded(tokens, "")
    places = tf.range(length, dtype=tf.int64)
    mask = tf.ensure_shape(places[None] < tokens.row_lengths()[:, None], static)
    parts: list[Any] = [{TOKENS: words, MASK: mask}, padded(tags, PADDING)]
    if options.extras:
        parts.append({name: parsed[name] for name in options.extras})
    return tuple(parts)


def _length(options: EntityOptions, lengths: tf.Tensor) -> tf.Tensor:
    """Return the padded length of texts of these lengths (int64 [batch])."""
    if options.sequence_length is not None:
        return tf.constant(options.sequence_length, tf.int64)
    longest = tf.maximum(tf.reduce_max(lengths), 1)
    if not options.lengths:
        return longest
    bounds = tf.constant(options.lengths, tf.int64)
    place = tf.searchsorted(bounds, longest[None])[0]
    return tf.concat([bounds, longest[None]], 0)[place]


ENTITIES = Kind(options=EntityOptions, plan=plan_records, reading=read_entities)
