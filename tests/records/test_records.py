"""Records: Example and TFRecord written without TensorFlow equal TensorFlow's bytes."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator
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
from recordgen.records.example import (
    example_head,
    feature_head,
    packed_ints,
    parse_example,
    serialize_example,
)
from recordgen.records.tfrecord import (
    FrameWriter,
    count_frames,
    frame,
    frame_head,
    read_around,
    read_chosen,
    read_records,
    write_frames,
)

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
# Names of equal length: protobuf's implementations disagree whether "a" or "ab" comes first.
_names = st.text(st.characters(blacklist_categories=("Cs",)), min_size=3, max_size=3)


def kind_and_values(value: object) -> tuple[str, list[Any]]:
    """Return the list type and the values of the feature that stores ``value``."""
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
    """Many numbers packed together give the same bytes as one by one."""
    bits = np.arange(count) % 64
    numbers = np.random.default_rng(0).integers(0, 2**63 - 1, count) >> bits
    for array in (numbers, -numbers, numbers & 127):
        packed = b"".join(serialize_example({"x": array}))
        assert packed == b"".join(serialize_example({"x": array.tolist()}))
        assert parse_example(packed) == {"x": array.tolist()}


# Limits of varints with one, two, three and nine bytes, and a negative number, which takes ten.
LIMITS = [1 << 7, 1 << 14, 1 << 21, 1 << 28, 1 << 63]


def test_numbers_at_the_limits_of_their_bytes() -> None:
    """Numbers at which a varint grows give TensorFlow's bytes, one by one and packed."""
    numbers = [
        limit + near for limit in LIMITS for near in (-2, -1, 0, 1) if limit + near < 1 << 63
    ]
    numbers += [-number for number in numbers]
    for number in (0, -(1 << 63), *numbers):
        assert b"".join(serialize_example({"x": number})) == theirs(int64_list=[number])
    for some in (numbers, np.array(numbers), np.array(numbers * 3)):  # many are packed together
        expected = theirs(int64_list=list(map(int, some)))
        assert b"".join(serialize_example({"x": some})) == expected


def theirs(**values: list[Any]) -> bytes:
    """Return TensorFlow's bytes of an Example with one feature, ``x``."""
    [(kind, items)] = values.items()
    feature = tf.train.Feature()
    getattr(feature, kind).value.extend(items)
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    found: bytes = example.SerializeToString(deterministic=True)
    return found


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000])
def test_heads_before_values(size: int) -> None:
    """The bytes before a value, and before all features, equal TensorFlow's."""
    numbers, lengths = packed_ints(np.array([5, 300, -1]))
    assert lengths.tolist() == [1, 2, 10]
    ends = np.cumsum(lengths).tolist()
    cases = [("bytes", bytes(size), theirs(bytes_list=[bytes(size)]))]
    cases += [("float32", np.float32(size).tobytes(), theirs(float_list=[float(size)]))]
    for number, start, end in zip((5, 300, -1), [0, *ends], ends, strict=False):
        cases.append(("int64", numbers[start:end], theirs(int64_list=[number])))
    for dtype, value, expected in cases:
        features_of_one = feature_head("x", dtype, len(value)) + value
        assert example_head(len(features_of_one)) + features_of_one == expected


@pytest.mark.parametrize("limit", [1 << 7, 1 << 12, 1 << 14, 1 << 21])
def test_lengths_at_the_limits_of_their_bytes(limit: int) -> None:
    """The lengths of a value, its list, its feature and all features grow at a limit.

    At most 20 bytes precede a value, so these lengths reach the limit one after the other.
    At 2^12, values become separate pieces.
    """
    value = bytes(limit + 1)
    for size in range(limit - 24, limit + 2):
        data = value[:size]
        assert b"".join(serialize_example({"x": data})) == theirs(bytes_list=[data])
        if limit < 1 << 21:  # two values, and texts next to them
            both = [data, b"y"]
            assert b"".join(serialize_example({"x": both})) == theirs(bytes_list=both)


def test_arrays_and_features_without_values() -> None:
    """An array without numbers is a list of its kind; a feature without kind has no values."""
    empty = {"a": np.zeros(0, np.int64), "b": np.zeros((0, 2), np.float32), "c": 7}
    data = b"".join(serialize_example(empty))
    found = tf.train.Example.FromString(data)
    assert found.SerializeToString(deterministic=True) == data
    kinds = {name: found.features.feature[name].WhichOneof("kind") for name in "abc"}
    assert kinds == {"a": "int64_list", "b": "float_list", "c": "int64_list"}
    assert parse_example(data) == {"a": [], "b": [], "c": [7]}
    bare = tf.train.Example(features=tf.train.Features(feature={"x": tf.train.Feature()}))
    assert parse_example(bare.SerializeToString()) == {"x": []}


