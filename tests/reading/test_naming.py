"""Records that cannot be read: the error names file, record and source id, and says what to do."""

from __future__ import annotations

import pytest
import tensorflow as tf

from recordgen import eval_dataset, read, train_dataset
from recordgen.errors import RecordError
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


# what is wrong with record 7, options, what the error says of it
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
    """In the second file and in the middle of a batch; without bytes of the record."""
    record, options, message = WRONG[name]
    write_records(tmp_path / "a.rec", map(pet, range(5)))
    write_records(tmp_path / "b.rec", [*map(pet, range(7)), record, *map(pet, range(8, 12))])
    source = [str(tmp_path / "?.rec")]
    for dataset in (
        eval_dataset(source, **options, **SIZE),
        train_dataset(source, **options, **SIZE),
    ):
        with pytest.raises(RecordError, match=rf"b\.rec: record 7.*{message}.*; fix") as caught:
            list(dataset)
        assert "root:x" not in str(caught.value)
    if name in ("no Example", "a type"):
        spec = {"image/class/label": tf.io.FixedLenFeature((), tf.int64)}
        with pytest.raises(RecordError, match=r"b\.rec: record 7"):
            list(read(source, feature_spec=spec))
