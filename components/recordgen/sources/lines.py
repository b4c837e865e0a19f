"""The physical lines of an import file, with bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from recordgen import storage
from recordgen.errors import SourceError
from recordgen.rejects import RejectCode
from recordgen.sources import foreign_formats
from recordgen.tables.csv_fields import MAX_RECORD_BYTES
from recordgen.tasks.task import AnnotationError

#: How a file begins that Windows calls "Unicode".
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: How much of a file is read at once.
CHUNK_BYTES = 1 << 20


def text_of_first(raw: bytes, source: str, remedy: str) -> bytes:
    """Return the first line of an import file without its byte order mark.

    Raises:
        SourceError: it is UTF-16; ``remedy`` is the encoding to save it in.
    """
    if raw.startswith(UTF16_MARKS):
        raise SourceError(f"{source}: this file is UTF-16; save it as {remedy}")
    return raw.removeprefix(codecs.BOM_UTF8)


def decode_line(raw: bytes, what: str, remedy: str) -> str:
    """Return the text of a line.

    Raises:
        AnnotationError: it is not UTF-8, or longer than a record may be, with the remedy for that.
    """
    if len(raw) > MAX_RECORD_BYTES:
        message = f"a {what} must be at most {MAX_RECORD_BYTES} bytes long; {remedy}"
        raise AnnotationError(RejectCode.BAD_LINE, message)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        message = f"byte {exc.start + 1} of the {what} is not UTF-8; save the file as UTF-8"
        raise AnnotationError(RejectCode.BAD_ENCODING, message) from exc


@contextmanager
def open_lines(path: str) -> Iterator[Iterator[bytes]]:
    """Open an import file as an iterator over its lines.

    Raises:
        SourceError: it is missing or may not be read; or its first line is asked for, and it is a
            file of another format, such as a workbook or COCO's annotations.
        StorageError: storage failed.
    """
    try:
        file = storage.open_read(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this import file: {exc.strerror or exc}") from exc
    with file:
        yield bounded_lines(file, path)


def bounded_lines(file: IO[bytes], source: str) -> Iterator[bytes]:
    r"""Yield each line without its ``\n``; of an overlong one no more than its first chunk.

    Such a line is still longer than ``MAX_RECORD_BYTES``, so the parser sees what it is. Lines are
    cut here because the files of some storage libraries cannot read a line of bounded length.

    Raises:
        SourceError: the file has a known format that is not one of import files.
    """
    chunk = file.read(CHUNK_BYTES)
    _check_format(chunk, source)
    rest = b""
    while chunk:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        rest = rest[: MAX_RECORD_BYTES + 1]
        chunk = file.read(CHUNK_BYTES)
    if rest:
        yield rest


def _check_format(head: bytes, source: str) -> None:
    """Check that a file that begins so may be an import file. Raises: SourceError."""
    found = foreign_formats.of_file(head[: foreign_formats.HEAD_BYTES])
    # Objects of another tool, one per line, may be mistakes among lines of an import file.
    if found is not None and not (found.per_line and head.lstrip().startswith(b"{")):
        raise found.error(source)
