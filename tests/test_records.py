"""Records: Example and TFRecord written without TensorFlow are what TensorFlow writes."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

from recordgen import features
from recordgen.errors import RecordError
from recordgen.records.example import parse_example, serialize_example
from recordgen.records.tfrecord import count_frames, frame, frame_head, read_records, write_frames

_bytes = st.one_of(
    st.binary(max_size=300), st.sampled_from([bytes(4095), bytes(4096), bytes(70_000)])
)
_ints = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**15))
_floats = st.floats(width=32, allow_nan=False)
_values = st.one_of(
    _bytes,
    _ints,
    _floats,
    *(st.lists(values, min_size=1, max_size=5) for values in (_bytes, _ints, _floats)),
    *(nst.arrays(dtype, nst.array_shapes(max_dims=3, min_side=0)) for dtype in ("i8", "<f4")),
    nst.arrays(np.int64, st.integers(60, 70), elements=st.integers(0, 127)),
    nst.arrays(np.int64, st.integers(60, 70)),
)
# Of one length: protobuf's implementations disagree whether "a" or "ab" comes first.
_names = st.text(st.characters(blacklist_categories=("Cs",)), min_size=3, max_size=3)


def kind_and_values(value: object) -> tuple[str, list[Any]]:
    """Return the list of an Example's feature that is to hold a value, and what is in it."""
    kinds = {bytes: "bytes_list", int: "int64_list", float: "float_list"}
    if isinstance(value, np.ndarray):
        return kinds[type(value.dtype.type(0).item())], value.reshape(-1).tolist()
    values = value if isinstance(value, list) else [value]
    return kinds[type(values[0])], values


@given(st.dictionaries(_names, _values, max_size=8))
def test_examples_are_tensorflows(values: dict[str, Any]) -> None:
    """TensorFlow parses our bytes to the same values and serialises them to the same bytes."""
    data = b"".join(serialize_example(values))
    theirs = tf.train.Example.FromString(data)
    assert theirs.SerializeToString(deterministic=True) == data
    assert set(theirs.features.feature) == set(values)
    parsed = parse_example(data)
    assert list(parsed) == sorted(values)
    for name, value in values.items():
        kind, expected = kind_and_values(value)
        feature = theirs.features.feature[name]
        assert feature.WhichOneof("kind") == kind
        found = [list(getattr(feature, kind).value), parsed[name]]
        np.testing.assert_equal(found, [expected, expected])


@pytest.mark.parametrize("count", [63, 64, 100_000])
def test_many_numbers(count: int) -> None:
    """Many numbers are packed at once to the same bytes as one after the other."""
    bits = np.arange(count) % 64
    numbers = np.random.default_rng(0).integers(0, 2**63 - 1, count) >> bits
    for array in (numbers, -numbers, numbers & 127):
        packed = b"".join(serialize_example({"x": array}))
        assert packed == b"".join(serialize_example({"x": array.tolist()}))
        assert parse_example(packed) == {"x": array.tolist()}


# What a varint holds in one byte, two, three and nine; and a number below 0, which takes ten.
LIMITS = [1 << 7, 1 << 14, 1 << 21, 1 << 28, 1 << 63]


def test_numbers_at_the_limits_of_their_bytes() -> None:
    """Numbers at which a varint grows are TensorFlow's to the byte, one by one and packed."""
    numbers = [
        limit + near for limit in LIMITS for near in (-2, -1, 0, 1) if limit + near < 1 << 63
    ]
    numbers += [-number for number in numbers]
    for number in (0, -(1 << 63), *numbers):
        assert b"".join(serialize_example({"x": number})) == theirs(int64_list=[number])
    for some in (numbers, np.array(numbers), np.array(numbers * 3)):  # many are packed at once
        expected = theirs(int64_list=list(map(int, some)))
        assert b"".join(serialize_example({"x": some})) == expected


def theirs(**values: list[Any]) -> bytes:
    """Return the bytes that TensorFlow gives an Example of one feature, ``x``."""
    [(kind, items)] = values.items()
    feature = tf.train.Feature()
    getattr(feature, kind).value.extend(items)
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    found: bytes = example.SerializeToString(deterministic=True)
    return found


