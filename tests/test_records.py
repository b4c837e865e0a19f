"""Records: Example and TFRecord written without TensorFlow are what TensorFlow writes."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from recordgen import features
from recordgen.errors import RecordError
from recordgen.example import parse_example, serialize_example
from recordgen.tfrecord import frame, read_records, write_frames

_values = st.one_of(
    st.binary(max_size=300),
    st.sampled_from([bytes(4096), bytes(70_000)]),
    st.integers(-(2**63), 2**63 - 1),
)
# Of one length: protobuf's implementations disagree whether "a" or "ab" comes first.
_names = st.text(st.characters(blacklist_categories=("Cs",)), min_size=3, max_size=3)


@given(st.dictionaries(_names, _values, max_size=8))
def test_examples_are_tensorflows(values: dict[str, bytes | int]) -> None:
    """TensorFlow parses our bytes to the same values and serialises them to the same bytes."""
    data = b"".join(serialize_example(values))
    theirs = tf.train.Example.FromString(data)
    assert theirs.SerializeToString(deterministic=True) == data
    assert set(theirs.features.feature) == set(values)
    for name, value in values.items():
        feature = theirs.features.feature[name]
        kind = "bytes_list" if isinstance(value, bytes) else "int64_list"
        assert list(getattr(feature, kind).value) == [value]
    assert parse_example(data) == {name: [value] for name, value in sorted(values.items())}


def test_zero_and_empty_are_kept_and_none_is_left_out() -> None:
    """Label 0 is a value; None is none."""
    data = b"".join(serialize_example({"zero": 0, "empty": b"", "none": None}))
    assert parse_example(data) == {"empty": [b""], "zero": [0]}


def test_not_an_example() -> None:
    """Bytes of something else are a ValueError."""
    with pytest.raises(ValueError, match=r"not a tf\.train\.Example"):
        parse_example(b"\xff\xff\xff")


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_frames_are_tensorflows(records: list[bytes]) -> None:
    """tf.io.TFRecordWriter writes the same file."""
    ours = b"".join(piece for record in records for piece in frame([record]))
    with tempfile.NamedTemporaryFile() as file:
        with tf.io.TFRecordWriter(file.name) as writer:
            for record in records:
                writer.write(record)
        assert file.read() == ours


def write(path: Path, records: list[bytes], compression: str = "none") -> int:
    with path.open("wb", buffering=0) as file:
        return write_frames(file, (frame([record]) for record in records), compression)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_files_are_read_by_both(tmp_path: Path, compression: str) -> None:
    """Written files are read by tf.data and by our reader; equal records give equal bytes."""
    records = [b"", b"one", bytes(100_000), *(b"x" * n for n in range(100))]
    path = tmp_path / ("r.gz" if compression == "gzip" else "r")
    size = write(path, records, compression)
    dataset = tf.data.TFRecordDataset(str(path), "GZIP" if compression == "gzip" else "")
    assert [record.numpy() for record in dataset] == records
    assert list(read_records(str(path))) == records
    assert size == path.stat().st_size
    first = path.read_bytes()
    write(path, records, compression)
    assert path.read_bytes() == first


# what is done to three records of 8 bytes (24 bytes each in the file); words of the message
DAMAGE = [
    (lambda data: data[:-1], "truncated in the record at offset 48"),
    (lambda data: data[:30], "truncated in the record at offset 24"),
    (lambda data: data[:24] + b"\xff" + data[25:], "damaged record length at offset 24"),
    (lambda data: data[:40] + b"\xff" + data[41:], "damaged record at offset 24"),
    (lambda data: b"plain text, no TFRecord file", "damaged record length at offset 0"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGE)
def test_damaged_files_say_where(tmp_path: Path, damage, words: str) -> None:
    """A damaged file is an error with its name and offset; records before it are given."""
    path = tmp_path / "r"
    write(path, [b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RecordError, match=words) as caught:
        list(read_records(str(path)))
    assert str(path) in str(caught.value)


def test_damaged_gzip(tmp_path: Path) -> None:
    """A cut gzip stream is an error, not the end of the file."""
    path = tmp_path / "r.gz"
    path.write_bytes(gzip.compress(b"".join(frame([b"a" * 1000])))[:-9])
    with pytest.raises(RecordError, match="damaged gzip stream"):
        list(read_records(str(path)))


def test_feature_names() -> None:
    """The names are a contract with other readers: changing one is a breaking change."""
    assert list(features.IMAGE_CLASSIFICATION) == [
        "image/encoded",
        "image/format",
        "image/height",
        "image/width",
        "image/source_id",
        "image/key/sha256",
        "image/class/text",
        "image/class/label",
    ]
