from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from recordgen import features
from recordgen.dataset import read_dataset
from recordgen.errors import DataError, SourceError, UsageError
from recordgen.reading import (
    decode_images,
    eval_dataset,
    find_shards,
    parsing_spec,
    steps_per_epoch,
    train_dataset,
)

TRAIN = [n for n in range(200) if n % 5]
EVAL = [n for n in range(200) if n % 5 == 0]
SIZE = (4, 6)


def labels_of(dataset, batches=None):
    return [int(label) for _, labels in itertools.islice(dataset, batches) for label in labels]


def test_the_fixture_has_several_shards(output):
    """What follows is about more than one file."""
    assert len(find_shards(output, "train").files) > 2


def test_eval_gives_every_record_once_in_order(output):
    """One complete pass, twice the same, the short batch at the end included."""
    dataset = eval_dataset(output, batch_size=7, image_size=SIZE)
    first = labels_of(dataset)
    assert sorted(first) == EVAL
    assert labels_of(dataset) == first
    assert [len(labels) for _, labels in dataset] == [7] * 5 + [5]
    assert dataset.cardinality().numpy() == 6


def test_elements(output):
    """Images are float32 in [0, 1] of the size asked for, and belong to their labels."""
    dataset = train_dataset(output, batch_size=8, image_size=SIZE, augment=None)
    assert dataset.element_spec == (
        tf.TensorSpec((8, 4, 6, 3), tf.float32),
        tf.TensorSpec((8,), tf.int64),
    )
    images, labels = next(iter(dataset))
    expected = np.zeros((8, 4, 6, 3), np.float32)
    expected[..., 0] = labels.numpy()[:, None, None] / 255
    np.testing.assert_allclose(images, expected, atol=1e-6)


def test_train_sees_every_record_once_per_epoch(output):
    """Shuffled before it is repeated: an epoch is a permutation, and another one each time."""
    labels = labels_of(train_dataset(output, batch_size=40, image_size=SIZE), 8)
    first, second = labels[:160], labels[160:]
    assert sorted(first) == sorted(second) == TRAIN
    assert first != second
    assert first != TRAIN


def test_train_has_only_whole_batches(output):
    """Batches run on into the next epoch: 160 records in batches of 64 have no rest."""
    dataset = train_dataset(output, batch_size=64, image_size=SIZE)
    assert [len(labels) for _, labels in itertools.islice(dataset, 6)] == [64] * 6


def test_seed_decides_the_order(output):
    """The same seed gives the same order in every epoch, another one another."""

    def read(seed):
        dataset = train_dataset(output, batch_size=40, image_size=SIZE, seed=seed)
        return labels_of(dataset, 8)

    assert read(1) == read(1)
    assert read(1) != read(2)


def test_sources_are_equivalent(output):
    """A folder, its dataset.json and the shards' pattern are the same data."""
    by_folder = labels_of(eval_dataset(output, batch_size=16, image_size=SIZE))
    by_file = labels_of(eval_dataset(f"{output}/dataset.json", batch_size=16, image_size=SIZE))
    by_pattern = labels_of(eval_dataset([f"{output}/Split-eval/*"], batch_size=16, image_size=SIZE))
    assert by_folder == by_file == by_pattern


@pytest.mark.parametrize("as_pattern", [False, True], ids=["dataset.json", "pattern"])
def test_unlabelled_records_are_left_out(partly_labelled, as_pattern):
    """A record without a label teaches nothing; the batches around it stay whole."""
    source = [f"{partly_labelled}/Split-train/*"] if as_pattern else partly_labelled
    assert sorted(
        labels_of(eval_dataset(source, batch_size=5, image_size=SIZE, split="train"))
    ) == list(range(7))
    labels = labels_of(train_dataset(source, batch_size=7, image_size=SIZE), 2)
    assert sorted(labels[:7]) == sorted(labels[7:]) == list(range(7))


