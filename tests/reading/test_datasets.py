from __future__ import annotations

import itertools
import json
import shutil
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from recordgen import Augmentation, features, input_fn, load, reading_plan, write
from recordgen.dataset import read_dataset
from recordgen.errors import DataError, RecordError, SourceError, UsageError
from recordgen.reading import (
    decode_images,
    eval_dataset,
    find_shards,
    parsing_spec,
    steps_per_epoch,
    train_dataset,
)
from tests.conftest import run_python
from tests.reading.conftest import ids, pet, write_records

TRAIN = [n for n in range(200) if n % 5]
EVAL = [n for n in range(200) if n % 5 == 0]
SIZE = (4, 6)
PIXEL = tf.io.encode_png(tf.zeros((1, 1, 3), tf.uint8))[None]


def labels_of(dataset, batches=None):
    return [int(label) for _, labels in itertools.islice(dataset, batches) for label in labels]


def test_the_fixture_has_several_shards(any_output):
    """What follows is about more than one file."""
    assert len(find_shards(any_output, "train").files) > 2


def test_eval_gives_every_record_once_in_order(any_output):
    """One complete pass, twice the same, the short batch at the end included."""
    dataset = eval_dataset(any_output, batch_size=7, image_size=SIZE)
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


def test_train_sees_every_record_once_per_epoch(any_output):
    """Shuffled before it is repeated: an epoch is a permutation, and another one each time."""
    labels = labels_of(train_dataset(any_output, batch_size=40, image_size=SIZE), 8)
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


def test_sources_are_equivalent(any_output):
    """A folder, its dataset.json and the shards' pattern are the same data."""
    by_folder = labels_of(eval_dataset(any_output, batch_size=16, image_size=SIZE))
    by_file = labels_of(eval_dataset(f"{any_output}/dataset.json", batch_size=16, image_size=SIZE))
    by_pattern = labels_of(
        eval_dataset([f"{any_output}/Split-eval/*"], batch_size=16, image_size=SIZE)
    )
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


def test_parsing_spec_reads_all_that_is_written(any_output):
    """The write/read contract: every feature of the specification comes back from a record."""
    shards = find_shards(any_output, "eval")
    compression = "GZIP" if shards.files[0].path.endswith(".gz") else ""
    record = next(iter(tf.data.TFRecordDataset(shards.files[0].path, compression)))
    parsed = tf.io.parse_single_example(record, parsing_spec())
    assert set(parsed) == set(features.IMAGE_CLASSIFICATION)
    number = int(parsed[features.IMAGE_CLASS_LABEL])
    dataset = read_dataset(any_output)
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


def test_input_fn_reads_as_the_split_is_for(output):
    """Training is endless, in whole batches, and in any order; evaluation one ordered pass."""
    training = input_fn(output, batch_size=32, image_size=SIZE)
    assert training.cardinality() == tf.data.INFINITE_CARDINALITY
    assert training.element_spec[0].shape[0] == 32
    assert training.options().deterministic is False
    evaluation = input_fn(output, split="eval", batch_size=32, image_size=SIZE)
    assert evaluation.element_spec[0].shape == (None, *SIZE, 3)
    assert evaluation.options().deterministic is True
    assert labels_of(evaluation) == labels_of(eval_dataset(output, image_size=SIZE))


def test_paths_are_sources_too(pets):
    """A pathlib.Path, of a folder or in a list."""
    expected = labels_of(eval_dataset(pets, image_size=SIZE))
    assert labels_of(eval_dataset(Path(pets), image_size=SIZE)) == expected
    shards = sorted(Path(pets, "Split-eval").iterdir())
    assert labels_of(eval_dataset(shards, image_size=SIZE)) == expected
    assert sorted(load(Path(pets), image_size=SIZE)) == ["eval", "train"]


def test_patterns_find_the_counts_beside_them(output):
    """TFX's train_files: a list of patterns, whose dataset.json says how many and which classes."""
    files = [f"{output}/Split-train/*"]
    assert steps_per_epoch(files, 32) == 5
    one_hot = train_dataset(files, batch_size=8, image_size=SIZE, label_mode="one_hot")
    assert one_hot.element_spec[1] == tf.TensorSpec((8, 200), tf.float32)


