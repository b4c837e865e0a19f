"""TFRecord files: the framing of ``tf.io.TFRecordWriter``, for any file object.

"TFRecord and tf.train.Example", tensorflow.org: ``uint64 length, uint32 masked_crc32c(length),
byte data[length], uint32 masked_crc32c(data)``, all little-endian.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, TypeVar

import google_crc32c

from recordgen import storage
from recordgen.errors import RecordError

if TYPE_CHECKING:
    import numpy.typing as npt

_Crc = TypeVar("_Crc", int, "npt.NDArray[Any]")

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEAD_BYTES = _LENGTH.size + _CRC.size

_GZIP_SUFFIX, _GZIP_MAGIC = ".gz", b"\x1f\x8b\x08"

#: Bytes of a record in a file in addition to its own: a head of 12 bytes, a checksum of 4.
FRAME_BYTES = _HEAD_BYTES + _CRC.size

_GZIP_LEVEL = 6

# Many records share one write: after each write, a thread waits for the interpreter's lock.
_PIECES_PER_WRITE = 64

# Below this size, copying a record is cheaper than passing its pieces.
_SMALL_BYTES = 4096

# Linux's limit for one call; an example with a long list of large values exceeds it.
_MAX_PIECES_PER_CALL = 1024

# A reader must not allocate memory for a damaged length.
_MAX_RECORD_BYTES = 1 << 31

# Bytes of a file that are read for the lengths in them.
_MIN_BLOCK_BYTES, _MAX_BLOCK_BYTES = 1 << 12, 1 << 18

# Bytes searched for the next record after a damaged length.
_SEARCHED_BYTES = 1 << 26


def masked_crc(*pieces: bytes) -> bytes:
    """Return the masked crc32c of the joined pieces, as stored in the file (4 bytes)."""
    crc = google_crc32c.value(pieces[0])
    for piece in pieces[1:]:
        crc = google_crc32c.extend(crc, piece)
    return _CRC.pack(masked(crc))


def masked(crc: _Crc) -> _Crc:
    """Return the masked form of a crc32c, or of each of uint64 [n]."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(record: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return a record in pieces as stored in a file, with length and checksums.

    The pieces are not joined, to avoid a copy.
    """
    return frame_head(sum(map(len, record))), *record, masked_crc(*record)


@lru_cache(4096)
def frame_head(size: int) -> bytes:
    """Return the bytes before a record of ``size`` bytes."""
    length = _LENGTH.pack(size)
    return length + masked_crc(length)


def write_frames(file: IO[bytes], frames: Iterable[Sequence[bytes]], compression: str) -> int:
    """Write framed records, optionally through gzip; return the size of the file in bytes.

    The gzip header has no name and no time: the same records give the same bytes.
    """
    with FrameWriter(file, compression) as writer:
        writer.write(frames)
    return writer.bytes


class FrameWriter:
    """A writer like :func:`write_frames`, for frames that arrive in several calls.

    Leaving the context ends the gzip stream, if any; the file stays open.
    """

    def __init__(self, file: IO[bytes], compression: str) -> None:
        self._file = file
        self._sink = _CountingFile(file)
        self._gzip: gzip.GzipFile | None = None
        if compression == "gzip":
            self._gzip = gzip.GzipFile("", "wb", _GZIP_LEVEL, self._sink, mtime=0)

    def __enter__(self) -> FrameWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._gzip is not None:
            self._gzip.close()

    def write(self, frames: Iterable[Sequence[bytes]]) -> None:
        """Write framed records; afterwards, all are in the file or in gzip's buffer."""
        if self._gzip is not None:
            for pieces in frames:
                for piece in pieces:
                    self._gzip.write(piece)
            return
        waiting: list[bytes] = []
        small: list[bytes] = []
        for pieces in frames:
            # Join small records of a single piece; images have large records.
            if len(pieces) == 3 and len(pieces[1]) < _SMALL_BYTES:
                small += pieces
                if len(small) < _PIECES_PER_WRITE * 3:
                    continue
                pieces = (b"".join(small),)
                small = []
            elif small:
                waiting.append(b"".join(small))
                small = []
            waiting += pieces
            if len(waiting) >= _PIECES_PER_WRITE:
                self._sink.bytes += write_pieces(self._file, waiting)
                waiting = []
        waiting.append(b"".join(small))
        self._sink.bytes += write_pieces(self._file, waiting)

    @property
    def bytes(self) -> int:
        """The size of the file so far."""
        return self._sink.bytes


