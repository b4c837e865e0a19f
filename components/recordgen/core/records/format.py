"""Records in pieces, and how framed ones are written to a file."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterable, Sequence
from typing import IO, Any, TypeAlias

#: A serialised record, or a framed one, in pieces: joining large pieces would copy them.
Record: TypeAlias = Sequence[bytes]

# Arrow's type stubs, if installed, differ from version to version.
RecordColumn: TypeAlias = Any  # pa.BinaryArray

_GZIP_LEVEL = 6

# Many records share one write: after each write, a thread waits for the interpreter's lock.
_PIECES_PER_WRITE = 64

# Below this size, copying a record is cheaper than passing its pieces.
_SMALL_BYTES = 4096

# Linux's limit for one call; an example with a long list of large values exceeds it.
_MAX_PIECES_PER_CALL = 1024


class LengthError(ValueError):
    """No record of the expected length begins here."""


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
