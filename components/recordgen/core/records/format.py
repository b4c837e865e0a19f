"""The interface of a record format: how records are framed in a file, and found again."""

from __future__ import annotations

import gzip
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from recordgen import storage
from recordgen.errors import RecordError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: A serialised record, or a framed one, in pieces: joining large pieces would copy them.
Record: TypeAlias = Sequence[bytes]

# Arrow's type stubs, if installed, differ from version to version.
RecordColumn: TypeAlias = Any  # pa.BinaryArray

_GZIP_SUFFIX, _GZIP_MAGIC = ".gz", b"\x1f\x8b\x08"

# Bytes of a file by which a format is recognised.
_HEAD_BYTES = 64

_GZIP_LEVEL = 6

# Many records share one write: after each write, a thread waits for the interpreter's lock.
_PIECES_PER_WRITE = 64

# Below this size, copying a record is cheaper than passing its pieces.
_SMALL_BYTES = 4096

# Linux's limit for one call; an example with a long list of large values exceeds it.
_MAX_PIECES_PER_CALL = 1024


class LengthError(ValueError):
    """No record of the expected length begins here."""


class RecordFormat(ABC):
    """How a file holds records: their frames, one after the other, possibly packed with gzip.

    Framing is apart from writing, so that threads frame (and checksum) records at the same time,
    and one of them writes.
    """

    @abstractmethod
    def frame(self, record: Record) -> Record:
        """Return a record as a file holds it."""

    @abstractmethod
    def frame_column(self, records: RecordColumn) -> bytes:
        """Return all records of an Arrow column as a file holds them, one after the other."""

    def writer(self, file: IO[bytes], compression: str) -> FrameWriter:
        """Return a writer of framed records; ``compression`` is ``none`` or ``gzip``."""
        return FrameWriter(file, compression)

    @abstractmethod
    def is_mine(self, head: bytes) -> bool:
        """Return whether a file that is not packed, with these first bytes, holds such records."""

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

    @abstractmethod
    def read(self, path: str) -> Iterator[bytes]:
        """Yield the records of a file, packed or not, and verify them.

        Raises:
            RecordError: the file is truncated or damaged; the message has the offset.
            FileNotFoundError: there is no such file.
        """

    @abstractmethod
    def read_chosen(self, path: str, indexes: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Yield some records of a file with their indexes, which start at 0, in order.

        Indexes after the last record are ignored.
        """

    @abstractmethod
    def read_placed(self, path: str) -> Iterator[tuple[int, bytes] | RecordError]:
        """Yield the records of a file that is not packed, each with the place of its first byte.

        Damaged records are an error, as in :meth:`read_around`.
        """

    @abstractmethod
    def read_around(self, path: str) -> Iterator[bytes | RecordError]:
        """Yield the records of a file, and an error in place of damaged records."""

    def lengths(self, path: str) -> Iterator[int]:
        """Yield the length of each record of a file."""
        return map(len, self.read(path))

    def count(self, path: str) -> int:
        """Return the number of records of a file."""
        return sum(1 for _ in self.lengths(path))

    @abstractmethod
    def frame_bytes(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bytes that records of these lengths take in a file (both int64 [n])."""

    @abstractmethod
    def unframed(self, frame: memoryview) -> memoryview:
        """Return the record in the bytes that one record takes in a file.

        Raises: LengthError: no record of that length begins there; ValueError: it is damaged.
        """

    @abstractmethod
    def check_lengths(self, path: str) -> None:
        """Check that every record of an uncompressed local file ends within the file."""


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
