"""TFRecord files written without TensorFlow equal TensorFlow's, and damage is found."""

import gzip
import io
import os
import re
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from recordgen import storage
from recordgen.core.records import RECORDS, LengthError
from recordgen.core.records.tfrecord import frame_head, lengths_fit
from recordgen.errors import RecordError
from tests.conftest import peak_of, write_file


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_frames_are_tensorflows(records):
    """tf.io.TFRecordWriter writes the same file."""
    ours = b"".join(piece for record in records for piece in RECORDS.frame([record]))
    with tempfile.NamedTemporaryFile() as file:
        with tf.io.TFRecordWriter(file.name) as writer:
            for record in records:
                writer.write(record)
        assert file.read() == ours


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_a_column_is_framed_as_its_records_are(records):
    """A column has the bytes of its records one by one, also if it begins within an array."""
    column = pa.array([b"before", *records], pa.binary())[1:]
    ours = b"".join(piece for record in records for piece in RECORDS.frame([record]))
    assert RECORDS.frame_column(column) == ours
    assert RECORDS.frame_bytes(np.array([*map(len, records)], np.int64)).sum() == len(ours)


HEADS = [
    (b"".join(RECORDS.frame([b"a record"])), True),
    (frame_head(1 << 20), True),
    (frame_head(1 << 20)[:-1], False),
    (b"\1" + frame_head(1 << 20)[1:], False),
    (b"", False),
    (gzip.compress(b"".join(RECORDS.frame([b"a record"])), mtime=0), False),
]


@pytest.mark.parametrize(("head", "is_mine"), HEADS)
def test_a_file_is_recognised_by_its_head(head, is_mine):
    """A length with its checksum is the head of a TFRecord file."""
    assert RECORDS.is_mine(head) == is_mine


def test_a_length_that_begins_like_gzip(tmp_path):
    """A record of 0x088b1f bytes begins with gzip's bytes, and is read as a record."""
    path = tmp_path / "r"
    records = [bytes(0x088B1F), b"next"]
    write(path, records)
    assert path.read_bytes()[:3] == b"\x1f\x8b\x08"
    assert not RECORDS.is_gzip(str(path))
    assert list(RECORDS.read(str(path))) == records
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert RECORDS.is_gzip(str(path))
    assert (RECORDS.count(str(path)), list(RECORDS.read(str(path)))) == (2, records)


def write(path, records, compression="none"):
    with storage.replacing(str(path)) as file:
        return write_frames(file, [RECORDS.frame([record]) for record in records], compression)


def write_frames(file, frames, compression="none"):
    """Write framed records; return the size of the file."""
    with RECORDS.writer(file, compression) as writer:
        writer.write(frames)
    return writer.bytes


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_files_are_read_by_both(tmp_path, compression):
    """Written files are read by tf.data and by our reader; equal records give equal bytes."""
    records = [b"", b"one", bytes(100_000), *(b"x" * n for n in range(100))]
    path = tmp_path / ("r.gz" if compression == "gzip" else "r")
    size = write(path, records, compression)
    dataset = tf.data.TFRecordDataset(str(path), "GZIP" if compression == "gzip" else "")
    assert [record.numpy() for record in dataset] == records
    assert list(RECORDS.read(str(path))) == records
    chosen = list(RECORDS.read_chosen(str(path), [101, 2, 500, 2]))
    assert chosen == [(2, records[2]), (101, records[101])]
    assert size == path.stat().st_size
    first = path.read_bytes()
    if compression == "gzip":
        assert first[:8] == b"\x1f\x8b\x08" + bytes(5)  # neither a name nor a time
    write(path, records, compression)
    assert path.read_bytes() == first


def test_records_of_many_pieces(tmp_path):
    """A record may have more pieces than the system accepts in one call."""
    record = [b"ab"] * 3000
    path = tmp_path / "r"
    with path.open("wb", buffering=0) as file:
        size = write_frames(file, [RECORDS.frame(record), RECORDS.frame([b"c"])])
    assert size == path.stat().st_size
    assert list(RECORDS.read(str(path))) == [b"ab" * 3000, b"c"]


class Slow(io.BytesIO):
    """A file that accepts only a part of each write, as a pipe may."""

    def write(self, data):
        return super().write(data[:999])


def test_a_pipe_that_takes_parts_of_writes_gets_all_bytes():
    """They come in order."""
    record, file = [bytes([number]) * 5000 for number in range(60)], Slow()
    assert write_frames(file, [RECORDS.frame(record)]) == 60 * 5000 + 16
    assert file.getvalue() == b"".join(RECORDS.frame(record))


# damage to three records of 8 bytes (24 bytes each in the file); the offset in the error; whether
# count detects it, which reads only lengths
DAMAGE = [
    (lambda data: data[:-1], 48, True),
    (lambda data: data[:30], 24, True),
    (lambda data: data[:36], 24, True),
    (lambda data: data[:24] + b"\xff" + data[25:], 24, True),
    (lambda data: data[:40] + b"\xff" + data[41:], 24, False),
    (lambda data: b"plain text, no TFRecord file", 0, True),
]