@pytest.mark.parametrize("limit", [1 << 7, 1 << 12, 1 << 14, 1 << 21])
def test_lengths_at_the_limits_of_their_bytes(limit: int) -> None:
    """Each of the lengths of a value, its list, its feature and all features grows at a limit.

    What stands before a value is 20 bytes at most, so these lengths reach it one after the other.
    At 2^12, values become pieces of their own.
    """
    value = bytes(limit + 1)
    for size in range(limit - 24, limit + 2):
        data = value[:size]
        assert b"".join(serialize_example({"x": data})) == theirs(bytes_list=[data])
        if limit < 1 << 21:  # two of them, and texts beside them
            both = [data, b"y"]
            assert b"".join(serialize_example({"x": both})) == theirs(bytes_list=both)


def test_large_values_are_not_copied() -> None:
    """An image's bytes, also one of several, are handed on as they are."""
    one, two, three = bytes(4096), bytes(5000), bytes(6000)
    pieces = serialize_example({"a": one, "b": [two, b"small", three]})
    for value in (one, two, three):
        assert any(piece is value for piece in pieces)


def test_kinds_that_cannot_be() -> None:
    """A float that float32 does not hold, and other arrays, are errors; [] has no kind."""
    with pytest.raises(OverflowError):
        serialize_example({"x": 1e39})
    with pytest.raises(TypeError, match="must be of int64 or float32 \\(got uint8\\)"):
        serialize_example({"x": np.zeros(1, np.uint8)})
    assert parse_example(b"".join(serialize_example({"x": [], "y": ()}))) == {}


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


def test_records_of_many_pieces(tmp_path: Path) -> None:
    """A record may have more pieces than the system takes in one call."""
    record = [b"ab"] * 3000
    path = tmp_path / "r"
    with path.open("wb", buffering=0) as file:
        size = write_frames(file, [frame(record), frame([b"c"])], "none")
    assert size == path.stat().st_size
    assert list(read_records(str(path))) == [b"ab" * 3000, b"c"]


def test_writes_that_take_a_part() -> None:
    """A pipe that takes less than it is given gets all bytes, in order."""
    record = [bytes([number]) * 5000 for number in range(60)]
    ours, theirs = os.pipe()
    found: list[bytes] = []

    def read() -> None:
        with open(ours, "rb") as file:
            found.append(file.read())

    reader = threading.Thread(target=read)
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(theirs, False)
    with io.FileIO(theirs, "wb") as file:
        reader.start()
        size = write_frames(file, [frame(record)], "none")
    reader.join()
    assert found == [b"".join(frame(record))]
    assert size == len(found[0])


def test_gzip_says_no_name_and_no_time(tmp_path: Path) -> None:
    """The header is the same at any time and under any name (RFC 1952: ID, CM, FLG, MTIME)."""
    path = tmp_path / "r.gz"
    write(path, [b"one"], "gzip")
    assert path.read_bytes()[:8] == b"\x1f\x8b\x08" + bytes(5)


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


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((1 << 31) + 1, "record of 2147483649 bytes at offset 24 is too large to read"),
        (1 << 31, "truncated in the record at offset 24"),
    ],
)
def test_records_that_are_too_large(tmp_path: Path, size: int, words: str) -> None:
    """A length above 2^31 is refused before memory is set aside, also with a right checksum."""
    path = tmp_path / "r"
    path.write_bytes(b"".join(frame([b"aaaaaaaa"])) + frame_head(size))
    for read in (lambda: list(read_records(str(path))), lambda: count_frames(str(path))):
        with pytest.raises(RecordError) as caught:
            read()
        assert str(caught.value) == f"{path}: {words}"


def test_damaged_gzip(tmp_path: Path) -> None:
    """A cut gzip stream is an error, not the end of the file."""
    path = tmp_path / "r.gz"
    path.write_bytes(gzip.compress(b"".join(frame([b"a" * 1000])))[:-9])
    with pytest.raises(RecordError, match="damaged gzip stream"):
        list(read_records(str(path)))


def test_feature_specs_as_json() -> None:
    """A spec is kept by dataset.json, with its default only if it has one."""
    spec = features.FeatureSpec("uint8", shape=(28, 28))
    assert spec.to_json() == {"dtype": "uint8", "shape": [28, 28]}
    varying = features.FeatureSpec("int64", shape=None)
    for one in (spec, varying, *features.IMAGE_CLASSIFICATION.values()):
        assert features.FeatureSpec.from_json(json.loads(json.dumps(one.to_json()))) == one


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
