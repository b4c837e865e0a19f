"""Declared columns as batches: no image, several images, and one next to other columns."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import recordgen
from recordgen.errors import RecordError, UsageError
from recordgen.reading import named_errors
from recordgen.tables import columns
from tests.conftest import encoded, noise

SCHEMA = {"use": "split", "front": "image", "back": "image", "age": "int", "price": "float"}
SCHEMA |= {"place": "floats[2]", "marks": "floats", "note": "text"}
SCHEMA |= {"rest": "ignored", "breed": "label"}


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    """Eight rows of two gray images each, whose light is the row's number."""
    folder = tmp_path_factory.mktemp("images")
    rows = []
    for number in range(8):
        sides = []
        for side, light in (("front", 10 * number), ("back", 200 - number)):
            path = folder / f"{side}{number}.png"
            image = tf.io.encode_png(np.full((6 + number, 8, 3), light, np.uint8))
            path.write_bytes(image.numpy())
            sides.append(str(path))
        breed = ["cat", "dog", "cat", ""][number % 4]
        marks = [float(mark) for mark in range(number % 3)]
        values = [number, number / 2, [number, 1], marks, f"no {number}", "x", breed]
        rows.append(["TRAIN" if number < 6 else "TEST", *sides, *values])
    return pd.DataFrame(rows, columns=list(SCHEMA))


@pytest.fixture(scope="module")
def several(frame, tmp_path_factory):
    output = str(tmp_path_factory.mktemp("several") / "out")
    recordgen.convert(frame, output, schema=SCHEMA)
    return output


def in_order(output, **options):
    """Return one pass over train as one batch, sorted by age."""
    options = {"split": "train", "batch_size": 8, **options}
    [batch] = recordgen.eval_dataset(output, **options)
    columns = batch[0] if isinstance(batch, tuple) else batch
    order = np.argsort(columns["age"])

    def row(part):
        return tf.gather(part, order)

    return tf.nest.map_structure(row, batch, expand_composites=False)


def test_images_are_decoded_and_rows_without_label_skipped(several):
    """Every column has its type and values, and each image its size and light."""
    columns, label = in_order(several, image_size=(4, 5))
    assert list(columns) == ["front", "back", "age", "price", "place", "marks", "note"]
    ages = [0, 1, 2, 4, 5]
    assert columns["age"].numpy().tolist() == ages
    assert columns["price"].numpy().tolist() == [age / 2 for age in ages]
    assert columns["place"].numpy().tolist() == [[age, 1] for age in ages]
    assert columns["marks"].numpy().tolist() == [[0, 0], [0, 0], [0, 1], [0, 0], [0, 1]]
    assert columns["note"].numpy().tolist() == [b"no %d" % age for age in ages]
    for name, lights in (("front", [10 * age for age in ages]), ("back", [200 - a for a in ages])):
        assert (columns[name].dtype, columns[name].shape) == (tf.float32, (5, 4, 5, 3))
        assert columns[name][:, 3, 4, 0].numpy() == pytest.approx(np.array(lights) / 255)
    assert (label.dtype, label.numpy().tolist()) == (tf.int64, [0, 1, 0, 0, 1])
    assert recordgen.steps_per_epoch(several, 4, split="train") == 2


def test_options_select_columns_and_their_form(several):
    """Options choose columns, their padding, scale, label mode and weights."""
    of_images = dict(image_size=(4, 4), scale="uint8")
    of_labels = dict(label_mode="categorical", weights="balanced")
    options = dict(columns=["age", "marks", "back"], padding="ragged", **of_images, **of_labels)
    columns, label, weights = in_order(several, **options)
    assert list(columns) == ["age", "marks", "back"]
    assert columns["marks"].to_list() == [[], [0], [0, 1], [0], [0, 1]]
    assert columns["back"].dtype == tf.uint8
    assert columns["back"][0, 0, 0].numpy().tolist() == [200] * 3
    assert label.numpy().tolist() == [[1, 0], [0, 1], [1, 0], [1, 0], [0, 1]]
    assert weights.numpy() == pytest.approx([5 / 6, 5 / 4, 5 / 6, 5 / 6, 5 / 4])
    all_rows = in_order(several, columns=["age"], label_mode=None)
    assert all_rows["age"].numpy().tolist() == list(range(6))
    only, _ = in_order(several, columns=["age"], only=lambda x: x["age"] > 1)
    assert sorted(only["age"].numpy().tolist()) == [2, 4, 5]


def test_one_image_is_a_column_and_a_number_the_target(frame, tmp_path):
    """A number can be the target of rows with one image."""
    schema = {**SCHEMA, "back": "ignored", "price": "float_label", "breed": "text"}
    recordgen.convert(frame, tmp_path / "out", schema=schema)
    options = dict(columns=["front", "age", "breed"], image_size=(4, 4))
    columns, price = in_order(str(tmp_path / "out"), **options)
    assert columns["front"][:, 0, 0, 0].numpy() == pytest.approx(np.arange(6) * 10 / 255)
    assert (price.dtype, price.numpy().tolist()) == (tf.float32, [0, 0.5, 1, 1.5, 2, 2.5])
    assert list(in_order(str(tmp_path / "out"), columns=["age"], label_mode=None)) == ["age"]
    every, price = next(iter(recordgen.input_fn(tmp_path / "out", batch_size=2)))
    assert (list(every)[:2], price.dtype) == (["front", "age"], tf.float32)


