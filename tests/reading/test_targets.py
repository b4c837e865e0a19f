import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, read_dataset, steps_per_epoch, train_dataset
from recordgen.errors import RecordError, SourceError, UsageError
from recordgen.reading import Tuning, named_errors, reading_plan
from tests.reading.conftest import CLASSES, example, ids, pet, write_records

SIZE = dict(batch_size=4, image_size=(4, 6))
WITH_IDS = dict(**SIZE, columns=["image/source_id"])
TRAIN = [n for n in range(60) if n % 3]
EVAL = [n for n in range(60) if n % 3 == 0]


def numbers(dataset):
    """Return the images' numbers, which are the ends of their source ids."""
    return [int(name.removesuffix(".jpg")[-2:]) for name in ids(dataset)]


def joined(dataset, part=1):
    return np.concatenate([np.asarray(batch[part]) for batch in dataset])


@pytest.fixture(params=["ours", "foreign"])
def source(request, pets, tmp_path):
    """The pets of eval, from an output of Recordgen and from another tool."""
    if request.param == "ours":
        return [f"{pets}/Split-eval/*"]
    return [write_records(tmp_path / "a.rec", map(pet, EVAL))]


# label mode, labels of the classes 0 and 3 of 4
MODES = [
    ("int", [0, 3]),
    ("categorical", [[1, 0, 0, 0], [0, 0, 0, 1]]),
    ("multi_hot", [[1, 0, 0, 0], [0, 0, 0, 1]]),
]


@pytest.mark.parametrize(("mode", "expected"), MODES)
def test_classes_are_numbers_or_one_hot_rows(source, mode, expected):
    """Labels have Keras's modes, for our records and those of other tools."""
    dataset = eval_dataset(source, split="eval", label_mode=mode, vocabulary=CLASSES, **WITH_IDS)
    found = dict(zip(numbers(dataset), joined(dataset).tolist(), strict=True))
    assert sorted(found) == EVAL
    assert [found[0], found[3]] == expected
    assert dataset.element_spec[1].dtype == (tf.int64 if mode == "int" else tf.float32)


