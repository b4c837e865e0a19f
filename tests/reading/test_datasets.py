import itertools
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen import eval_dataset, features, input_fn, load, steps_per_epoch, train_dataset, write
from recordgen.errors import DataError, RecordError, SourceError, UsageError
from recordgen.reading import Tuning, decode_images, find_shards, parsing_spec, reading_plan
from tests.conftest import convert_lines, noise, run_python
from tests.reading.conftest import case_name, ids

TRAIN = [n for n in range(200) if n % 5]
EVAL = [n for n in range(200) if n % 5 == 0]
SIZE = (4, 6)
PIXEL = tf.io.encode_png(tf.zeros((1, 1, 3), tf.uint8))[None]


def labels_of(dataset, batches=None):
    return [int(label) for _, labels in itertools.islice(dataset, batches) for label in labels]


def test_eval_gives_every_record_once_in_order(any_output):
    """Each pass has the same order, and the last batch the rest."""
    dataset = eval_dataset(any_output, batch_size=7, image_size=SIZE)
    first = labels_of(dataset)
    assert sorted(first) == EVAL
    assert labels_of(dataset) == first
    assert [len(labels) for _, labels in dataset] == [7] * 5 + [5]
    assert dataset.cardinality().numpy() == 6


def test_images_are_floats_of_the_requested_size_with_their_labels(output):
    """Batches have pixels from 0 to 1 and whole numbers as labels."""
    dataset = train_dataset(output, batch_size=8, image_size=SIZE, augment=None)
    assert dataset.element_spec == (
        tf.TensorSpec((None, 4, 6, 3), tf.float32),
        tf.TensorSpec((None,), tf.int64),
    )
    images, labels = next(iter(dataset))
    expected = np.zeros((8, 4, 6, 3), np.float32)
    expected[..., 0] = labels.numpy()[:, None, None] / 255
    np.testing.assert_allclose(images, expected, atol=1e-6)


def test_train_sees_every_record_once_per_epoch(any_output):
    """Each epoch has every record, in another order."""
    dataset = train_dataset(any_output, batch_size=40, image_size=SIZE)
    first, second = labels_of(dataset), labels_of(dataset)
    assert sorted(first) == sorted(second) == TRAIN
    assert first != second
    assert first != TRAIN


def test_endless_epochs_have_full_batches(output):
    """A batch may hold the end of an epoch and the start of the next; no batch overtakes it."""
    how = dict(image_size=SIZE, epochs="endless", tuning=Tuning(deterministic=False))
    dataset = train_dataset(output, batch_size=64, **how)
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert dataset.element_spec[0].shape[0] == 64
    labels = labels_of(dataset, 5)
    assert (len(labels), sorted(labels[:160]), sorted(labels[160:])) == (320, TRAIN, TRAIN)
    larger = train_dataset(output, batch_size=161, image_size=SIZE, epochs="endless")
    assert len(labels_of(larger, 2)) == 322


def test_an_epoch_ends_before_the_next_one_begins(tmp_path):
    """Without a seed, no quick batch of the next epoch overtakes a slow one."""
    for name, side in (("slow", 3000), ("quick", 4)):
        noise(side, side).save(tmp_path / f"{name}.png")
    lines = ["TRAIN,slow.png,slow", "TRAIN,quick.png,quick"]
    out, tuning = convert_lines(tmp_path, lines, lint="-ALL"), Tuning(num_parallel_calls=4)
    batches = train_dataset(out, batch_size=1, image_size=4, epochs=16, tuning=tuning)
    labels = [int(label[0]) for _, label in batches]
    assert [sum(labels[at : at + 2]) for at in range(0, 32, 2)] == [1] * 16


@pytest.mark.parametrize("read", [train_dataset, eval_dataset, input_fn, recordgen.read])
def test_epochs_are_finite_by_default(output, read):
    """Only ``endless`` has no end."""
    options = {"split": "train", "batch_size": 40}
    options |= {} if read is recordgen.read else {"image_size": SIZE}
    assert read(output, **options).cardinality() == 4 == len(list(read(output, **options)))
    assert read(output, epochs=3, **options).cardinality() == 12
    endless = read(output, epochs="endless", **options)
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY
    with pytest.raises(UsageError, match=r"epochs.*'endless'"):
        read(output, epochs=None, **options)