@pytest.mark.parametrize(("damage", "offset", "counts"), DAMAGE, ids=range(len(DAMAGE)))
def test_damaged_files_say_where(tmp_path, damage, offset, counts):
    """A damaged file is an error with its name and offset, after the records before it."""
    path = tmp_path / "r"
    records = [b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"]
    write(path, records)
    assert RECORDS.count(str(path)) == 3
    path.write_bytes(damage(path.read_bytes()))
    where, before = rf"^{path}: .* offset {offset}\b", offset // 24
    with pytest.raises(RecordError, match=where):
        list(RECORDS.read(str(path)))
    given = RECORDS.read(str(path))
    assert [next(given) for _ in range(before)] == records[:before]
    assert lengths_fit(str(path)) is not counts
    if counts:
        for check in (RECORDS.count, RECORDS.check_lengths):
            with pytest.raises(RecordError, match=where):
                check(str(path))
    else:
        assert RECORDS.count(str(path)) == 3


# The lengths of the records of a file: none, one, a page between heads, heads that a block cuts
SIZES = [[], [0], [4072, 1, 9000, 4096, 0], [*range(400)], [7] * 12_000, [70_000, *[12] * 9000, 3]]


@pytest.mark.parametrize("sizes", SIZES, ids=range(len(SIZES)))
def test_lengths_fit_in_whole_files_only(tmp_path, sizes):
    """A file that ends with its last record, or has none, fits; not with a byte less or more."""
    path = tmp_path / "r"
    assert write(path, list(map(bytes, sizes))) == sum(sizes) + 16 * len(sizes)
    assert [len(record) for record in RECORDS.read(str(path))] == sizes
    assert list(RECORDS.lengths(str(path))) == sizes
    assert lengths_fit(str(path))
    RECORDS.check_lengths(str(path))
    data = path.read_bytes()
    for other in filter(None, (data[:-1], data[:-20], data + b"\0")):
        path.write_bytes(other)
        assert not lengths_fit(str(path))
        with pytest.raises(RecordError, match="truncated"):
            list(RECORDS.lengths(str(path)))


def test_a_frame_that_holds_no_record():
    """Another length means another file; a wrong checksum means damage."""
    frame = b"".join(RECORDS.frame([b"aaaaaaaa"]))
    assert frame[slice(*RECORDS.place_in(frame))] == b"aaaaaaaa"
    assert RECORDS.place_in(b"".join(RECORDS.frame([b""]))) == (12, 12)
    others = (b"", frame[:15], frame[:-1], frame + b"\0", b"\7" + frame[1:])
    damaged = (frame[:12] + b"b" + frame[13:], frame[:-1] + b"\0")
    for error, frames in ((LengthError, others), (ValueError, damaged)):
        for other in frames:
            with pytest.raises(error) as caught:
                RECORDS.place_in(other)
            assert caught.type is error


def test_an_interrupted_write_is_completed(tmp_path, monkeypatch):
    """After a signal, the system has written only a part of what it was given."""
    monkeypatch.setattr(os, "writev", lambda file, pieces: os.write(file, b"".join(pieces)[:10]))
    path, records = tmp_path / "r", [b"a" * 5000, b"b" * 5000]
    assert write(path, records) == path.stat().st_size
    assert list(RECORDS.read(str(path))) == records


class Sink(io.RawIOBase):
    """A sink that records the size of each write."""

    def __init__(self):
        self.sizes = []

    def writable(self):
        return True

    def write(self, data):
        self.sizes.append(len(data))
        return len(data)


def test_small_records_are_written_together():
    """64 small records are one piece; one of 4,096 bytes is a separate piece, as are its ends."""
    sink, small, large = Sink(), RECORDS.frame([b"x" * 84]), RECORDS.frame([bytes(4096)])
    assert write_frames(sink, [small] * 130) == 13_000
    assert sink.sizes == [6400, 6400, 200]
    sink = Sink()
    almost = RECORDS.frame([bytes(4095)])
    assert write_frames(sink, [small, almost, large, small, large]) == sum(sink.sizes)
    assert sink.sizes == [100 + 4111, 12, 4096, 4, 100, 12, 4096, 4]


def test_pieces_do_not_pile_up():
    """When 64 pieces wait, they are written before the next record is requested."""
    sink, there = Sink(), []

    def frames():
        for _ in range(30):
            there.append(len(sink.sizes))
            yield RECORDS.frame([bytes(4096)] * 3)[:4]  # four pieces; never read

    write_frames(sink, frames())
    assert there == [0] * 16 + [64] * 14
    assert sum(sink.sizes) == 30 * 3 * 4096 + 30 * 12


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system counts no calls")
def test_large_records_of_local_files_share_system_calls(tmp_path):
    """The pieces of many records are one call, since threads wait for the lock after each."""
    before = counted("syscw")
    write(tmp_path / "r", [bytes(5000)] * 640)  # of three pieces each
    assert counted("syscw") - before < 640 * 3 / 20


@pytest.mark.parametrize(
    ("size", "facts"), [((1 << 31) + 1, " 2147483649 .* offset 24 "), (1 << 31, " offset 24$")]
)
def test_records_that_are_too_large(tmp_path, size, facts):
    """A length above 2^31 is refused before memory is allocated, even with a correct checksum."""
    path = write_file(tmp_path / "r", b"".join(RECORDS.frame([b"aaaaaaaa"])) + frame_head(size))
    for read in (lambda: list(RECORDS.read(str(path))), lambda: RECORDS.count(str(path))):
        with pytest.raises(RecordError, match=f"^{path}: .*{facts}"):
            read()


DAMAGED_GZIP = [
    lambda data: data[:-9],  # cut
    lambda data: data[:-8] + bytes(8),  # a wrong checksum
    lambda data: b"no gzip",
    lambda data: data[:10] + b"\xff" * 9,  # cannot be inflated
]


@pytest.mark.parametrize("damage", DAMAGED_GZIP, ids=range(len(DAMAGED_GZIP)))
def test_damaged_gzip_is_named_with_its_offset(tmp_path, damage):
    """A damaged gzip stream is an error with the offset, not the end of the file."""
    path = tmp_path / "r.gz"
    path.write_bytes(damage(gzip.compress(b"".join(RECORDS.frame([b"a" * 1000])) * 2)))
    found = []
    message = rf"^{path}: .* gzip .* offset (\d+): "
    with pytest.raises(RecordError, match=message) as caught:
        found.extend(RECORDS.read(str(path)))
    assert int(re.match(message, str(caught.value))[1]) == 1016 * len(found)
    *around, error = RECORDS.read_around(str(path))
    assert (around, str(error)) == (found, str(caught.value))


def test_reading_around_damage(tmp_path):
    """Records after a wrong checksum or a damaged length are found; a truncation ends the file."""
    records = [bytes([number]) * 100 for number in range(6)]
    data = bytearray(b"".join(b"".join(RECORDS.frame([record])) for record in records))
    data[116 + 50] ^= 1  # in record 1
    data[3 * 116] ^= 1  # in the length of record 3
    path = write_file(tmp_path / "a.rec", data[:-1])
    around = RECORDS.read_around(str(path))
    found = [str(it) if isinstance(it, RecordError) else it for it in around]
    first, wrong, third, length, fifth, cut = found
    assert [first, third, fifth] == [records[0], records[2], records[4]]
    assert "offset 116:" in wrong
    assert "offset 348" in length
    assert "offset 580" in cut
    assert all(message.startswith(f"{path}: ") for message in (wrong, length, cut))


def read_of(path, times):
    """Return the bytes that are read of so many records, each behind a byte too many."""
    path.write_bytes((b"x" + b"".join(RECORDS.frame([b"aaaaaaaa"]))) * times)
    first = counted("rchar")
    found = list(RECORDS.read_placed(str(path)))
    assert found[1::2] == [(25 * at + 13, b"aaaaaaaa") for at in range(times)]
    return counted("rchar") - first


def counted(name):
    """Return a count of this process: bytes that it has read, or calls that write."""
    return int(re.search(rf"{name}: (\d+)", Path("/proc/self/io").read_text())[1])


def test_bytes_too_many_hide_no_record(tmp_path):
    """The next record is found where it begins, in time that grows with the file."""
    path = tmp_path / "a.rec"
    assert read_of(path, 8_000) < 2.5 * read_of(path, 4_000)
    first, _, second, *_ = RECORDS.read_placed(str(path))
    assert re.search(r"\b0\b", str(first))
    assert re.search(r"\b25\b", str(second))
    with pytest.raises(RecordError, match=rf"^{path}: .*offset 0\b"):
        list(RECORDS.read_chosen(str(path), [1]))


def test_lengths_of_packed_records_take_little_memory(tmp_path):
    """A file of some kilobytes may hold records of gigabytes: they are counted in pieces."""
    path = tmp_path / "r.gz"
    write(path, [bytes(150_000_000), b"next"], "gzip")
    assert path.stat().st_size < 200_000
    found, most = peak_of(lambda: list(RECORDS.lengths(str(path))))
    assert found == [150_000_000, 4]
    assert most < 60_000_000


def test_a_length_that_lies_takes_little_memory(tmp_path):
    """Memory is for bytes that are there, in files with and without a known size."""
    path = write_file(tmp_path / "r.gz", gzip.compress(frame_head(1 << 30) + b"few"))
    for read in (RECORDS.lengths, RECORDS.read):
        refused = partial(pytest.raises, RecordError, lambda read=read: list(read(str(path))))
        found, most = peak_of(refused)
        assert "truncated" in str(found.value)
        assert most < 60_000_000