def write_pieces(file: IO[bytes], pieces: Sequence[bytes]) -> int:
    """Write pieces in order; to a local file in one call, without joining them."""
    size = sum(map(len, pieces))
    if isinstance(file, io.FileIO) and len(pieces) <= _MAX_PIECES_PER_CALL:
        written = os.writev(file.fileno(), pieces) if pieces else 0
        if written == size:
            return size
        pieces = [b"".join(pieces)[written:]]  # a signal interrupted it, or the disk is full
    for piece in pieces:
        view = memoryview(piece)
        while view:
            view = view[file.write(view) :]
    return size


class _CountingFile:
    """A binary sink that counts the bytes written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self.bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def count_frames(path: str) -> int:
    """Return the number of records in an uncompressed local file without reading the records.

    Verify the lengths, their checksums, and that the file ends with the last record.

    Raises:
        RecordError: the file is truncated or damaged; the message has the offset.
        FileNotFoundError: there is no such file.
    """
    count = offset = 0
    with storage.open_read(path) as file:
        size = file.seek(0, io.SEEK_END)
        while offset < size:
            file.seek(offset)
            head = file.read(_HEAD_BYTES)
            end = offset + _HEAD_BYTES + _record_bytes(head, path, offset) + _CRC.size
            if end > size:
                raise RecordError(f"{path}: truncated in the record at offset {offset}")
            count, offset = count + 1, end
    return count


def lengths_fit(path: str) -> bool:
    """Return whether every record of an uncompressed local file ends within the file.

    It does not read checksums, so that it takes much less time than :func:`count_frames`.

    Raises: FileNotFoundError: there is no such file.
    """
    offset, block_bytes = 0, _MIN_BLOCK_BYTES
    with storage.open_read(path) as file:
        size = file.seek(0, io.SEEK_END)
        while offset < size:
            block = os.pread(file.fileno(), block_bytes, offset)
            last = len(block) - _LENGTH.size
            at = count = 0
            while at <= last:
                at += _LENGTH.unpack_from(block, at)[0] + FRAME_BYTES
                count += 1
            if not count:
                return False
            # Of a large record only a page is read, of small ones a block with many of them.
            is_large = count == 1
            block_bytes = _MIN_BLOCK_BYTES if is_large else min(4 * block_bytes, _MAX_BLOCK_BYTES)
            offset += at
    return offset == size


def read_records(path: str) -> Iterator[bytes]:
    """Yield the records of one TFRecord file, compressed or not, and verify every checksum.

    Raises:
        RecordError: the file is truncated or damaged; the message has the offset.
        FileNotFoundError: there is no such file.
    """
    return (record for _, record in _numbered(path, None))


def read_around(path: str) -> Iterator[bytes | RecordError]:
    """Yield the records of one TFRecord file, and the error in place of a damaged record.

    A record with a wrong checksum is skipped. After a damaged length, the next record is searched
    for; one error covers all records in between. A gzip stream ends at its first damage.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if is_gzip(path):
        try:
            yield from read_records(path)
        except RecordError as exc:
            yield exc
        return
    with storage.open_read(path) as file:
        offset: int | None = 0
        while offset is not None and (head := file.read(_HEAD_BYTES)):
            try:
                record = _read_one(file, head, path, offset)
            except RecordError as exc:
                yield exc
                if (offset := _next_record(file, head, offset)) is not None:
                    file.seek(offset)
            else:
                yield record
                offset += FRAME_BYTES + len(record)


