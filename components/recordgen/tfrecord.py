"""TFRecord files: the framing that ``tf.io.TFRecordWriter`` writes, over any file object.

"TFRecord and tf.train.Example", tensorflow.org: ``uint64 length, uint32 masked_crc32c(length),
byte data[length], uint32 masked_crc32c(data)``, all little-endian.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import google_crc32c

from recordgen import storage
from recordgen.errors import RecordError

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEAD_BYTES = _LENGTH.size + _CRC.size

_GZIP_LEVEL = 6

# A reader must not allocate what a damaged length says.
_MAX_RECORD_BYTES = 1 << 31


def masked_crc(data: bytes) -> bytes:
    """Return the masked crc32c of ``data`` as it stands in the file (4 bytes)."""
    crc = google_crc32c.value(data)
    return _CRC.pack((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(record: bytes) -> bytes:
    """Return one record with its length and checksums around it."""
    length = _LENGTH.pack(len(record))
    return b"".join((length, masked_crc(length), record, masked_crc(record)))


class HashingFile:
    """A binary sink that counts and hashes what passes through.

    Attributes:
        bytes: how many bytes were written.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        """Write and hash ``data``."""
        self._hash.update(data)
        self.bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Flush the file below."""
        self._file.flush()

    def sha256(self) -> str:
        """Return the sha256 (hex) of all bytes written."""
        return self._hash.hexdigest()


@contextmanager
def compressed(sink: HashingFile, compression: str) -> Iterator[Callable[[bytes], int]]:
    """Give the function that writes a frame into ``sink``, through gzip if asked for.

    The gzip header carries no name and no time: same records, same bytes.
    """
    if compression != "gzip":
        yield sink.write
        return
    with gzip.GzipFile("", "wb", _GZIP_LEVEL, sink, mtime=0) as file:
        yield file.write


def read_records(path: str) -> Iterator[bytes]:
    """Yield the records of one TFRecord file, ``.gz`` or not, with every checksum verified.

    Raises:
        RecordError: the file is truncated or damaged; says at which offset.
        FileNotFoundError: there is no such file.
    """
    with storage.open_read(path) as raw:
        file = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw
        offset = 0
        try:
            while head := file.read(_HEAD_BYTES):
                record = _read_one(file, head, path, offset)
                yield record
                offset += _HEAD_BYTES + len(record) + _CRC.size
        except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
            raise RecordError(f"{path}: damaged gzip stream after offset {offset}: {exc}") from exc


def _read_one(file: IO[bytes] | gzip.GzipFile, head: bytes, path: str, offset: int) -> bytes:
    length = head[: _LENGTH.size]
    if len(head) == _HEAD_BYTES and masked_crc(length) != head[_LENGTH.size :]:
        raise RecordError(f"{path}: damaged record length at offset {offset}; not a TFRecord file?")
    size = _LENGTH.unpack(length)[0] if len(head) == _HEAD_BYTES else 0
    if size > _MAX_RECORD_BYTES:
        raise RecordError(f"{path}: record of {size} bytes at offset {offset} is too large to read")
    body = file.read(size + _CRC.size)
    if len(head) < _HEAD_BYTES or len(body) < size + _CRC.size:
        raise RecordError(f"{path}: truncated in the record at offset {offset}")
    record = body[:size]
    if masked_crc(record) != body[size:]:
        raise RecordError(f"{path}: damaged record at offset {offset}: its checksum is wrong")
    return record
