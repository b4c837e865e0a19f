"""The physical lines of an import file, read in bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from recordgen import storage
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import SourceError
from recordgen.formats import foreign_formats
from recordgen.formats.encodings import not_utf8
from recordgen.rejects import RejectCode
from recordgen.tables.csv_fields import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from recordgen.formats.import_file import ImportFile

#: The first bytes of files that Windows calls "Unicode".
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: Bytes of a file that are read at once.
CHUNK_BYTES = 1 << 20


def text_of_first(raw: bytes, source: str, remedy: str) -> bytes:
    """Return the first line of an import file without its byte order mark.

    Raises:
        SourceError: the file is UTF-16; ``remedy`` is the encoding in which to save it.
    """
    if raw.startswith(UTF16_MARKS):
        raise SourceError(f"{source}: this file is UTF-16; save it as {remedy}")
    return raw.removeprefix(codecs.BOM_UTF8)


def decode_line(raw: bytes, what: str, remedy: str) -> str:
    """Return the text of a line.

    Raises:
        AnnotationError: it is not UTF-8, or longer than a record may be; ``remedy`` is for that.
    """
    if len(raw) > MAX_RECORD_BYTES:
        message = f"a {what} must be at most {MAX_RECORD_BYTES} bytes long; {remedy}"
        raise AnnotationError(RejectCode.BAD_LINE, message)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        message = not_utf8(exc, f"the {what}")
        raise AnnotationError(RejectCode.BAD_ENCODING, message) from exc


@contextmanager
def open_file(file: ImportFile) -> Iterator[Iterator[bytes]]:
    """Open an import file, or take the lines that are known. Raises: as :func:`open_lines`."""
    if file.lines is not None:
        yield iter(file.lines)
        return
    with open_lines(file.path) as lines:
        yield lines


@contextmanager
def open_lines(path: str) -> Iterator[Iterator[bytes]]:
    """Open a file as an iterator over its lines.

    Raises:
        SourceError: the file is missing or unreadable; or, when its first line is read, the file
            has another format, such as a workbook or COCO's annotations.
        StorageError: storage failed.
    """
    try:
        file = storage.open_read(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this import file: {exc.strerror or exc}") from exc
    with file:
        yield bounded_lines(file, path)


def bounded_lines(file: IO[bytes], source: str) -> Iterator[bytes]:
    r"""Yield each line without its ``\n``; an overlong line is cut off.

    A line that is cut off is still longer than ``MAX_RECORD_BYTES``, so the parser recognises it.
    Lines are cut here because some storage libraries cannot read a line of bounded length.

    Raises:
        SourceError: the file has a known format of another tool.
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
    """Check that a file with these first bytes may be an import file. Raises: SourceError."""
    found = foreign_formats.of_file(head[: foreign_formats.HEAD_BYTES])
    # Lines with objects of another tool may be single mistakes in an import file.
    if found is not None and not (found.per_line and head.lstrip().startswith(b"{")):
        raise found.error(source)
