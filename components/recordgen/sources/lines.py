"""The physical lines of an import file, with bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from recordgen import storage
from recordgen.errors import SourceError

#: A longer line is no row of an import file and must not fill the memory.
MAX_LINE_BYTES = 256 * 1024

#: What a file begins with that Windows calls "Unicode".
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: How files begin that are no text, or another one, and what to do with them.
OTHER_FILES: Mapping[bytes, str] = {
    b"PK\x03\x04": "an Excel workbook or a ZIP archive; save the sheet as CSV UTF-8, or unpack it",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save the sheet as CSV UTF-8",
    b"\x1f\x8b": "packed with gzip; unpack it",
    b"PAR1\x15": "a Parquet file; read it with pandas, and pass the DataFrame",
    b"%PDF-": "a PDF",
    b"<!doctype html": "a web page; a link to a shared file often gives one in its place",
    b"<html": "a web page; a link to a shared file often gives one in its place",
    b"<?xml": "XML; write a CSV or JSONL file that says the same",
    b"<annotation>": "XML; write a CSV or JSONL file that says the same",
}

_CHUNK_BYTES = 1 << 20


def text_of_first(raw: bytes, source: str, remedy: str) -> bytes:
    """Return the first line of an import file without its byte order mark.

    Args:
        raw: the line.
        source: the file's name.
        remedy: how to save it, should it be UTF-16: ``CSV UTF-8``.

    Raises:
        SourceError: it is UTF-16, or no such file at all.
    """
    if raw.startswith(UTF16_MARKS):
        raise SourceError(f"{source}: this file is UTF-16; save it as {remedy}")
    text = raw.removeprefix(codecs.BOM_UTF8)
    for begin, what in OTHER_FILES.items():
        if text[: len(begin)].lower() == begin.lower() and not _is_row_of_markup(text):
            raise SourceError(f"{source}: this is no import file, but {what}")
    return text


def _is_row_of_markup(text: bytes) -> bool:
    """Say whether a line is a text and its label: ``<html>Hello</html>,spam``."""
    return b'"' not in text and text.rfind(b",") > text.rfind(b">") > 0


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
