"""Records that cannot be read: the error has the file, the record, the source id and the remedy."""

import os
import re

import pytest
import tensorflow as tf

from recordgen import convert, eval_dataset, read, train_dataset
from recordgen.core.records.example import serialize_example
from recordgen.errors import DataError, RecordError
from recordgen.reading import Tuning, bad_records, named_errors
from tests.conftest import encoded, noise, write_noise
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


# record 7, options, what the error says
WRONG = {
    "no Example": (b"\xff\xffroot:x:0", {}, "it is no tf.train.Example"),
    "no image": (pet(7, **{"image/encoded": None}), {}, "image/encoded"),
    "a type": (pet(7, **{"image/class/label": b"a"}), {}, "image/class/label"),
    "an image": (pet(7, **{"image/encoded": b"x"}), {}, "image"),
    "a label": (
        pet(7, **{"image/class/label": 9, "image/class/text": b"fox"}),
        {"vocabulary": ["class 0", "class 1"]},
        "fox",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_a_bad_record_is_named_without_its_bytes(tmp_path, name):
    """The error has file, number, source id and reason of a bad record, and no bytes of it."""
    record, options, what = WRONG[name]
    write_records(tmp_path / "a.rec", map(pet, range(5)))
    write_records(tmp_path / "b.rec", [*map(pet, range(7)), record, *map(pet, range(8, 12))])
    made = train_dataset if name == "a type" else eval_dataset
    dataset = made([str(tmp_path / "?.rec")], **options, **SIZE)
    with pytest.raises(RecordError) as caught, named_errors(dataset):
        list(dataset)
    said = str(caught.value)
    assert f"b.rec: record 7{'' if name == 'no Example' else ' (pet 7)'}: " in said
    assert what in said
    assert "root:x" not in said
    assert [str(error) for error in bad_records(dataset)] == [said]


def test_read_names_records_of_a_derived_dataset(tmp_path):
    """Records are named for datasets derived from read's; other errors stay as they are.

    Datasets are TensorFlow's own, which raise TensorFlow's errors outside of named_errors.
    """
    source = write_records(tmp_path / "a.rec", [pet(0), pet(1, **{"image/class/label": b"a"})])
    spec = {"image/class/label": tf.io.FixedLenFeature((), tf.int64)}
    dataset = read(source, feature_spec=spec)
    assert type(dataset).__module__.startswith("tensorflow.")
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(dataset)
    with pytest.raises(RecordError, match=r"a\.rec.*record 1"), named_errors(dataset):
        list(dataset.take(2))
    other = tf.errors.InvalidArgumentError(None, None, "not of a record")
    with pytest.raises(type(other)), named_errors(dataset.take(1)):
        raise other


def test_a_file_that_is_damaged(tmp_path, caplog):
    """A damaged record is named, or skipped with one line in the log for all epochs."""
    path = write_records(tmp_path / "a.rec", map(pet, range(4)))
    size = os.path.getsize(path) // 4
    with open(path, "r+b") as file:
        file.seek(2 * size + size // 2)
        file.write(b"\xff\xfe\xfd")
    dataset = eval_dataset(path, **SIZE)
    with pytest.raises(RecordError, match=r"a\.rec.*record 2"), named_errors(dataset):
        list(dataset)
    both = [path, write_records(tmp_path / "b.rec", map(pet, range(4, 7)))]
    dataset = eval_dataset(both, on_error="skip", epochs=2, columns=["image/source_id"], **SIZE)
    names = [name for *_, more in dataset for name in more["image/source_id"].numpy()]
    assert sorted(names) == sorted(f"pet {n}".encode() for n in (0, 1, 3, 4, 5, 6) * 2)
    [said] = caplog.messages  # not again in the second epoch
    assert re.fullmatch(r".*a\.rec: 1 of 4 records lost: record 2: damaged .* offset \d+: .*", said)


def test_records_that_cannot_be_read_are_skipped(tmp_path, caplog):
    """Skipping reads every sound record, and bad_records yields all others."""
    bad = [WRONG[name][0] for name in ("no Example", "no image", "an image", "a label")]
    bad.append(pet(11, **{"image/class/text": 3}))
    source = [
        write_records(tmp_path / "a.rec", [pet(0), *bad, pet(6), pet(7)]),
        write_records(tmp_path / "b.rec", map(pet, range(8, 12))),
    ]
    os.truncate(source[1], os.path.getsize(source[1]) - 5)
    options = {"vocabulary": ["class 0", "class 1"], "columns": ["image/source_id"], **SIZE}
    with pytest.raises(RecordError, match=r"b\.rec"):
        eval_dataset(source, **options)
    dataset = eval_dataset(source, on_error="skip", epochs=2, **options)
    names = [name for *_, more in dataset for name in more["image/source_id"].numpy()]
    assert names == [f"pet {number}".encode() for number in (0, 6, 7, 8, 9, 10)] * 2
    [said] = caplog.messages
    assert re.fullmatch(r".*b.rec: records lost: record 3: truncated in the .* \d+", said)
    numbers = [re.search(r"([ab]\.rec): record (\d)", str(error)) for error in bad_records(dataset)]
    expected = [*(("a.rec", str(number)) for number in range(1, 6)), ("b.rec", "3")]
    assert [match.groups() for match in numbers if match] == expected


@pytest.mark.parametrize("full", [False, True])
def test_records_of_any_kind_are_skipped(tmp_path, full):
    """Bad records of any kind are skipped, and batches stay full."""
    records = [*map(pet, range(5)), b"\xff\xff", pet(6, **{"image/class/label": b"a"}), pet(7)]
    source = write_records(tmp_path / "a.rec.gz", [*records, pet(8)])
    label = "image/class/label"
    spec = {label: tf.io.FixedLenFeature((), tf.int64)}
    options = dict(batch_size=2, on_error="skip", tuning=Tuning(drop_remainder=full))
    dataset = read(source, feature_spec=spec, only=lambda found: found[label] >= 0, **options)
    batches = [batch[label].numpy().tolist() for batch in dataset]
    assert batches == [[0, 1], [0, 1], [0, 1], *([] if full else [[0]])]


@pytest.mark.parametrize("has_image", [False, True])
def test_an_endless_reading_without_a_sound_record_ends(tmp_path, has_image):
    """An endless dataset ends if no record is sound, instead of searching without end."""

    def reading(records):
        source = write_records(tmp_path / "a.rec", records)
        options = {"batch_size": 2, "epochs": "endless", "on_error": "skip"}
        if has_image:
            return train_dataset(source, vocabulary=["class 0"], image_size=(8, 8), **options)
        spec = {"image/class/label": tf.io.FixedLenFeature((), tf.int64)}
        return read(source, feature_spec=spec, **options)

    wrong = {"image/class/text": b"cat"} if has_image else {"image/class/label": b"cat"}
    bad = [pet(4, **wrong)] * 2
    assert list(reading(bad)) == []
    assert len(list(reading([*bad, pet(0)]).take(3))) == 3


def test_a_dataset_that_is_replaced(tmp_path):
    """A dataset that another one replaced is an error; one that grew is read as before."""
    write_noise(tmp_path, "abc", 8, 8)
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
    with pytest.raises(DataError, match=f"{output}: "), named_errors(found):
        list(found.take(1))
    again = eval_dataset(output, batch_size=1, split="train", image_size=(8, 8))
    assert again.class_names == ["ape", "bee"]