def test_a_folder_its_dataset_json_a_pattern_and_paths_are_the_same_source(any_output):
    """Texts and pathlib's paths name the same records."""
    folder = Path(any_output)
    shards = sorted(folder.glob("Split-eval/*"))
    places = [any_output, folder, f"{folder}/dataset.json", [f"{folder}/Split-eval/*"], shards]
    expected, *others = (labels_of(eval_dataset(place, image_size=SIZE)) for place in places)
    assert others == [expected] * 4


@pytest.mark.parametrize("as_pattern", [False, True], ids=["dataset.json", "pattern"])
def test_unlabelled_records_are_skipped_and_batches_full(partly_labelled, as_pattern):
    """Skipped records leave no gap in a batch."""
    source = [f"{partly_labelled}/Split-train/*"] if as_pattern else partly_labelled
    in_order = labels_of(eval_dataset(source, batch_size=5, image_size=SIZE, split="train"))
    labels = labels_of(train_dataset(source, batch_size=7, image_size=SIZE, epochs=2))
    assert sorted(in_order) == sorted(labels[:7]) == sorted(labels[7:]) == list(range(7))


def test_steps_are_the_batches_of_labelled_examples(output, partly_labelled):
    """Steps count what is read, not what is stored."""
    assert steps_per_epoch(output, 32) == 5
    assert steps_per_epoch(output, 33) == 5
    assert steps_per_epoch(output, 33, tuning=Tuning(drop_remainder=True)) == 4
    assert steps_per_epoch(output, 40, split="eval") == 1
    assert steps_per_epoch(partly_labelled, 7) == 1


def test_the_parsing_spec_has_every_feature_of_the_task(any_output):
    """TensorFlow parses a record with it."""
    shards = find_shards(any_output, "eval")
    compression = "GZIP" if shards.files[0].path.endswith(".gz") else ""
    record = next(iter(tf.data.TFRecordDataset(shards.files[0].path, compression)))
    parsed = tf.io.parse_single_example(record, parsing_spec())
    assert set(parsed) == set(features.IMAGE_CLASSIFICATION)
    number = int(parsed[features.IMAGE_CLASS_LABEL])
    dataset = recordgen.read_dataset(any_output)
    assert parsed[features.IMAGE_CLASS_TEXT].numpy().decode() == dataset.labels[number]
    assert parsed[features.IMAGE_SOURCE_ID].numpy().decode().endswith(f"{number}.png")
    size = (parsed[features.IMAGE_HEIGHT], parsed[features.IMAGE_WIDTH])
    assert size == (4 + number % 5, 2 * (4 + number % 5))


def test_input_fn_shuffles_training_and_keeps_the_order_of_evaluation(output):
    """The split decides, by any of its names."""
    assert input_fn(output, batch_size=32, image_size=SIZE).options().deterministic is False
    assert input_fn(output, split="Training", image_size=SIZE).options().deterministic is False
    evaluation = input_fn(output, split="val", batch_size=32, image_size=SIZE)
    assert evaluation.element_spec[0].shape == (None, *SIZE, 3)
    assert evaluation.options().deterministic is True
    assert labels_of(evaluation) == labels_of(eval_dataset(output, image_size=SIZE))


def test_load_returns_all_splits_with_training_shuffled(pets):
    """Evaluation keeps its order."""
    found = load(pets, batch_size=16, image_size=SIZE)
    assert sorted(found) == ["eval", "train"]
    # Without a seed one batch may overtake another.
    assert sorted(len(labels) for _, labels in found["train"]) == [8, 16, 16]
    assert labels_of(found["train"]) != labels_of(found["train"])
    assert labels_of(found["eval"]) == labels_of(eval_dataset(pets, image_size=SIZE))
    with pytest.raises(UsageError, match=r"'batchsize'.*'batch_size'"):
        load(pets, batchsize=16)
    with pytest.raises(SourceError, match=r"dataset\.json"):
        load("nowhere")


