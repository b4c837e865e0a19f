"""The physical lines of an import file, with bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from recordgen import storage
from recordgen.errors import SourceError

#: A longer line is no row of an import file and must not fill the memory.
MAX_LINE_BYTES = 256 * 1024

#: What a file begins with that Windows calls "Unicode".
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_CHUNK_BYTES = 1 << 20


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
    r"""Yield each line without its ``\n``; of an overlong one no more than its first chunk.

    Such a line is still longer than ``MAX_LINE_BYTES``, so the parser sees what it is. Lines are
    cut here because the files of some storage libraries cannot read a line of bounded length.
    """
    rest = b""
    while chunk := file.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        rest = rest[: MAX_LINE_BYTES + 1]
    if rest:
        yield rest