def test_steps_per_epoch(output, partly_labelled):
    """Whole batches of labelled examples."""
    assert steps_per_epoch(output, 32) == 5
    assert steps_per_epoch(output, 33) == 4
    assert steps_per_epoch(output, 40, split="eval") == 1
    assert steps_per_epoch(partly_labelled, 7) == 1


def test_parsing_spec_reads_all_that_is_written(output):
    """The write/read contract: every feature of the specification comes back from a record."""
    shards = find_shards(output, "eval")
    compression = "GZIP" if shards.files[0].path.endswith(".gz") else ""
    record = next(iter(tf.data.TFRecordDataset(shards.files[0].path, compression)))
    parsed = tf.io.parse_single_example(record, parsing_spec())
    assert set(parsed) == set(features.IMAGE_CLASSIFICATION)
    number = int(parsed[features.IMAGE_CLASS_LABEL])
    dataset = read_dataset(output)
    assert parsed[features.IMAGE_CLASS_TEXT].numpy().decode() == dataset.labels[number]
    assert parsed[features.IMAGE_SOURCE_ID].numpy().decode().endswith(f"{number}.png")
    assert (parsed[features.IMAGE_HEIGHT], parsed[features.IMAGE_WIDTH]) == (
        4 + number % 5,
        2 * (4 + number % 5),
    )


@pytest.mark.parametrize("encode", [tf.io.encode_png, tf.io.encode_jpeg])
def test_decode_eager_and_in_graph(encode):
    """The same pixels in eager mode and inside tf.data, for images of several sizes and depths."""
    encoded = [
        encode(tf.fill((9, 5, channels), tf.constant(200, tf.uint8))).numpy() for channels in (1, 3)
    ]
    eager = decode_images(tf.constant(encoded), (3, 2))
    assert eager.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(eager, 200 / 255, atol=0.01)
    dataset = tf.data.Dataset.from_tensors(encoded).map(lambda x: decode_images(x, (3, 2)))
    np.testing.assert_array_equal(next(iter(dataset)), eager)


@pytest.mark.parametrize("read", [train_dataset, eval_dataset])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        # what is asked for, the error, what it says
        (dict(batch_size=0), UsageError, r"batch_size must be at least 1 \(got 0\)"),
        (dict(image_size=(0, 5)), UsageError, r"image_size must be .* \(got \(0, 5\)\)"),
        (dict(split="test"), DataError, r"no split 'test' here, only train, eval"),
        (dict(source="/nowhere"), SourceError, r"/nowhere: no dataset.json here"),
        (dict(source=["/nowhere/*"]), SourceError, r"no shard matches /nowhere/\*"),
        (dict(source=[]), SourceError, r"no shard matches an empty list"),
    ],
)
def test_errors(output, read, arguments, error, message):
    """What is wrong is said where the dataset is made, not when it is read."""
    given = {"source": output, "batch_size": 4, "image_size": SIZE, **arguments}
    with pytest.raises(error, match=message):
        read(given.pop("source"), **given)


def test_batch_larger_than_the_data(output):
    """A batch that cannot be filled from one epoch is a mistake, with the number that fits."""
    with pytest.raises(UsageError, match=r"not be above .* 160 \(got 161\)"):
        train_dataset(output, batch_size=161, image_size=SIZE)
    with pytest.raises(UsageError, match=r"not be above .* 160 \(got 161\)"):
        steps_per_epoch(output, 161)


def test_split_without_labels(partly_labelled):
    """A split of unlabelled records would be an endless wait, so it is an error."""
    with pytest.raises(DataError, match=r"'eval' has no labelled example \(4 unlabelled\)"):
        eval_dataset(partly_labelled, batch_size=4, image_size=SIZE)


def test_shuffle_buffer(output):
    """The buffer is checked too."""
    with pytest.raises(UsageError, match="shuffle_buffer must be at least 0"):
        train_dataset(output, batch_size=4, image_size=SIZE, shuffle_buffer=-1)
