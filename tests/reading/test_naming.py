"""Records that cannot be read: the error has the file, the record, the source id and the remedy."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import tensorflow as tf

from recordgen import convert, eval_dataset, read, train_dataset
from recordgen.errors import DataError, RecordError
from recordgen.reading import named_errors
from recordgen.records.example import serialize_example
from tests.conftest import encoded, noise
from tests.reading.conftest import write_records

IMAGE = encoded(noise(), "PNG")
SIZE = {"image_size": (4, 4), "batch_size": 3}


def pet(number, **changed):
    features = {
        "image/encoded": IMAGE,
        "image/source_id": f"pet {number}".encode(),
        "image/class/label": number % 2,
        "image/class/text": f"class {number % 2}".encode(),
        **changed,
    }
    return b"".join(serialize_example({k: v for k, v in features.items() if v is not None}))


# record 7, options, message
WRONG = {
    "no Example": (b"\xff\xffroot:x:0", {}, r": it is no tf.train.Example"),
    "no image": (pet(7, **{"image/encoded": None}), {}, r"\(pet 7\): it has no feature 'image/enc"),
    "a type": (
        pet(7, **{"image/class/label": b"a"}),
        {},
        r"\(pet 7\): its feature 'image/class/la",
    ),
    "an image": (pet(7, **{"image/encoded": b"x"}), {}, r"\(pet 7\): its image does not decode"),
    "a label": (
        pet(7, **{"image/class/label": 9, "image/class/text": b"fox"}),
        {"vocabulary": ["class 0", "class 1"]},
        r"\(pet 7\): .*fox",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_a_record_that_cannot_be_read(tmp_path, name):
    """The record is named in the second file and in the middle of a batch, without its bytes."""
    record, options, message = WRONG[name]
    write_records(tmp_path / "a.rec", map(pet, range(5)))
    write_records(tmp_path / "b.rec", [*map(pet, range(7)), record, *map(pet, range(8, 12))])
    made = train_dataset if name == "a type" else eval_dataset
    dataset = made([str(tmp_path / "?.rec")], **options, **SIZE)
    with pytest.raises(RecordError, match=rf"b\.rec: record 7.*{message}.*; fix") as caught:
        list(dataset)
    assert "root:x" not in str(caught.value)


def test_records_of_any_kind(tmp_path):
    """read() names records, and so does named_errors() where other code iterates, such as Keras."""
    source = write_records(tmp_path / "a.rec", [pet(0), pet(1, **{"image/class/label": b"a"})])
    spec = {"image/class/label": tf.io.FixedLenFeature((), tf.int64)}
    dataset = read(source, feature_spec=spec)
    message = r"a\.rec: record 1 \(pet 1\): its feature 'image/class/label' holds string, and int64"
    with pytest.raises(RecordError, match=message):
        list(dataset)
    with pytest.raises(RecordError, match=message), named_errors(dataset):
        list(dataset.take(2))
    other = tf.errors.InvalidArgumentError(None, None, "not of a record")
    with pytest.raises(type(other), match="not of a record"), named_errors(dataset.take(1)):
        raise other


def test_a_file_that_is_damaged(tmp_path):
    """The error has the record's number and offset; with on_error, sound records are read."""
    path = write_records(tmp_path / "a.rec", map(pet, range(4)))
    size = os.path.getsize(path) // 4
    with open(path, "r+b") as file:
        file.seek(2 * size + size // 2)
        file.write(b"\xff\xfe\xfd")
    with pytest.raises(RecordError, match=r"a\.rec: record 2: damaged record at .*; restore"):
        list(eval_dataset(path, **SIZE))
    found = []
    both = [path, write_records(tmp_path / "b.rec", map(pet, range(4, 7)))]
    dataset = eval_dataset(both, on_error=found.append, extras=["image/source_id"], **SIZE)
    names = [name for *_, more in dataset for name in more["image/source_id"].numpy()]
    assert sorted(names) == [f"pet {number}".encode() for number in (0, 1, 3, 4, 5, 6)]
    [said] = found
    assert re.fullmatch(r".*a\.rec: 1 of 4 records lost: record 2: damaged .* offset \d+: .*", said)


def test_records_that_cannot_be_read_are_skipped(tmp_path, caplog):
    """Every kind of bad record is skipped, in one batch, and a truncated file ends early."""
    bad = [WRONG[name][0] for name in ("no Example", "no image", "an image", "a label")]
    bad.append(pet(11, **{"image/class/text": 3}))
    source = [
        write_records(tmp_path / "a.rec", [pet(0), *bad, pet(6), pet(7)]),
        write_records(tmp_path / "b.rec", map(pet, range(8, 12))),
    ]
    os.truncate(source[1], os.path.getsize(source[1]) - 5)
    options = {"vocabulary": ["class 0", "class 1"], "extras": ["image/source_id"], **SIZE}
    with pytest.raises(RecordError, match=r"b\.rec: truncated in the record at offset \d+"):
        eval_dataset(source, **options)
    dataset = eval_dataset(source, on_error="skip", epochs=2, **options)  # reported once
    names = [name for *_, more in dataset for name in more["image/source_id"].numpy()]
    assert names == [f"pet {number}".encode() for number in (0, 6, 7, 8, 9, 10)] * 2
    assert all(text.startswith("skipped ") for text in caplog.messages)
    said = sorted(text.rpartition(f"{tmp_path}/")[2] for text in caplog.messages)
    expected = [
        r"a.rec: record 1: it is no tf.train.Example",
        r"a.rec: record 2 \(pet 7\): it has no feature 'image/encoded' .*",
        r"a.rec: record 3 \(pet 7\): its image does not decode",
        r"a.rec: record 4 \(pet 7\): labels outside the vocabulary.*",
        r"a.rec: record 5 \(pet 11\): its feature 'image/class/text' holds int64, .*",
        r"b.rec: records lost: record 3: truncated in the record at offset \d+",
    ]
    assert len(said) == len(expected)
    for text, pattern in zip(said, expected, strict=True):
        assert re.fullmatch(pattern, text)


@pytest.mark.parametrize("options", [{}, {"drop_remainder": True}], ids=["any", "full"])
def test_records_of_any_kind_are_skipped(tmp_path, options):
    """Records are skipped with a predicate, in a file that is not counted, and in full batches."""
    records = [*map(pet, range(5)), b"\xff\xff", pet(6, **{"image/class/label": b"a"}), pet(7)]
    source = write_records(tmp_path / "a.rec.gz", records)
    found = []
    dataset = read(
        source,
        feature_spec={"image/class/label": tf.io.FixedLenFeature((), tf.int64)},
        batch_size=2,
        on_error=found.append,
        predicate=lambda example: example["image/class/label"] >= 0,
        **options,
    )
    batches = [batch["image/class/label"].numpy().tolist() for batch in dataset]
    assert batches == ([[0, 1]] * 3 if options else [[0, 1], [0, 1], [0, 1]])
    assert [text.partition("a.rec.gz: ")[2] for text in found] == [
        "record 5: it is no tf.train.Example",
        "record 6 (pet 6): its feature 'image/class/label' holds string, and int64 is expected",
    ]


@pytest.mark.parametrize("has_image", [False, True])
def test_an_endless_reading_without_a_sound_record_ends(tmp_path, monkeypatch, has_image):
    """An endless reading without a sound record fails; with one sound record, it continues."""
    monkeypatch.setattr("recordgen.reading.skipping.ASSUMED_EXAMPLES", 2)

    def reading(records):
        source = write_records(tmp_path / "a.rec", records)
        options = {"batch_size": 2, "epochs": "endless", "on_error": "skip"}
        if has_image:
            return train_dataset(source, vocabulary=["ant"], image_size=(8, 8), **options)
        spec = {"image/class/label": tf.io.FixedLenFeature((), tf.int64)}
        return read(source, feature_spec=spec, **options)

    wrong = {"image/class/text": b"cat"} if has_image else {"image/class/label": b"cat"}
    bad = [pet(4, **wrong)] * 2
    with pytest.raises(RecordError, match=r"a\.rec: record 0 \(pet 4\): "):
        next(iter(reading(bad)))
    if not has_image:
        assert len(list(reading([*bad, pet(0)]).take(3))) == 3


def test_a_dataset_that_is_replaced(tmp_path: Path) -> None:
    """After --overwrite, an iteration says that class names would be wrong; --append is fine."""
    for seed, name in enumerate("abc"):
        (tmp_path / f"{name}.png").write_bytes(encoded(noise(8, 8, seed), "PNG"))
    source, output = tmp_path / "rows.csv", tmp_path / "out"
    source.write_text("TRAIN,a.png,cat\nTRAIN,b.png,dog\n")
    convert(source, output)
    found = eval_dataset(output, batch_size=1, split="train", image_size=(8, 8))
    assert len(list(found)) == 2
    source.write_text("TRAIN,c.png,emu\n")
    convert(source, output, append=True)
    assert len(list(found)) == 2
    source.write_text("TRAIN,a.png,ape\nTRAIN,b.png,bee\n")
    convert(source, output, overwrite=True)
    with pytest.raises(DataError, match=f"{output}: this dataset was replaced"):
        list(found)
    again = eval_dataset(output, batch_size=1, split="train", image_size=(8, 8))
    assert again.class_names == ["ape", "bee"]
