"""Records that cannot be read: the error has the file, the record, the source id and the remedy."""

import os

import pytest
import tensorflow as tf

from recordgen import eval_dataset, read, train_dataset
from recordgen.errors import DataError, RecordError
from recordgen.reading import bad_records, named_errors
from tests.conftest import convert_lines, write_noise
from tests.reading.conftest import CLASSES, pet, write_records

SIZE = {"image_size": (4, 4), "batch_size": 3}


# record 7, options, what the error says
WRONG = {
    "no Example": (b"\xff\xffroot:x:0", {}, "it is no tf.train.Example"),
    "no image": (pet(7, **{"image/encoded": []}), {}, "image/encoded"),
    "a type": (pet(7, **{"image/class/label": b"a"}), {}, "image/class/label"),
    "an image": (pet(7, **{"image/encoded": b"x"}), {}, "image"),
    "a label": (
        pet(7, **{"image/class/label": 9, "image/class/text": b"fox"}),
        {"vocabulary": list(CLASSES)},
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


def test_a_file_that_is_damaged(tmp_path):
    """A damaged record is named."""
    path = write_records(tmp_path / "a.rec", map(pet, range(4)))
    size = os.path.getsize(path) // 4
    with open(path, "r+b") as file:
        file.seek(2 * size + size // 2)
        file.write(b"\xff\xfe\xfd")
    dataset = eval_dataset(path, **SIZE)
    with pytest.raises(RecordError, match=r"a\.rec.*record 2"), named_errors(dataset):
        list(dataset)


def test_a_dataset_that_is_replaced(tmp_path):
    """A dataset that another one replaced is an error; one that grew is read as before."""
    write_noise(tmp_path, "abc", 8, 8)
    output = convert_lines(tmp_path, ["TRAIN,a.png,cat", "TRAIN,b.png,dog"])
    found = eval_dataset(output, batch_size=1, split="train", image_size=(8, 8))
    assert len(list(found)) == 2
    convert_lines(tmp_path, ["TRAIN,c.png,emu"], append=True)
    assert len(list(found)) == 2
    convert_lines(tmp_path, ["TRAIN,a.png,ape", "TRAIN,b.png,bee"], overwrite=True)
    with pytest.raises(DataError, match=f"{output}: "), named_errors(found):
        list(found.take(1))
    again = eval_dataset(output, batch_size=1, split="train", image_size=(8, 8))
    assert again.class_names == ["ape", "bee"]