def test_the_first_batch_needs_no_keras(pets):
    """Keras is imported when a program uses it, by any of its names; no garbage is searched for."""
    code = (
        "import os; os.environ.pop('TF_USE_LEGACY_KERAS', '')\n"  # TFX sets it
        "import gc, sys, recordgen.reading; seen = gc.get_stats()[2]['collections']\n"
        f"next(iter(recordgen.load({str(pets)!r})['train']))\n"
        "print('keras.src' in sys.modules, seen, gc.isenabled(), gc.get_freeze_count())\n"
        "from tensorflow.keras import layers; import keras, tensorflow as tf\n"
        "print(layers.Dense is keras.layers.Dense is tf.keras.layers.Dense)"
    )
    assert run_python("-c", code).stdout.split() == ["False", "0", "True", "0", "True"]


@pytest.mark.parametrize("name", ["val", "VALIDATION"])
def test_every_function_knows_every_name_of_a_split(pets, name):
    """``val`` and ``VALIDATION`` are eval at every door."""
    found = load(pets, image_size=SIZE)
    assert name in found
    assert found[name] is found.get(name) is found["eval"]
    assert reading_plan(pets, split=name).examples == 20
    assert steps_per_epoch(pets, 8, split=name) == 3
    assert eval_dataset(pets, split=name, image_size=SIZE, batch_size=8).cardinality() == 3


@pytest.mark.parametrize("name", ["TEST", "holdout"])
def test_a_missing_split_is_a_key_error_that_lists_the_others(pets, name):
    """It is a DataError, too."""
    found = load(pets, image_size=SIZE)
    assert name not in found
    assert found.get(name) is None
    message = rf"{pets}: .* '{name}' .*train, eval"
    for call in (found.__getitem__, lambda split: eval_dataset(pets, split=split)):
        with pytest.raises(DataError, match=message) as error:
            call(name)
        assert isinstance(error.value, KeyError)


def test_load_and_its_datasets_have_class_names(pets, topics_of_two, partly_labelled):
    """Names are in the order of their numbers."""
    names = ["ant", "cat", "dog", "owl"]
    found = load(pets, image_size=SIZE)
    assert found.class_names == found["train"].class_names == found["val"].class_names == names
    chosen = eval_dataset(pets, image_size=SIZE, vocabulary=["owl", "cat", "dog", "ant"])
    assert chosen.class_names == ["owl", "cat", "dog", "ant"]
    for read in (train_dataset, input_fn):
        assert read(topics_of_two, split="train").class_names == ["bad", "good"]
    assert len(load(partly_labelled, image_size=SIZE).class_names) == 7


@pytest.fixture(scope="module")
def topics_of_two(tmp_path_factory):
    """Ten texts of two classes."""
    lines = [f"TRAIN,a text {n},{'good' if n % 2 else 'bad'}" for n in range(10)]
    return convert_lines(tmp_path_factory.mktemp("topics"), lines, task="text_classification")


# label mode, spec of a batch; test_targets.py has the other modes
LABEL_MODES = [
    ("binary", (tf.TensorSpec((None,), tf.string), tf.TensorSpec((None, 1), tf.float32))),
    (None, tf.TensorSpec((None,), tf.string)),
]


@pytest.mark.parametrize(("mode", "spec"), LABEL_MODES)
def test_label_modes_mean_what_they_mean_in_keras(topics_of_two, mode, spec):
    """``binary`` is a float in a row of its own, None has no label."""
    data = eval_dataset(topics_of_two, split="train", label_mode=mode)
    assert data.element_spec == spec
    if mode == "binary":
        [(texts, labels)] = data
        expected = [[int(text.numpy().split()[-1]) % 2] for text in texts]
        assert labels.numpy().tolist() == expected


OF_THREE = tf.distribute.InputContext(1, 0, 3)