def is_gzip(path: str) -> bool:
    """Return whether a TFRecord file is compressed: by its name, or by its first bytes.

    Raises: FileNotFoundError, StorageError.
    """
    if path.endswith(_GZIP_SUFFIX):
        return True
    with storage.open_read(path) as file:
        return _holds_gzip(file, path)


def _holds_gzip(file: IO[bytes], path: str) -> bool:
    if path.endswith(_GZIP_SUFFIX):
        return True
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    # A record of about 560 kB may begin with gzip's bytes, but not with the checksum after them.
    return head.startswith(_GZIP_MAGIC) and not _is_head(head)


def _next_record(file: IO[bytes], head: bytes, offset: int) -> int | None:
    """Return the offset of the record after a damaged one, None if none is found."""
    if _is_head(head) and (size := _LENGTH.unpack_from(head)[0]) <= _MAX_RECORD_BYTES:
        return offset + FRAME_BYTES + int(size)
    start = offset + 1
    file.seek(start)
    data = file.read(_SEARCHED_BYTES)
    at = 0
    # The upper half of a length is zero; compressed images hardly contain such bytes.
    while (at := data.find(b"\0\0\0\0", at + 4) - 4) >= 0:
        if _is_head(data[at : at + _HEAD_BYTES]):
            return start + at
        at += 1
    return None


def _is_head(head: bytes) -> bool:
    """Return whether the bytes are a length and its checksum."""
    length = head[: _LENGTH.size]
    return len(head) == _HEAD_BYTES and masked_crc(length) == head[_LENGTH.size :]


def read_chosen(path: str, indexes: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Yield some records of a TFRecord file with their indexes, which start at 0, in order.

    The other records are skipped, without reading them in uncompressed local files. Indexes after
    the last record are ignored.

    Raises: as :func:`read_records`.
    """
    return _numbered(path, deque(sorted(set(indexes))))


def _numbered(path: str, wanted: deque[int] | None) -> Iterator[tuple[int, bytes]]:
    """Yield the wanted records with their indexes; all records if None."""
    with storage.open_read(path) as raw:
        file = gzip.GzipFile(fileobj=raw) if _holds_gzip(raw, path) else raw
        index = offset = 0
        try:
            while (wanted is None or wanted) and (head := file.read(_HEAD_BYTES)):
                if wanted is None or index == wanted[0]:
                    record = _read_one(file, head, path, offset)
                    yield index, record
                    offset += FRAME_BYTES + len(record)
                    if wanted:
                        wanted.popleft()
                else:
                    offset += FRAME_BYTES + _record_bytes(head, path, offset)
                    file.seek(offset)
                index += 1
        except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
            raise RecordError(f"{path}: damaged gzip stream after offset {offset}: {exc}") from exc


def _record_bytes(head: bytes, path: str, offset: int) -> int:
    """Return the length of a record from its head. Raises: RecordError: the head is damaged."""
    if len(head) < _HEAD_BYTES:
        raise RecordError(f"{path}: truncated in the record at offset {offset}")
    length = head[: _LENGTH.size]
    if masked_crc(length) != head[_LENGTH.size :]:
        raise RecordError(f"{path}: damaged record length at offset {offset}; not a TFRecord file?")
    size: int = _LENGTH.unpack(length)[0]
    if size > _MAX_RECORD_BYTES:
        raise RecordError(f"{path}: record of {size} bytes at offset {offset} is too large to read")
    return size


def _read_one(file: IO[bytes] | gzip.GzipFile, head: bytes, path: str, offset: int) -> bytes:
    size = _record_bytes(head, path, offset)
    body = file.read(size + _CRC.size)
    if len(body) < size + _CRC.size:
        raise RecordError(f"{path}: truncated in the record at offset {offset}")
    record = body[:size]
    if masked_crc(record) != body[size:]:
        raise RecordError(f"{path}: damaged record at offset {offset}: its checksum is wrong")
    return record
