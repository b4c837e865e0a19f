"""The physical lines of an import file, read in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from recordgen import storage
from recordgen.core import allowance
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import SourceError
from recordgen.formats import foreign_formats
from recordgen.formats.encodings import CHUNK_BYTES, not_utf8, text_chunks
from recordgen.rejects import RejectCode
from recordgen.tables.csv_fields import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from recordgen.formats.import_file import ImportFile


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
def open_file(file: ImportFile, encoding: str) -> Iterator[Iterator[bytes]]:
    """Open an import file, or take the lines that are known. Raises: as :func:`open_lines`."""
    if file.lines is not None:
        yield iter(file.lines)
        return
    with open_lines(file.path, encoding) as lines:
        yield lines


@contextmanager
def open_lines(path: str, encoding: str) -> Iterator[Iterator[bytes]]:
    """Open a file as an iterator over its lines, in UTF-8.

    ``encoding`` is the given encoding; empty if the byte order mark decides.

    Raises:
        SourceError: the file is missing or unreadable; or, when its first line is read, the file
            has another format, such as a workbook or COCO's annotations.
        StorageError: storage failed.
    """
    try:
        file = storage.open_read(path)
        allowance.grow_by(file)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this import file: {exc.strerror or exc}") from exc
    with file:
        yield bounded_lines(file, path, encoding)


def bounded_lines(
    file: IO[bytes], source: str, encoding: str = "", chunk_bytes: int = CHUNK_BYTES
) -> Iterator[bytes]:
    r"""Yield each line without its ``\n``; an overlong line is cut off.

    A line that is cut off is still longer than ``MAX_RECORD_BYTES``, so the parser recognises it.
    Lines are cut here because some storage libraries cannot read a line of bounded length.

    Raises: SourceError: the file has a known format of another tool, or another encoding.
    """
    rest = b""
    for number, chunk in enumerate(text_chunks(file, source, encoding, chunk_bytes)):
        if number == 0:
            _check_format(chunk, source)
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        rest = rest[: MAX_RECORD_BYTES + 1]
    if rest:
        yield rest


def _check_format(head: bytes, source: str) -> None:
    """Check that a file with these first bytes may be an import file. Raises: SourceError."""
    found = foreign_formats.of_file(head[: foreign_formats.HEAD_BYTES])
    if found is not None:
        raise found.error(source)