# call, message
WRONG_ARGUMENTS = [
    (lambda out: load(out, split="train"), "split"),
    (lambda out: eval_dataset(out, label_mode="binary"), r"'binary'.*'ant'"),
    (lambda out: eval_dataset(out, image_size=SIZE, columns="image=a"), "columns.* other tools'"),
    (lambda out: load(3), "source"),
    (lambda out: input_fn(None), "source"),
    (lambda out: input_fn(out, split=["train"]), "split"),
    (lambda out: input_fn(out, batch_size=2**63), "batch_size"),
    (lambda out: input_fn(out, batch_size=32, input_context=OF_THREE), "32"),
    (lambda out: decode_images(PIXEL, SIZE, resize="centre_crop"), "resize"),
    (lambda out: decode_images(PIXEL, SIZE, decoder="Fast"), "decoder"),
    (lambda out: decode_images(PIXEL, SIZE, resize="random_crop"), "resize"),
    (lambda out: decode_images(PIXEL, (0, 8)), "image_size"),
    (lambda out: train_dataset(out, weights="balanced", label_mode="multi_hot"), "weights"),
    (lambda out: train_dataset(out, columns=["image/hight"]), "'image/hight'"),
    # dropping the rest must not drop everything
    (lambda out: train_dataset(out, batch_size=41, tuning=Tuning(drop_remainder=True)), "40"),
    (lambda out: steps_per_epoch(out, 41, tuning=Tuning(drop_remainder=True)), "40"),
]


@pytest.mark.parametrize(("call", "message"), WRONG_ARGUMENTS)
def test_wrong_arguments_are_our_errors(pets, call, message):
    """The error names the argument."""
    with pytest.raises(UsageError, match=message):
        call(pets)


def test_a_folder_named_like_a_pattern_is_read(pets, tmp_path):
    """Its records are read, and those of another folder that matches are not."""
    folder = shutil.copytree(pets, tmp_path / "o[1]")
    assert len(labels_of(eval_dataset(str(folder), image_size=SIZE))) == 20
    for name in ("o?1", "o11"):
        shutil.copytree(f"{pets}/Split-eval", tmp_path / name / "Split-eval")
    assert find_shards(str(tmp_path / "o?1"), split="eval").examples == 20
    assert reading_plan(f"{pets}//Split-eval/*", split="eval").examples == 20


def test_load_weighs_and_augments_only_training(pets):
    """Evaluation has neither weights nor changes."""
    found = load(pets, batch_size=40, image_size=SIZE, weights="balanced", augment="photo")
    assert len(found["train"].element_spec) == 3
    assert len(found["eval"].element_spec) == 2


def test_load_gives_written_examples_as_dicts(tmp_path):
    """Examples from Python have no label."""
    out = str(tmp_path / "out")
    for split in ("train", "eval"):
        write([{"x": number} for number in range(3)], out, split=split, shards=1)
    data = load(out, batch_size=2).items()
    found = {split: [batch["x"].numpy().tolist() for batch in each] for split, each in data}
    assert found["eval"] == [[0, 1], [2]]
    assert sorted(itertools.chain(*found["train"])) == [0, 1, 2]


@pytest.mark.parametrize(("resize", "augment"), [("fit", None), ("stretch", "photo")])
def test_uint8_pixels_are_rounded_float32_pixels(pets, resize, augment):
    """Whole levels differ by rounding alone."""
    options = dict(batch_size=40, image_size=(7, 9), resize=resize, augment=augment, seed=1)
    data = (train_dataset(pets, scale=scale, **options) for scale in ("auto", "uint8"))
    floats, whole = (next(iter(each))[0] for each in data)
    assert (floats.dtype, whole.dtype) == (tf.float32, tf.uint8)
    assert floats.numpy().max() <= 1 + 1e-6
    np.testing.assert_allclose(floats * 255, tf.cast(whole, tf.float32), atol=0.51)


# read, knobs
TUNINGS = [
    (train_dataset, dict(tuning=Tuning(cycle_length=2, num_parallel_calls=1, prefetch=1))),
    (train_dataset, dict(tuning=Tuning(threads=1, deterministic=True, shuffle_buffer=3))),
    (train_dataset, dict(tuning=Tuning(autotune=True))),
    (train_dataset, dict(shuffle=False)),
    (eval_dataset, dict(tuning=Tuning(deterministic=False))),
    (eval_dataset, dict(shuffle=True, tuning=Tuning(shuffle_buffer=3, cycle_length=2))),
]


