"""The physical lines of an import file, read in bounded memory, and as UTF-8.

A byte order mark shows UTF-8, UTF-16 and UTF-32; the option ``encoding`` names any other encoding.
The message about other bytes lists the encodings that they may have.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain
from typing import IO, TypeAlias

from recordgen.core.task.annotation import AnnotationError, bad_line
from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.formats import foreign_formats
from recordgen.formats.listing import open_path
from recordgen.rejects import RejectCode
from recordgen.tables.csv_fields import MAX_RECORD_BYTES

# --- encodings -----------------------------------------------------------------------------------


def not_utf8(exc: UnicodeDecodeError, what: str) -> str:
    """Return the message for a line that is not UTF-8.

    It lists encodings and guesses none: with a wrong one, the text would be another.

    Args:
        exc: the error; its ``object`` is the line.
        what: the line, in words.
    """
    some = "cp1252, cp1250, cp1251, cp932, cp949 or gb18030"
    return f"byte {exc.start + 1} of {what} is not UTF-8; name its --encoding, such as {some}"


# The longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

#: Bytes of a file that are read at once.
CHUNK_BYTES = 1 << 20

# Bytes among which NULs show UTF-16 without a mark, and their least share.
_HEAD_BYTES = 4096
_NULS_OF_UTF16 = 0.25


def mark_of(head: bytes) -> tuple[str, int]:
    """Return the encoding that a byte order mark shows, and its length; "" for UTF-8."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name, len(mark)
    return "", 0


def text_chunks(file: IO[bytes], source: str, encoding: str) -> Iterator[bytes]:
    """Yield the contents of an import file in UTF-8.

    Args:
        file: the file.
        source: its name, for messages.
        encoding: the given encoding; empty if the byte order mark decides.

    Raises: SourceError: the file does not have the given encoding, or is UTF-16 without a mark.
    """
    chunk, rest = file.read(CHUNK_BYTES), iter(partial(file.read, CHUNK_BYTES), b"")
    marked, length = mark_of(chunk)
    if not encoding and not marked:
        _check_nuls(chunk, source)
        yield from chain([chunk], rest)
        return
    name = encoding or marked
    if name not in (marked, marked[:6]) and (marked or chunk.startswith(codecs.BOM_UTF8)):
        what = f"its byte order mark shows {marked or 'utf-8'} (got encoding={name})"
        raise SourceError(f"{source}: {what}; omit the option")
    begin = length if name == marked else 0
    decoder, line = codecs.getincrementaldecoder(name)(), 1
    for data in chain([chunk[begin:]], rest, [b""]):
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as exc:
            line += exc.object[: exc.start].decode(name, "replace").count("\n")
            said = "encoding=" if encoding else "its byte order mark shows "
            what = f"byte {exc.object[exc.start]:#04x} is not {name} ({said}{name}; {exc.reason})"
            remedy = "give another --encoding, or save" if encoding else "save"
            raise SourceError(f"{source}:{line}: {what}; {remedy} the file as UTF-8") from exc
        except UnicodeError as exc:  # of no byte, such as a mark that lacks
            what = f"the file is not {name}: {exc}"
            raise SourceError(f"{source}:{line}: {what}; omit --encoding, or give another") from exc
        line += text.count("\n")
        if text:
            yield text.encode("utf-8")


def _check_nuls(head: bytes, source: str) -> None:
    """Check that a file is not UTF-16 without its byte order mark. Raises: NotUnderstoodError."""
    some = head[:_HEAD_BYTES]
    for begin, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        nuls, others = some[begin::2].count(0), some[1 - begin :: 2].count(0)
        if len(some) > 3 and nuls > _NULS_OF_UTF16 * len(some) and not others:
            raise NotUnderstoodError(f"{source}:1: NULs, as in {name}", options={"encoding": name})


def decoded_head(head: bytes) -> bytes:
    """Return the first bytes of a file in UTF-8, if its byte order mark shows its encoding."""
    name, length = mark_of(head)
    return head[length:].decode(name, "ignore").encode() if name else head


# --- lines ---------------------------------------------------------------------------------------


def decode_line(raw: bytes, what: str, remedy: str) -> str:
    """Return the text of a line.

    Raises:
        AnnotationError: it is not UTF-8, or longer than a record may be; ``remedy`` is for that.
    """
    if len(raw) > MAX_RECORD_BYTES:
        raise bad_line(f"a {what} must have at most {MAX_RECORD_BYTES} bytes; {remedy}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise AnnotationError(RejectCode.BAD_ENCODING, not_utf8(exc, f"the {what}")) from exc


#: An open file, as an iterator over its physical lines without their line feeds.
OpenLines: TypeAlias = AbstractContextManager[Iterator[bytes]]


@contextmanager
def open_lines(path: str, encoding: str) -> Iterator[Iterator[bytes]]:
    """Open a file as an iterator over its lines, in UTF-8.

    ``encoding`` is the given encoding; empty if the byte order mark decides.

    Raises:
        SourceError: the file is missing or unreadable; or, when its first line is read, the file
            has another format, such as a workbook or COCO's annotations.
        StorageError: storage failed.
    """
    with open_path(path) as file:
        yield bounded_lines(file, path, encoding)


def bounded_lines(file: IO[bytes], source: str, encoding: str = "") -> Iterator[bytes]:
    r"""Yield each line without its ``\n``; an overlong line is cut off.

    A line that is cut off is still longer than ``MAX_RECORD_BYTES``, so the parser recognises it.
    Lines are cut here because some storage libraries cannot read a line of bounded length.

    Raises: SourceError: the file has a known format of another tool, or another encoding.
    """
    return chain.from_iterable(_lines_by_chunk(file, source, encoding))


def _lines_by_chunk(file: IO[bytes], source: str, encoding: str) -> Iterator[list[bytes]]:
    rest = b""
    for number, chunk in enumerate(text_chunks(file, source, encoding)):
        found = None if number else foreign_formats.of_file(chunk[: foreign_formats.HEAD_BYTES])
        if found is not None:
            raise found.error(source)
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()[: MAX_RECORD_BYTES + 1]
        yield lines
    if rest:
        yield [rest]
