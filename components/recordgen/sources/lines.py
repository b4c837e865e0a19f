"""The physical lines of an import file, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from recordgen import storage
from recordgen.errors import SourceError

#: A longer line is no row of an import file and must not fill the memory.
MAX_LINE_BYTES = 64 * 1024


@contextmanager
def open_lines(path: str) -> Iterator[Iterator[bytes]]:
    """Open an import file as an iterator over its lines.

    Raises:
        SourceError: it is missing or may not be read.
        StorageError: storage failed.
    """
    try:
        file = storage.open_read(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this import file: {exc.strerror or exc}") from exc
    with file:
        yield bounded_lines(file)


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield each line once; of a line beyond ``MAX_LINE_BYTES`` only its first part.

    The first part is one byte longer than allowed, so that the parser sees that it is too long.
    """
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES + 1)