def test_load(pets):
    """All splits at once: training shuffled and finite, the others in order."""
    found = load(pets, batch_size=16, image_size=SIZE)
    assert sorted(found) == ["eval", "train"]
    # Without a seed a batch may overtake another.
    assert sorted(len(labels) for _, labels in found["train"]) == [8, 16, 16]
    assert labels_of(found["eval"]) == labels_of(eval_dataset(pets, image_size=SIZE))
    assert found["validation"] is found["eval"]
    with pytest.raises(KeyError, match="test"):
        found["test"]
    with pytest.raises(UsageError, match="unknown option 'batchsize'; did you mean 'batch_size'"):
        load(pets, batchsize=16)
    with pytest.raises(SourceError, match=r"no dataset\.json here"):
        load("nowhere")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # what is called, what it says
        (lambda out: load(out, split="train"), "load reads all splits"),
        (lambda out: load([out]), r"source must be an output or its dataset\.json"),
        (lambda out: input_fn(None), r"source must be a path, or several patterns \(got None\)"),
        (lambda out: input_fn(out, split=["train"]), r"split must be a split's name"),
        (lambda out: input_fn(out, shuffle_buffer=2**63), "must be a number of 64 bits"),
        (
            lambda out: input_fn(
                out, batch_size=32, input_context=tf.distribute.InputContext(1, 0, 3)
            ),
            r"multiple of the 3 replicas \(got 32\); 33 is one",
        ),
        (lambda out: decode_images(PIXEL, SIZE, resize="centre_crop"), "resize must be one of"),
        (lambda out: decode_images(PIXEL, SIZE, decoder="Fast"), "decoder must be one of"),
        (lambda out: decode_images(PIXEL, SIZE, resize="random_crop"), "is for training"),
        (lambda out: decode_images(PIXEL, (0, 8)), "image_size must be"),
    ],
)
def test_wrong_calls(pets, call, message):
    """Whatever is wrong with a call is said in our words."""
    with pytest.raises(UsageError, match=message):
        call(pets)


def test_source_with_odd_names(pets, tmp_path):
    """A folder may be named like a pattern, and a pattern may have a slash too many."""
    folder = shutil.copytree(pets, tmp_path / "o[1]")
    assert len(labels_of(eval_dataset(str(folder), image_size=SIZE))) == 20
    assert reading_plan(f"{pets}//Split-eval/*", split="eval").examples == 20


def test_steps_are_those_of_the_dataset(pets):
    """In evaluation the short last batch counts, in training it is left out."""
    assert steps_per_epoch(pets, 16, split="eval") == 2
    assert eval_dataset(pets, batch_size=16, image_size=SIZE).cardinality() == 2
    assert steps_per_epoch(pets, 16) == 2
    assert steps_per_epoch(pets, 64, split="eval") == 1


def test_load_weighs_and_augments_only_training(pets):
    """What is for training does not change how a model is judged."""
    found = load(pets, batch_size=40, image_size=SIZE, weights="balanced", augment=Augmentation())
    assert len(found["train"].element_spec) == 3
    assert len(found["eval"].element_spec) == 2


def test_load_leaves_out_a_split_without_labels(partly_labelled, caplog):
    """A split of unlabelled images is no reason to refuse the others; it is said."""
    assert list(load(partly_labelled, batch_size=4, image_size=SIZE)) == ["train"]
    assert "split 'eval' has no labelled example" in caplog.text
    found = load(partly_labelled, batch_size=4, image_size=SIZE, label_mode="none")
    assert [len(images) for images in found["eval"]] == [4]


def test_load_of_written_examples(tmp_path):
    """What recordgen.write wrote is loaded as dicts of its features."""
    out = str(tmp_path / "out")
    for split in ("train", "eval"):
        write([{"x": number} for number in range(3)], out, split=split, shards=1)
    assert {
        split: [batch["x"].numpy().tolist() for batch in data]
        for split, data in load(out, batch_size=2).items()
    } == {"train": [[0, 1], [2]], "eval": [[0, 1], [2]]}


def test_load_shuffles_anew(pets):
    """Each pass over the training split has another order, and all of it."""
    training = load(pets, batch_size=40, image_size=SIZE, extras=["image/source_id"])["train"]
    first, second = ids(training), ids(training)
    assert sorted(first) == sorted(second)
    assert first != second


@pytest.mark.parametrize(
    ("resize", "augment"),
    [("stretch", None), ("fit", None), ("center_crop", "default"), ("random_crop", None)],
)
def test_uint8_agrees_with_float32(pets, resize, augment):
    """The same pixels, rounded: one type for speed, the other for precision."""
    options = dict(batch_size=40, image_size=(7, 9), resize=resize, seed=1)
    if augment is None:
        options["augment"] = None
    floats, whole = (
        next(iter(train_dataset(pets, dtype=dtype, **options)))[0] for dtype in ("float32", "uint8")
    )
    assert (floats.dtype, whole.dtype) == (tf.float32, tf.uint8)
    assert floats.numpy().max() <= 1 + 1e-6
    np.testing.assert_allclose(floats * 255, tf.cast(whole, tf.float32), atol=0.51)