@pytest.mark.parametrize(("read", "knobs"), TUNINGS, ids=case_name)
def test_tuning_changes_no_example_of_an_epoch(pets, read, knobs):
    """Speed is all that it changes."""
    options = dict(batch_size=8, image_size=SIZE, split="train", columns=["image/source_id"])
    dataset = read(pets, **knobs, **options)
    assert sorted(ids(dataset)) == sorted(ids(eval_dataset(pets, **options)))


def test_tuning_sets_the_options_of_tf_data(pets):
    """Threads, autotuning and order arrive."""
    tuning = Tuning(threads=3, autotune=True, deterministic=True)
    found = train_dataset(pets, image_size=SIZE, tuning=tuning).options()
    assert found.threading.private_threadpool_size == 3
    assert found.autotune.enabled is True
    assert found.deterministic is True


def test_a_seed_decides_order_and_augmentation_whatever_tensorflows_seed(pets):
    """Epochs differ, runs do not."""
    found = []
    for seed, of_tensorflow in ((1, None), (1, 5), (1, 6), (2, 5)):
        tf.random.set_seed(of_tensorflow)
        how = dict(batch_size=40, image_size=SIZE, augment=dict(crop=0.5))
        dataset = train_dataset(pets, seed=seed, **how)
        # Orders differ between epochs, but not between runs.
        epochs = [images.numpy() for _ in range(2) for images, _ in dataset]
        assert not np.array_equal(*epochs)
        found.append(np.stack(epochs))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert not np.array_equal(found[1], found[3])


def test_a_predicate_that_rejects_all_gives_an_empty_dataset(pets):
    """Endless epochs of nothing end."""
    none = dict(only=lambda _: tf.constant(False), image_size=SIZE)
    assert list(train_dataset(pets, epochs="endless", seed=1, **none)) == []


def fitted(training, validation, **more):
    """Train a model for three epochs without a warning; return the losses."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Flatten(), layers.Dense(200)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, jit_compile=False)
    # shuffle is for arrays; newer Keras warns about its own default
    settings = dict(validation_data=validation, epochs=3, shuffle=False, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(training, **settings, **more).history


def test_fit_takes_endless_data_with_steps_and_whole_epochs(pets):
    """Keras takes the steps, and ``load``'s datasets of a declared length, without a warning."""
    options = dict(batch_size=16, image_size=SIZE)
    training = train_dataset(pets, epochs="endless", weights="balanced", **options)
    data = load(pets, **options)
    losses = fitted(training, data["validation"], steps_per_epoch=steps_per_epoch(pets, 16))
    assert len(losses["val_loss"]) == len(fitted(*data.values())["loss"]) == 3


def test_a_truncated_shard_is_named_before_training(pets, tmp_path):
    """Its size is compared with dataset.json."""
    copy = shutil.copytree(pets, tmp_path / "copy")
    shard = next((copy / "Split-train").iterdir())
    size = shard.stat().st_size
    shard.write_bytes(shard.read_bytes()[:-1])
    message = rf"{shard.name}: {size - 1:,} .*dataset\.json .*{size:,}"
    with pytest.raises(RecordError, match=message):
        train_dataset(copy, image_size=SIZE)
    shard.unlink()
    with pytest.raises(SourceError, match=rf"dataset\.json .*{shard.name}"):
        train_dataset(copy, image_size=SIZE)


def test_load_says_that_a_split_has_no_label(tmp_path, caplog):
    """It is left out with a warning, unless labels are not read."""
    lines = [f"TRAIN,Good and cheap {n}." for n in range(3)]
    lines += [f"TEST,Bad {n}.,no" for n in range(2)]
    data = load(convert_lines(tmp_path, lines, task="text_classification"))
    assert list(data) == ["test"]
    assert "split 'train'" in caplog.text
    for missing in ("TRAIN", "eval"):
        with pytest.raises(KeyError, match="test"):
            data[missing]
    assert list(load(tmp_path / "out", label_mode=None)) == ["train", "test"]