def test_a_predicate_sees_every_column_but_the_image(frame, tmp_path):
    """A predicate sees scalars and lists of one row."""
    recordgen.convert(frame, tmp_path / "out", schema={**SCHEMA, "back": "ignored"})

    def only(row):
        return (row["age"] > 1) & (tf.size(row["marks"]) == 2) & (row["place"][1] == 1)

    options = dict(split="train", batch_size=8, image_size=(4, 4))
    [(images, labels)] = recordgen.eval_dataset(tmp_path / "out", only=only, **options)
    assert (images.shape, sorted(labels.numpy())) == ((2, 4, 4, 3), [0, 1])


def test_without_labels_batches_have_only_columns(tmp_path):
    """Rows without a label are columns alone, and options of labels are errors."""
    rows = pd.DataFrame({"use": ["TRAIN"] * 3, "x": [1, 2, 3], "text": ["a", "b", "c"]})
    recordgen.convert(rows, tmp_path / "out", schema={"use": "split", "x": "int", "text": "text"})
    batch = next(iter(recordgen.input_fn(tmp_path / "out", batch_size=3)))
    rows = sorted(zip(batch["x"].numpy(), batch["text"].numpy(), strict=True))
    assert rows == [(1, b"a"), (2, b"b"), (3, b"c")]
    for options in ({"label_mode": "int"}, {"only": ["a"]}, {"weights": "balanced"}):
        [name] = options
        with pytest.raises(UsageError, match=f"^{name} "):
            recordgen.input_fn(tmp_path / "out", **options)


def test_declared_columns_need_a_dataset_json(tmp_path):
    """Without dataset.json nobody knows the columns."""
    recordgen.write(iter([{"x": 1.0}]), str(tmp_path / "out"))
    with pytest.raises(UsageError, match=r"dataset\.json.*feature_spec"):
        recordgen.input_fn(tmp_path / "out", task="declared", columns=["x"])


# options, message
WRONG_OPTIONS = [
    ({"columns": ["size"]}, r"columns.*'size'"),
    ({"columns": ["breed"]}, r"columns.*'breed'"),
    ({"columns": []}, "columns"),
    ({"resize": "random_crop"}, r"resize.*center_crop"),
    ({"augment": None}, "augment"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS)
def test_a_wrong_option_is_an_error_before_reading(several, options, message):
    """A wrong option is an error that names it."""
    with pytest.raises(UsageError, match=message):
        recordgen.input_fn(several, batch_size=1, **options)


def test_an_unchecked_damaged_image_fails_when_it_is_read(tmp_path):
    """A damaged image fails only where its column is read, and is named."""
    (tmp_path / "good.png").write_bytes(encoded(noise(), "PNG"))
    (tmp_path / "bad.png").write_bytes(encoded(noise(), "PNG")[:60])
    sides = [str(tmp_path / name) for name in ("good.png", "bad.png")]
    rows = pd.DataFrame([["TRAIN", *sides]], columns=["use", "a", "b"])
    schema = {"use": "split", "a": "image", "b": "image"}
    recordgen.convert(rows, tmp_path / "out", schema=schema, check="none")
    good = recordgen.input_fn(tmp_path / "out", columns=["a"], batch_size=1, image_size=(4, 4))
    assert next(iter(good))["a"].shape == (1, 4, 4, 3)
    bad = recordgen.input_fn(tmp_path / "out", batch_size=1, image_size=(4, 4))
    with pytest.raises(RecordError, match="record 0"), named_errors(bad):
        next(iter(bad))


# the name of a column of images, whether it is a mask's
MASKS = [
    *(("mask", True), ("road_mask", True), ("maskPath", True), ("EncodedMasks", True)),
    *(("segmentation", True), ("seg_map", True), ("label_map", True), ("labelMap1", True)),
    *(("photo", False), ("masked", False), ("unmask", False), ("segment", False)),
    *(("label", False), ("map", False)),
]


@pytest.mark.parametrize(("name", "is_mask"), MASKS)
def test_the_names_of_masks(name, is_mask):
    """Names with the word for a mask, and no others, are names of masks."""
    assert columns.is_mask(name) == is_mask


def test_masks_are_not_read_as_images_but_as_bytes(frame, tmp_path, out):
    """Masks are not resized like photos: only their bytes can be read."""
    rows = frame.rename(columns={"back": "road_mask"})
    schema = {"use": "split", "front": "image", "road_mask": "image", "age": "int"}
    recordgen.convert(rows, out, schema=schema)
    for read in (recordgen.load, recordgen.input_fn, recordgen.reading.reading_plan):
        with pytest.raises(UsageError, match="'road_mask'"):
            read(out)
    found = recordgen.load(out, columns=["front", "age"], batch_size=6)["train"]
    assert sorted(next(iter(found))) == ["age", "front"]
    assert next(iter(recordgen.read(out)))["road_mask/encoded"].numpy()[1:4] == b"PNG"
    alone = tmp_path / "alone"
    recordgen.convert(rows, alone, schema={"use": "split", "road_mask": "image", "breed": "label"})
    with pytest.raises(UsageError, match="'road_mask'"):
        recordgen.load(alone)