@pytest.mark.parametrize("numbers", [[], [1, 127], [128, 5], [5, 1 << 14, 0], [-1, 3]])
def test_how_many_bytes_each_number_takes(numbers: list[int]) -> None:
    """The lengths of packed numbers equal TensorFlow's for single numbers."""
    array = np.array(numbers, np.int64)
    data, lengths = packed_ints(array)
    assert lengths.dtype == np.int64
    alone = len(theirs(int64_list=[0])) - 1  # the bytes before a number
    assert lengths.tolist() == [len(theirs(int64_list=[item])) - alone for item in numbers]
    assert len(data) == sum(lengths)


def test_large_values_are_not_copied() -> None:
    """The bytes of images are passed on without a copy, also in a list."""
    one, two, three = bytes(4096), bytes(5000), bytes(6000)
    pieces = serialize_example({"a": one, "b": [two, b"small", three]})
    for value in (one, two, three):
        assert any(piece is value for piece in pieces)
    both = serialize_example({"a": one, "b": three, "c": 1})
    assert parse_example(b"".join(both)) == {"a": [one], "b": [three], "c": [1]}


def test_kinds_that_cannot_be() -> None:
    """Floats too large for float32 and arrays of other types are errors; [] has no kind."""
    with pytest.raises(OverflowError):
        serialize_example({"x": 1e39})
    with pytest.raises(TypeError, match="must be int64 or float32 \\(got uint8\\)"):
        serialize_example({"x": np.zeros(1, np.uint8)})
    assert parse_example(b"".join(serialize_example({"x": [], "y": ()}))) == {}


def test_zero_and_empty_are_kept_and_none_is_skipped() -> None:
    """Label 0 is a value; None is not."""
    data = b"".join(serialize_example({"zero": 0, "empty": b"", "none": None}))
    assert parse_example(data) == {"empty": [b""], "zero": [0]}


def test_not_an_example() -> None:
    """Other bytes raise ValueError."""
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
    chosen = list(read_chosen(str(path), [101, 2, 500, 2]))
    assert chosen == [(2, records[2]), (101, records[101])]
    assert size == path.stat().st_size
    first = path.read_bytes()
    write(path, records, compression)
    assert path.read_bytes() == first


def test_records_of_many_pieces(tmp_path: Path) -> None:
    """A record may have more pieces than the system accepts in one call."""
    record = [b"ab"] * 3000
    path = tmp_path / "r"
    with path.open("wb", buffering=0) as file:
        size = write_frames(file, [frame(record), frame([b"c"])], "none")
    assert size == path.stat().st_size
    assert list(read_records(str(path))) == [b"ab" * 3000, b"c"]


def test_partial_writes() -> None:
    """A pipe that accepts only a part of each write gets all bytes, in order."""
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


def test_gzip_header_has_no_name_and_no_time(tmp_path: Path) -> None:
    """The header never changes with time or name (RFC 1952: ID, CM, FLG, MTIME)."""
    path = tmp_path / "r.gz"
    write(path, [b"one"], "gzip")
    assert path.read_bytes()[:8] == b"\x1f\x8b\x08" + bytes(5)


_NO_LENGTH = "damaged record length at offset {}; not a TFRecord file?"

# damage to three records of 8 bytes (24 bytes each in the file); message; number of records
# yielded before the error; whether count_frames detects it, which reads only lengths
DAMAGE = [
    (lambda data: data[:-1], "truncated in the record at offset 48", 2, True),
    (lambda data: data[:30], "truncated in the record at offset 24", 1, True),
    (lambda data: data[:36], "truncated in the record at offset 24", 1, True),
    (lambda data: data[:24] + b"\xff" + data[25:], _NO_LENGTH.format(24), 1, True),
    (
        lambda data: data[:40] + b"\xff" + data[41:],
        "damaged record at offset 24: its checksum is wrong",
        1,
        False,
    ),
    (lambda data: b"plain text, no TFRecord file", _NO_LENGTH.format(0), 0, True),
]


