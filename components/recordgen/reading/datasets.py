"""``train_dataset`` and ``eval_dataset``: two functions, not a flag.

Both give ``(images float32 [batch, height, width, 3] in [0, 1], labels int64 [batch])``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import tensorflow as tf

from recordgen import features, splits
from recordgen.errors import UsageError
from recordgen.reading.parsing import decode_images, is_labelled, parsing_spec
from recordgen.reading.shards import ShardSet, check_batch_size, find_shards

# Shards that are read at the same time: enough to mix them, few enough to be open files.
_OPEN_SHARDS = 8


def train_dataset(
    source: str | Sequence[str],
    *,
    batch_size: int,
    image_size: tuple[int, int],
    split: str = splits.TRAIN,
    seed: int | None = None,
    shuffle_buffer: int = 1024,
) -> tf.data.Dataset:
    """Return an endless, shuffled dataset of full batches.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``; or a list of file patterns.
        batch_size: examples per batch.
        image_size: height and width to which images are resized, in pixels.
        split: the split to read; file patterns name it themselves.
        seed: makes the order reproducible, at some cost in speed; None: another order each time.
        shuffle_buffer: encoded images held for shuffling. Records already lie in random order in
            their shards, so it need not be large.

    Returns:
        Batches of images (float32 [batch_size, height, width, 3] in [0, 1]) and labels
        (int64 [batch_size]); without the unlabelled examples.

    Raises:
        UsageError: a batch cannot be filled.
        SourceError, DataError: there is nothing to read; see
            :func:`recordgen.reading.shards.find_shards`.
    """
    _check(image_size, shuffle_buffer)
    shards = find_shards(source, split)
    check_batch_size(shards, batch_size)
    dataset = tf.data.Dataset.from_tensor_slices(list(shards.files))
    # Shuffle files before interleaving: the buffer below only mixes what is read at one time.
    dataset = dataset.shuffle(len(shards.files), seed=seed)
    dataset = dataset.interleave(
        _read_shard,
        cycle_length=min(_OPEN_SHARDS, len(shards.files)),
        num_parallel_calls=min(_cores(), len(shards.files)),
    )
    dataset = _only_labelled(dataset, shards)
    # Shuffle before repeat: every example is seen once per epoch.
    dataset = dataset.shuffle(shuffle_buffer, seed=seed)
    # Repeat before batch: no short batch at the end of an epoch, and one iterator for the whole
    # training, so nothing is torn down and started anew in between.
    dataset = dataset.repeat().batch(batch_size, drop_remainder=True)
    return _decoded(dataset, image_size, deterministic=seed is not None)


def eval_dataset(
    source: str | Sequence[str],
    *,
    batch_size: int,
    image_size: tuple[int, int],
    split: str = splits.EVAL,
) -> tf.data.Dataset:
    """Return one complete pass in the order of the shards; the last batch may be short.

    Args:
        source: as in :func:`train_dataset`.
        batch_size: examples per batch.
        image_size: height and width to which images are resized, in pixels.
        split: the split to read; file patterns name it themselves.

    Returns:
        Batches of images (float32 [≤ batch_size, height, width, 3] in [0, 1]) and labels
        (int64 [≤ batch_size]); without the unlabelled examples.

    Raises:
        UsageError: ``batch_size`` or ``image_size`` is below 1.
        SourceError, DataError: as in :func:`train_dataset`.
    """
    _check(image_size)
    shards = find_shards(source, split)
    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1 (got {batch_size})")
    # One shard after the other: the order is part of what evaluation promises.
    dataset = tf.data.Dataset.from_tensor_slices(list(shards.files)).flat_map(_read_shard)
    dataset = _only_labelled(dataset, shards).batch(batch_size)
    if shards.examples is not None:
        # Keras warns of an early end where it cannot tell how many batches there are.
        batches = -(-shards.examples // batch_size)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    return _decoded(dataset, image_size, deterministic=True)


def _read_shard(path: tf.Tensor) -> tf.data.Dataset:
    """Return the serialised records (string []) of the shard at ``path`` (string [])."""
    is_gzip = tf.strings.regex_full_match(path, r".*\.gz")
    return tf.data.TFRecordDataset(path, compression_type=tf.where(is_gzip, "GZIP", ""))


def _only_labelled(dataset: tf.data.Dataset, shards: ShardSet) -> tf.data.Dataset:
    # Every record would be parsed one by one for this: not where all are known to have a label.
    return dataset if shards.unlabelled == 0 else dataset.filter(is_labelled)


def _decoded(
    batches: tf.data.Dataset, image_size: tuple[int, int], *, deterministic: bool
) -> tf.data.Dataset:
    """Turn batches of records (string [batch]) into batches of images and labels."""
    wanted = parsing_spec([features.IMAGE_ENCODED, features.IMAGE_CLASS_LABEL])

    def decode(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Parse after batch: one vectorised call for all records.
        parsed = tf.io.parse_example(records, wanted)
        images = decode_images(parsed[features.IMAGE_ENCODED], image_size)
        return images, parsed[features.IMAGE_CLASS_LABEL]

    options = tf.data.Options()
    options.deterministic = deterministic
    # Autotuning was seen to stall for seconds when an iterator ends (TF 2.21); fixed numbers are
    # as fast.
    options.autotune.enabled = False
    return batches.map(decode, num_parallel_calls=_cores()).prefetch(2).with_options(options)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(image_size: tuple[int, int], shuffle_buffer: int = 1) -> None:
    if len(image_size) != 2 or min(image_size) < 1:
        raise UsageError(f"image_size must be height and width, each at least 1 (got {image_size})")
    if shuffle_buffer < 1:
        raise UsageError(f"shuffle_buffer must be at least 1 (got {shuffle_buffer})")
