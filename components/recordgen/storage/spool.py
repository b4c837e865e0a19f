"""Data that wait to be read again, in memory or in a temporary file."""

from __future__ import annotations

from array import array
from tempfile import TemporaryFile
from typing import IO
from weakref import finalize

from recordgen.errors import StorageError
from recordgen.storage.local import read_at


class Spool:
    """Pieces of data by their number.

    The last ones, of so many bytes, are in memory, and the others in a file.
    """

    in_memory = 4 << 20

    def __init__(self) -> None:
        self._ends = array("q", [0])  # where each piece ends, after the start of the first
        self._last = bytearray()
        self._stored = 0
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, piece: bytes) -> int:
        """Add a piece, and return its number. Raises: StorageError: there is no room for a file."""
        self._last += piece
        self._ends.append(self._stored + len(self._last))
        if len(self._last) > self.in_memory:
            self._store()
        return len(self._ends) - 2

    def _store(self) -> None:
        try:
            if self._file is None:
                self._file = TemporaryFile(buffering=0)  # noqa: SIM115, closed with the spool
                finalize(self, self._file.close)
            self._file.seek(self._stored)
            with memoryview(self._last) as data:
                written = 0
                while written < len(data):
                    written += self._file.write(data[written:])
        except OSError as exc:
            raise StorageError(f"large data need a temporary file: {exc}; set TMPDIR") from exc
        self._stored += len(self._last)
        self._last = bytearray()

    def __getitem__(self, number: int) -> bytes:
        start, end = self._ends[number : number + 2]
        if self._file is None or start >= self._stored:
            return bytes(self._last[start - self._stored : end - self._stored])
        return read_at(self._file.fileno(), end - start, start)