def test_shards_of_a_class_may_be_missing(pets_by_label, tmp_path):
    """The other classes are read with their numbers, by ``only`` or by the files that are left."""
    out = shutil.copytree(pets_by_label, tmp_path / "out")
    shards = read_dataset(out).splits["train"].shards
    [lost] = [shard.file for shard in shards if shard.label == CLASSES[0]]
    (out / lost).unlink()
    expected = [n for n in TRAIN if n % 4]
    for place, only in ((out, CLASSES[1:]), (f"{out}/Split-train/*", None)):
        data = eval_dataset(place, split="train", only=only, **WITH_IDS)
        assert data.class_names == list(CLASSES)
        found = dict(zip(numbers(data), joined(data).tolist(), strict=True))
        assert found == {number: number % 4 for number in expected}
        assert steps_per_epoch(place, 4, only=only) == -(-len(expected) // 4)
    with pytest.raises(SourceError, match=Path(lost).name):
        train_dataset(out, **SIZE)


def test_features_of_labels_can_be_extras(source):
    """The features of labels can be further features, too."""
    names = ["image/class/label", "image/class/text"]
    for _, labels, extras in eval_dataset(source, split="eval", columns=names, **SIZE):
        assert extras["image/class/label"].numpy().tolist() == labels.numpy().tolist()
        texts = [CLASSES[number].encode() for number in labels]
        assert extras["image/class/text"].numpy().tolist() == texts


@pytest.mark.parametrize(
    ("mode", "cache", "drop"),
    [("int", None, True), ("categorical", "memory", True), ("multi_hot", None, False)],
)
def test_all_dimensions_of_full_batches_are_known(pets, mode, cache, drop):
    """Shapes are known as far as batches are full."""
    weights = None if mode == "multi_hot" else "balanced"
    options = dict(weights=weights, cache=cache, tuning=Tuning(drop_remainder=drop), **WITH_IDS)
    dataset = train_dataset(pets, label_mode=mode, **options)
    images, labels, *of_weights, extras = dataset.element_spec
    batch = 4 if drop else None
    of_one = tf.TensorSpec((batch,), tf.int64)
    assert images == tf.TensorSpec((batch, 4, 6, 3), tf.float32)
    assert labels == (of_one if mode == "int" else tf.TensorSpec((batch, 4), tf.float32))
    assert of_weights == ([tf.TensorSpec((batch,), tf.float32)] if weights else [])
    assert extras == {"image/source_id": tf.TensorSpec((batch,), tf.string)}


@pytest.mark.parametrize("by_label", [False, True], ids=["mixed", "by label"])
def test_only_requested_classes_are_read_and_counted(pets, pets_by_label, by_label):
    """only reads and counts the examples of its classes."""
    source = pets_by_label if by_label else pets
    options = dict(only={"cat", "dog"}, **WITH_IDS)
    dataset = eval_dataset(source, split="train", **options)
    assert sorted(numbers(dataset)) == [n for n in TRAIN if n % 4 in (1, 2)]
    assert set(joined(dataset)) == {1, 2}
    assert steps_per_epoch(source, 4, only={"cat", "dog"}) == 20 // 4
    train = train_dataset(source, augment=None, **options)
    assert sorted(numbers(train)) == sorted(numbers(dataset))


def test_a_subset_opens_only_its_files(pets_by_label, tmp_path):
    """Of shards by label, only those of the requested classes are opened."""
    source = str(tmp_path / "copy")
    shutil.copytree(pets_by_label, source)
    shards = read_dataset(source).splits["train"].shards
    (own,) = (shard.file for shard in shards if shard.label == "dog")
    assert reading_plan(source, only={"dog"}).files == (f"{source}/{own}",)
    for shard in shards:
        if shard.file != own:  # the same length, but without a valid record
            Path(source, shard.file).write_bytes(bytes(shard.bytes))
    found = numbers(eval_dataset(source, split="train", only={"dog"}, **WITH_IDS))
    assert sorted(found) == [n for n in TRAIN if n % 4 == 2]
    with pytest.raises(RecordError):
        list(eval_dataset(source, split="train", **SIZE))


def test_classes_mix_though_files_do_not(pets_by_label):
    """The first batch of shards by label holds all classes."""
    dataset = train_dataset(pets_by_label, batch_size=20, image_size=(4, 6), seed=1)
    assert set(next(iter(dataset))[1].numpy()) == {0, 1, 2, 3}


def test_the_vocabulary_renumbers_classes(source):
    """vocabulary numbers classes by their place in it."""
    order = ["owl", "cat", "dog", "ant"]
    dataset = eval_dataset(source, split="eval", vocabulary=order, **WITH_IDS)
    found = dict(zip(numbers(dataset), joined(dataset), strict=True))
    assert {n: order[label] for n, label in found.items()} == {n: CLASSES[n % 4] for n in EVAL}


def test_classes_that_are_not_read_need_no_place_in_the_vocabulary(source):
    """The vocabulary needs only the classes that are read."""
    dataset = eval_dataset(source, split="eval", vocabulary=["x", "dog"], only=["dog"], **WITH_IDS)
    assert sorted(numbers(dataset)) == [n for n in EVAL if n % 4 == 2]
    assert set(joined(dataset)) == {1}


def test_a_predicate_selects_records_by_their_features(source):
    """A predicate gets every feature of a record but the image."""

    def is_large(record):
        assert "image/encoded" not in record
        return tf.strings.regex_full_match(record["image/source_id"], ".*5[0-9].*")

    dataset = eval_dataset(source, split="eval", only=is_large, **WITH_IDS)
    assert sorted(numbers(dataset)) == [51, 54, 57]
    assert steps_per_epoch(source, 2, split="eval", only=is_large) == 2


def test_records_with_several_labels_need_a_label_mode(tmp_path):
    """Several labels are an error unless label_mode says how to read them."""
    records = [
        pet(n, **{"image/class/label": labels, "image/class/text": [b"x"] * len(labels)})
        for n, labels in enumerate([[2, 0], [1], [3, 3]])
    ] + [pet(4, **{"image/class/label": [], "image/class/text": []})]
    source = write_records(tmp_path / "a.rec", records)
    multi = eval_dataset(source, label_mode="multi_hot", **SIZE, vocabulary=["x", "y", "z"])
    assert joined(multi).tolist() == [[1, 0, 0]] * 3
    assert joined(eval_dataset(source, label_mode="int", **SIZE)).tolist() == [2, 1, 3]
    data = eval_dataset(source, **SIZE)
    with pytest.raises(RecordError, match="record 0"), named_errors(data):
        list(data)
    single = write_records(tmp_path / "b.rec", records[1:])
    assert joined(eval_dataset(single, **SIZE)).tolist() == [1, 3]
    texts = [{"text": b"a", "class/label": [1, 2], "class/text": [b"x", b"y"]}]
    source = write_records(tmp_path / "c.rec", map(example, texts))
    data = eval_dataset(source, task="text_classification", batch_size=1)
    with pytest.raises(RecordError), named_errors(data):
        list(data)


def test_any_feature_can_be_an_extra_in_the_shape_of_the_first_record(tmp_path):
    """Further features have the shape of the first record."""
    records = [pet(n, box=[0.5, 0.25 * n], year=2000 + n) for n in range(6)]
    source = write_records(tmp_path / "a.rec", records)
    dataset = eval_dataset(source, columns=["box", "year"], **SIZE)
    box, year = tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((None,), tf.int64)
    assert dataset.element_spec[2] == {"box": box, "year": year}
    assert [y for _, _, extras in dataset for y in extras["year"].numpy()] == [*range(2000, 2006)]


def test_classes_of_foreign_records_are_not_known(tmp_path):
    """One-hot labels of other tools need the number of classes."""
    source = write_records(tmp_path / "a.rec", map(pet, range(8)))
    with pytest.raises(UsageError, match="vocabulary"):
        train_dataset(source, label_mode="categorical", **SIZE)


# options, labels of a dog (5) that is also a cat (7)
REQUESTED = [
    (dict(only=["cat"]), [7]),
    (dict(only=["cat"], vocabulary=["cat", "dog"]), [0]),
    (dict(only=["cat"], vocabulary=["cat"], label_mode="multi_hot"), [[1]]),
    (dict(only=["cat"], vocabulary=["dog", "cat"], label_mode="multi_hot"), [[0, 1]]),
    (dict(only=["dog"], vocabulary=["dog"], label_mode="categorical"), [[1]]),
]


@pytest.mark.parametrize(("options", "expected"), REQUESTED)
def test_requested_labels_are_read_whatever_others_an_example_has(tmp_path, options, expected):
    """only chooses among the labels of an example."""
    both = {"image/class/label": [5, 7], "image/class/text": [b"dog", b"cat"]}
    other = {"image/class/label": [3], "image/class/text": [b"ant"]}
    source = write_records(tmp_path / "a.rec", [pet(0, **both), pet(1, **other)])
    assert joined(eval_dataset(source, **SIZE, **options)).tolist() == expected


def test_a_label_with_text_and_no_number_is_refused(tmp_path):
    """A text without its number is an error that names the record."""
    record = pet(0, **{"image/class/label": [], "image/class/text": [b"cat"]})
    source = write_records(tmp_path / "a.rec", [pet(1), record])
    data = eval_dataset(source, only=["cat", "ant", "bee", "dog"], **SIZE)
    with pytest.raises(RecordError, match="record 1"), named_errors(data):
        list(data)


def test_classes_are_selected_by_text_even_without_labels(tmp_path):
    """only chooses by text, without labels in the batch."""
    records = [pet(n, **{"image/class/text": [text]}) for n, text in enumerate([b"ant", b"cat"])]
    source = write_records(tmp_path / "a.rec", records)
    dataset = eval_dataset(source, label_mode=None, only=["cat"], **WITH_IDS)
    assert [part["image/source_id"].shape for _, part in dataset] == [(1,)]