@pytest.mark.parametrize(
    ("read", "knobs"),
    [
        (train_dataset, dict(cycle_length=2)),
        (train_dataset, dict(num_parallel_calls=1)),
        (train_dataset, dict(prefetch=1)),
        (train_dataset, dict(threads=1)),
        (train_dataset, dict(autotune=True)),
        (train_dataset, dict(deterministic=True)),
        (train_dataset, dict(shuffle_buffer=3)),
        (eval_dataset, dict(deterministic=False)),
        (eval_dataset, dict(shuffle_buffer=3, cycle_length=2, num_parallel_calls=1)),
    ],
    ids=str,
)
def test_knobs_change_speed_only(pets, read, knobs):
    """However it is read, an epoch has every example once."""
    options = dict(batch_size=8, image_size=SIZE, split="train", extras=["image/source_id"])
    dataset = read(pets, epochs=1, drop_remainder=False, **knobs, **options)
    assert sorted(ids(dataset)) == sorted(ids(eval_dataset(pets, **options)))


def test_knobs_reach_tf_data(pets):
    """tf.data is told what was asked for."""
    found = train_dataset(
        pets, batch_size=8, image_size=SIZE, threads=3, autotune=True, deterministic=True
    ).options()
    assert found.threading.private_threadpool_size == 3
    assert found.autotune.enabled is True
    assert found.deterministic is True


def test_seed_decides_the_augmentation(pets):
    """The same seed gives the same pixels in the same order, another one others."""

    def first_two(seed):
        dataset = train_dataset(pets, batch_size=40, image_size=SIZE, seed=seed, epochs=2)
        return np.stack([images.numpy() for images, _ in dataset])

    np.testing.assert_array_equal(first_two(1), first_two(1))
    assert not np.array_equal(first_two(1), first_two(2))


def test_map_functions(pets):
    """map_example changes one example, before batching; map_batch a batch; shapes stay known."""

    def larger(image, label):
        return tf.image.resize(image, (2, 2)), label + 100

    dataset = train_dataset(
        pets,
        batch_size=8,
        image_size=SIZE,
        map_example=larger,
        map_batch=lambda images, labels: (images, {"label": labels, "mean": labels * 0}),
    )
    images, targets = dataset.element_spec
    assert images == tf.TensorSpec((8, 2, 2, 3), tf.float32)
    assert targets["label"] == tf.TensorSpec((8,), tf.int64)
    labels = next(iter(dataset))[1]["label"].numpy()
    assert set(labels) <= {100, 101, 102, 103}


def test_a_condition_that_nothing_meets(pets):
    """It ends, though training is endless otherwise."""
    dataset = train_dataset(pets, image_size=SIZE, predicate=lambda _: tf.constant(False))
    assert list(dataset) == []


def model():
    layers = tf.keras.layers
    built = tf.keras.Sequential([layers.Flatten(), layers.Dense(200)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    built.compile(optimizer="sgd", loss=loss)
    return built


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_fit_on_endless_data(pets, weights):
    """With steps_per_epoch there is always enough, and Keras does not complain."""
    training = train_dataset(pets, batch_size=16, image_size=SIZE, weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = model().fit(
            training,
            steps_per_epoch=steps_per_epoch(pets, 16),
            validation_data=eval_dataset(pets, batch_size=16, image_size=SIZE),
            epochs=3,
            shuffle=False,  # of arrays; newer Keras warns of its own default
            verbose=0,
        )
    assert len(history.history["val_loss"]) == 3


def test_fit_on_finite_data(pets):
    """What load gives is as long as it says, in every epoch."""
    data = load(pets, batch_size=16, image_size=SIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = model().fit(
            data["train"],
            validation_data=data["validation"],
            epochs=3,
            shuffle=False,
            verbose=0,
        )
    assert len(history.history["loss"]) == 3


def test_truncated_shard(pets, tmp_path):
    """A shard that is not as long as dataset.json says is named before training starts."""
    copy = shutil.copytree(pets, tmp_path / "copy")
    shard = next((copy / "Split-train").iterdir())
    size = shard.stat().st_size
    shard.write_bytes(shard.read_bytes()[:-1])
    message = rf"{shard.name}: {size - 1:,} bytes, but dataset.json says {size:,}: it was cut or"
    with pytest.raises(RecordError, match=message):
        train_dataset(copy, image_size=SIZE)
    shard.unlink()
    with pytest.raises(SourceError, match=f"{shard.name}: no such file, though dataset.json lists"):
        train_dataset(copy, image_size=SIZE)


# Reads epochs of training and prints how much memory the process has after each, in MB.
EPOCHS = textwrap.dedent("""
    import json, sys
    from recordgen import train_dataset
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096 / 1e6
    dataset = iter(train_dataset(sys.argv[1], batch_size=20, image_size=(64, 64)))
    found = []
    for _ in range(4):
        for _ in range(200):
            next(dataset)
        found.append(resident())
    print(json.dumps(found))
""")


@pytest.mark.slow
def test_memory_stays_flat(tmp_path):
    """Hundreds of epochs later there is no more in memory than after the first ones.

    4000 images of 49 kB, as float32, pass from one measurement to the next: 200 MB, of which 10
    may stay.
    """
    source = write_records(tmp_path / "a.rec", map(pet, range(100)))
    done = run_python("-c", EPOCHS, source)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found[3] - found[1] < 10, found
