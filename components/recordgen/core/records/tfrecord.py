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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, TypeVar

import google_crc32c
import numpy as np

from recordgen import storage
from recordgen.core.records import LengthError, Record, RecordColumn
from recordgen.errors import RecordError

if TYPE_CHECKING:
    import numpy.typing as npt

_Found = TypeVar("_Found")
_Crc = TypeVar("_Crc", int, "npt.NDArray[Any]")

_GZIP_SUFFIX, _GZIP_MAGIC = ".gz", b"\x1f\x8b\x08"

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEAD_BYTES = _LENGTH.size + _CRC.size

# Bytes of a record in a file in addition to its own.
_FRAME_BYTES = _HEAD_BYTES + _CRC.size

# A reader must not allocate memory for a damaged length.
_MAX_RECORD_BYTES = 1 << 31

# Bytes of a file that are read for the lengths in them.
_MIN_BLOCK_BYTES, _MAX_BLOCK_BYTES = 1 << 12, 1 << 18

# Smaller records are copied faster than an array of them is made.
_COPIED_BYTES = 1 << 12

# Bytes of a record that are read at once.
_PIECE_BYTES = 1 << 24

# Bytes searched for the next record after a damaged length.
_SEARCHED_BYTES = 1 << 26
_UPPER_HALF = bytes(4)