@pytest.mark.parametrize(("damage", "message", "before", "counts"), DAMAGE, ids=range(len(DAMAGE)))
def test_damaged_files_say_where(
    tmp_path: Path, damage: Any, message: str, before: int, counts: bool
) -> None:
    """A damaged file is an error with its name and offset, after the records before it."""
    path = tmp_path / "r"
    records = [b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"]
    write(path, records)
    assert count_frames(str(path)) == 3
    path.write_bytes(damage(path.read_bytes()))
    found: list[bytes] = []
    with pytest.raises(RecordError) as caught:
        found.extend(iter(read_records(str(path))))
    assert str(caught.value) == f"{path}: {message}"
    given = read_records(str(path))
    assert [next(given) for _ in range(before)] == records[:before]
    if counts:
        with pytest.raises(RecordError) as caught:
            count_frames(str(path))
        assert str(caught.value) == f"{path}: {message}"
    else:
        assert count_frames(str(path)) == 3


def test_empty_files(tmp_path: Path) -> None:
    """An empty file is a valid file without records."""
    path = tmp_path / "r"
    assert write(path, []) == 0
    assert (list(read_records(str(path))), count_frames(str(path))) == ([], 0)


class Sink(io.RawIOBase):
    """A sink that records the size of each write."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sizes.append(len(data))
        return len(data)


def test_small_records_are_written_together() -> None:
    """64 small records are one piece; one of 4,096 bytes is a separate piece, as are its ends."""
    sink, small, large = Sink(), frame([b"x" * 84]), frame([bytes(4096)])
    assert write_frames(sink, [small] * 130, "none") == 13_000
    assert sink.sizes == [6400, 6400, 200]
    sink = Sink()
    almost = frame([bytes(4095)])
    assert write_frames(sink, [small, almost, large, small, large], "none") == sum(sink.sizes)
    assert sink.sizes == [100 + 4111, 12, 4096, 4, 100, 12, 4096, 4]


def test_pieces_do_not_pile_up() -> None:
    """When 64 pieces wait, they are written before the next record is requested."""
    sink, there = Sink(), []

    def frames() -> Iterator[tuple[bytes, ...]]:
        for _ in range(30):
            there.append(len(sink.sizes))
            yield frame([bytes(4096)] * 3)[:4]  # four pieces; never read

    write_frames(sink, frames(), "none")
    assert there == [0] * 16 + [64] * 14
    assert sum(sink.sizes) == 30 * 3 * 4096 + 30 * 12


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_frames_that_come_now_and_then(compression: str) -> None:
    """A writer appends to its earlier frames, and knows the size of the file."""
    file = io.BytesIO()
    with FrameWriter(file, compression) as writer:
        for record in (b"one", b"two"):
            writer.write([frame([record])])
            assert writer.bytes == len(file.getvalue())
    assert writer.bytes == len(file.getvalue())
    data = gzip.decompress(file.getvalue()) if compression == "gzip" else file.getvalue()
    assert data == b"".join((*frame([b"one"]), *frame([b"two"])))


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((1 << 31) + 1, "record of 2147483649 bytes at offset 24 is too large to read"),
        (1 << 31, "truncated in the record at offset 24"),
    ],
)
def test_records_that_are_too_large(tmp_path: Path, size: int, words: str) -> None:
    """A length above 2^31 is refused before memory is allocated, even with a correct checksum."""
    path = tmp_path / "r"
    path.write_bytes(b"".join(frame([b"aaaaaaaa"])) + frame_head(size))
    for read in (lambda: list(read_records(str(path))), lambda: count_frames(str(path))):
        with pytest.raises(RecordError) as caught:
            read()
        assert str(caught.value) == f"{path}: {words}"


# damage to a gzip stream; the library's message
DAMAGED_GZIP = [
    (
        lambda data: data[:-9],
        "Compressed file ended before the end-of-stream marker was reached",
    ),
    (lambda data: data[:-8] + bytes(8), "CRC check failed"),
    (lambda data: b"no gzip", r"Not a gzipped file \(b'no'\)"),
    (lambda data: data[:10] + b"\xff" * 9, "Error -3 while decompressing data"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGED_GZIP, ids=range(len(DAMAGED_GZIP)))
def test_damaged_gzip(tmp_path: Path, damage: Any, words: str) -> None:
    """A damaged gzip stream is an error with the offset, not the end of the file."""
    path = tmp_path / "r.gz"
    path.write_bytes(damage(gzip.compress(b"".join(frame([b"a" * 1000])) * 2)))
    found: list[bytes] = []
    message = rf"^{path}: damaged gzip stream after offset (\d+): {words}"
    with pytest.raises(RecordError, match=message) as caught:
        found.extend(read_records(str(path)))
    offset = int(re.match(message, str(caught.value))[1])
    assert offset == 1016 * len(found)


def test_feature_specs_as_json() -> None:
    """dataset.json stores a spec, with its default only if it has one."""
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


def test_reading_around_damage(tmp_path: Path) -> None:
    """Records after a wrong checksum or a damaged length are found; a truncation ends the file."""
    records = [bytes([number]) * 100 for number in range(6)]
    data = bytearray(b"".join(b"".join(frame([record])) for record in records))
    data[116 + 50] ^= 1  # in record 1
    data[3 * 116] ^= 1  # in the length of record 3
    path = tmp_path / "a.rec"
    path.write_bytes(data[:-1])
    around = read_around(str(path))
    found: list[Any] = [str(it) if isinstance(it, RecordError) else it for it in around]
    wrong, length, cut = found[1], found[3], found[5]
    assert [found[0], found[2], found[4]] == [records[0], records[2], records[4]]
    assert "damaged record at offset 116: its checksum is wrong" in wrong
    assert "damaged record length at offset 348" in length
    assert "truncated in the record at offset 580" in cut
    assert len(found) == 6