class TfRecords:
    """A length and its checksum, the record, and the record's checksum; possibly packed with gzip.

    Framing is apart from writing, so that threads frame (and checksum) records at the same time,
    and one of them writes.
    """

    def writer(self, file: IO[bytes], compression: str) -> FrameWriter:
        """Return a writer of framed records; ``compression`` is ``none`` or ``gzip``."""
        return FrameWriter(file, compression)

    def frame(self, record: Record) -> tuple[bytes, ...]:
        """Return a record in pieces as stored in a file, with length and checksums."""
        return frame_head(sum(map(len, record))), *record, masked_crc(*record)

    def frame_column(self, records: RecordColumn) -> bytes:
        """Return the records as stored in a file; only their checksums are made one by one."""
        import pyarrow as pa

        from recordgen.core.rows.columns import heads_by_size, joined, joined_by_row, values_of

        items = values_of(records)
        sums = np.fromiter(map(google_crc32c.value, items), np.uint64, len(items))
        ends = np.arange(0, 4 * len(items) + 1, 4, dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(_masked(sums).astype("<u4"))]
        checksums = pa.Array.from_buffers(pa.binary(), len(items), buffers)
        heads = heads_by_size(records, frame_head)
        return bytes(joined(joined_by_row([heads, records, checksums])))

    def is_mine(self, head: bytes) -> bool:
        """Return whether a file begins with the length of a record and the length's checksum."""
        return _is_head(head[:_HEAD_BYTES])

    def is_gzip(self, path: str) -> bool:
        """Return whether a file is packed: by its name, or by its first bytes."""
        if path.endswith(_GZIP_SUFFIX):
            return True
        with storage.open_read(path) as file:
            return self._holds_gzip(file, path)

    def _holds_gzip(self, file: IO[bytes], path: str) -> bool:
        """Return whether an open file is packed; it is at its beginning, before and after."""
        if path.endswith(_GZIP_SUFFIX):
            return True
        head = file.read(_HEAD_BYTES)
        file.seek(0)
        # A TFRecord of about 560 kB may begin with gzip's bytes.
        return head.startswith(_GZIP_MAGIC) and not self.is_mine(head)

    def read(self, path: str) -> Iterator[bytes]:
        """Yield the records of one file, packed or not, and verify every checksum.

        Raises:
            RecordError: the file is truncated or damaged; the message has the offset.
            FileNotFoundError: there is no such file.
        """
        return (record for _, record in self._numbered(path, None, _read_one))

    def read_chosen(self, path: str, indexes: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Yield some records with their indexes, which start at 0, in order.

        Indexes after the last record are ignored. The other records are skipped, without reading
        them in uncompressed local files.
        """
        return self._numbered(path, deque(sorted(set(indexes))), _read_one)

    def read_around(self, path: str) -> Iterator[bytes | RecordError]:
        """Yield the records of one file, and the error in place of a damaged record.

        A record with a wrong checksum is skipped. After a damaged length, the next record is
        searched for; one error covers all records in between. A gzip stream ends at its first
        damage.
        """
        if self.is_gzip(path):
            try:
                yield from self.read(path)
            except RecordError as exc:
                yield exc
            return
        for found in self.read_placed(path):
            yield found if isinstance(found, RecordError) else found[1]

    def read_placed(self, path: str) -> Iterator[tuple[int, bytes] | RecordError]:
        """Yield the records of one file that is not packed, and where each one begins.

        Damaged records are an error, as in :meth:`read_around`.
        """
        with _opened(path) as file:
            end = file.seek(0, io.SEEK_END)
            file.seek(0)
            offset: int | None = 0
            while offset is not None and (head := file.read(_HEAD_BYTES)):
                try:
                    size = _record_bytes(head, path, offset)
                    if offset + _FRAME_BYTES + size > end:
                        raise RecordError(f"{path}: truncated in the record at offset {offset}")
                    record = _read_one(file, size, path, offset)
                except RecordError as exc:
                    yield exc
                    if (offset := _next_record(file, head, offset)) is not None:
                        file.seek(offset)
                else:
                    yield offset + _HEAD_BYTES, record
                    offset += _FRAME_BYTES + len(record)

    def lengths(self, path: str) -> Iterator[int]:
        """Yield the length of each record.

        In a local file that is not compressed, only the lengths and their checksums are read.
        """
        if storage.is_local(path) and not self.is_gzip(path):
            return _lengths_in_heads(path)
        return (length for _, length in self._numbered(path, None, _skip_one))

    def count(self, path: str) -> int:
        """Return the number of records of a file."""
        return sum(1 for _ in self.lengths(path))

    def frame_bytes(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bytes that records of these lengths take in a file (both int64 [n])."""
        return lengths + _FRAME_BYTES

    def place_in(self, frame: bytes) -> tuple[int, int]:
        """Return where the record begins and ends in the bytes that it takes in a file.

        Raises: LengthError: no record of that length begins there; ValueError: it is damaged.
        """
        size = len(frame) - _FRAME_BYTES
        if size < 0 or _LENGTH.unpack_from(frame)[0] != size:
            raise LengthError("its head has another length")
        # The library takes a part without a copy only in a NumPy array.
        whole = frame if size < _COPIED_BYTES else np.frombuffer(frame, np.uint8)
        crc = google_crc32c.value(whole[_HEAD_BYTES : _HEAD_BYTES + size])
        if _masked(crc) != _CRC.unpack_from(frame, _HEAD_BYTES + size)[0]:
            raise ValueError("its checksum is wrong")
        return _HEAD_BYTES, _HEAD_BYTES + size

    def check_lengths(self, path: str) -> None:
        """Check that every record ends within the file.

        Checksums are not read unless a length is wrong, so that it takes much less time than
        :meth:`count`.
        """
        if not lengths_fit(path):
            self.count(path)  # raises an error that names the file and the offset

    def _numbered(
        self, path: str, wanted: deque[int] | None, read: Callable[..., _Found]
    ) -> Iterator[tuple[int, _Found]]:
        """Yield what is read of the wanted records with their indexes; of all records if None."""
        with _opened(path) as raw:
            file = gzip.GzipFile(fileobj=raw) if self._holds_gzip(raw, path) else raw
            index = offset = 0
            try:
                while (wanted is None or wanted) and (head := file.read(_HEAD_BYTES)):
                    size = _record_bytes(head, path, offset)
                    if wanted is None or index == wanted[0]:
                        yield index, read(file, size, path, offset)
                        if wanted:
                            wanted.popleft()
                    else:
                        file.seek(offset + _FRAME_BYTES + size)
                    offset += _FRAME_BYTES + size
                    index += 1
            except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
                raise RecordError(
                    f"{path}: damaged gzip stream after offset {offset}: {exc}"
                ) from exc


def _opened(path: str) -> IO[bytes]:
    try:
        return storage.open_read(path)
    except IsADirectoryError as exc:
        raise RecordError(f"{path}: expected a shard, which is a file (got a folder)") from exc


@lru_cache(4096)
def frame_head(size: int) -> bytes:
    """Return the bytes before a record of ``size`` bytes."""
    length = _LENGTH.pack(size)
    return length + masked_crc(length)


def masked_crc(*pieces: bytes) -> bytes:
    """Return the masked crc32c of the joined pieces, as stored in the file (4 bytes)."""
    crc = google_crc32c.value(pieces[0])
    for piece in pieces[1:]:
        crc = google_crc32c.extend(crc, piece)
    return _CRC.pack(_masked(crc))


def _masked(crc: _Crc) -> _Crc:
    """Return the masked form of a crc32c, or of each of uint64 [n]."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _lengths_in_heads(path: str) -> Iterator[int]:
    """Yield the lengths of records in an uncompressed local file without reading the records.

    Verify the lengths, their checksums, and that the file ends with the last record.
    """
    offset, block, block_bytes = 0, b"", _MIN_BLOCK_BYTES
    with storage.open_read(path) as file:
        size = file.seek(0, io.SEEK_END)
        at = count = 0  # in the block
        while offset < size:
            if at + _HEAD_BYTES > len(block):
                # As in lengths_fit. The file is not mapped: it may be cut while it is read.
                is_large = count <= 1
                block_bytes = (
                    _MIN_BLOCK_BYTES if is_large else min(4 * block_bytes, _MAX_BLOCK_BYTES)
                )
                block = storage.read_at(file.fileno(), block_bytes, offset)
                at = count = 0
            length = _record_bytes(block[at : at + _HEAD_BYTES], path, offset)
            frame = _FRAME_BYTES + length
            if offset + frame > size:
                raise RecordError(f"{path}: truncated in the record at offset {offset}")
            yield length
            offset += frame
            at += frame
            count += 1


def lengths_fit(path: str) -> bool:
    """Return whether every record of an uncompressed local file ends within the file.

    It does not read checksums, so that it takes much less time than :meth:`TfRecords.count`.
    """
    offset, block_bytes = 0, _MIN_BLOCK_BYTES
    with storage.open_read(path) as file:
        size = file.seek(0, io.SEEK_END)
        while offset < size:
            block = storage.read_at(file.fileno(), block_bytes, offset)
            last = len(block) - _LENGTH.size
            at = count = 0
            while at <= last:
                at += _LENGTH.unpack_from(block, at)[0] + _FRAME_BYTES
                count += 1
            if not count:
                return False
            # Of a large record only a page is read, of small ones a block with many of them.
            is_large = count == 1
            block_bytes = _MIN_BLOCK_BYTES if is_large else min(4 * block_bytes, _MAX_BLOCK_BYTES)
            offset += at
    return offset == size


def _next_record(file: IO[bytes], head: bytes, offset: int) -> int | None:
    """Return the offset of the record after a damaged one, None if none is found."""
    if _is_head(head) and (size := _LENGTH.unpack_from(head)[0]) <= _MAX_RECORD_BYTES:
        return offset + _FRAME_BYTES + int(size)
    start, block_bytes = offset + 1, _MIN_BLOCK_BYTES
    while start - offset < _SEARCHED_BYTES:
        file.seek(start)
        block = file.read(block_bytes)
        # The upper half of a length is zero; compressed images hardly contain such bytes.
        at = block.find(_UPPER_HALF, len(_UPPER_HALF)) - len(_UPPER_HALF)
        while at >= 0:
            if _is_head(block[at : at + _HEAD_BYTES]):
                return start + at
            at = block.find(_UPPER_HALF, at + len(_UPPER_HALF) + 1) - len(_UPPER_HALF)
        if len(block) < block_bytes:
            break
        # A head may begin in the block's last bytes. The next record is near, or there is none.
        start += block_bytes - _HEAD_BYTES + 1
        block_bytes = min(4 * block_bytes, _MAX_BLOCK_BYTES)
    return None


def _is_head(head: bytes) -> bool:
    """Return whether the bytes are a length and its checksum."""
    return len(head) == _HEAD_BYTES and head == frame_head(_LENGTH.unpack_from(head)[0])


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


def _read_one(file: IO[bytes] | gzip.GzipFile, size: int, path: str, offset: int) -> bytes:
    # In pieces: a length that lies takes no more memory than there are bytes.
    frame = size + _CRC.size
    body = file.read(frame) if frame <= _PIECE_BYTES else b"".join(_pieces(file, frame))
    if len(body) < frame:
        raise RecordError(f"{path}: truncated in the record at offset {offset}")
    record = body[:size]
    if masked_crc(record) != body[size:]:
        raise RecordError(f"{path}: damaged record at offset {offset}: its checksum is wrong")
    return record


def _skip_one(file: IO[bytes] | gzip.GzipFile, size: int, path: str, offset: int) -> int:
    """Return the length of a record, which is verified but not kept in memory."""
    left, crc = size, 0
    for piece in _pieces(file, size):
        crc = google_crc32c.extend(crc, piece)
        left -= len(piece)
    stored = b"" if left else file.read(_CRC.size)
    if len(stored) < _CRC.size:
        raise RecordError(f"{path}: truncated in the record at offset {offset}")
    if _CRC.pack(_masked(crc)) != stored:
        raise RecordError(f"{path}: damaged record at offset {offset}: its checksum is wrong")
    return size


def _pieces(file: IO[bytes] | gzip.GzipFile, size: int) -> Iterator[bytes]:
    """Yield the next bytes of a file; fewer at its end."""
    while size and (piece := file.read(min(size, _PIECE_BYTES))):
        size -= len(piece)
        yield piece


# --- writing --------------------------------------------------------------------------------------

_GZIP_LEVEL = 6

# Many records share one write: after each write, a thread waits for the interpreter's lock.
_PIECES_PER_WRITE = 64

# Below this size, copying a record is cheaper than passing its pieces.
_SMALL_BYTES = 4096

# Linux's limit for one call; an example with a long list of large values exceeds it.
_MAX_PIECES_PER_CALL = 1024


class FrameWriter:
    """Writes framed records to a file, optionally through gzip.

    The gzip header has no name and no time: the same records give the same bytes. Leaving the
    context ends the gzip stream, if any; the file stays open.
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
            # Join small records of a single piece between head and checksum; images have large
            # records.
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
    if isinstance(file, io.BufferedWriter) and 0 < len(pieces) <= _MAX_PIECES_PER_CALL:
        file.flush()  # what was written before comes first
        written = os.writev(file.fileno(), pieces)
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
