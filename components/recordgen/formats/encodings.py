"""Import files in other encodings than UTF-8, read as UTF-8, and the message about other bytes.

A byte order mark shows UTF-8, UTF-16 and UTF-32; the option ``encoding`` names any other encoding.
The message lists the encodings that bytes may have.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import IO

from recordgen.errors import NotUnderstoodError, SourceError


def not_utf8(exc: UnicodeDecodeError, what: str) -> str:
    """Return the message for a line that is not UTF-8.

    It lists encodings and guesses none: with a wrong one, the text would be another.

    Args:
        exc: the error; its ``object`` is the line.
        what: the line, in words.
    """
    return (
        f"byte {exc.start + 1} of {what} is not UTF-8; name the encoding with --encoding, such as "
        f"cp1252, cp1250, cp1251, cp932, cp949 or gb18030"
    )


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


def text_chunks(
    file: IO[bytes], source: str, encoding: str, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[bytes]:
    """Yield the contents of an import file in UTF-8.

    Args:
        file: the file.
        source: its name, for messages.
        encoding: the given encoding; empty if the byte order mark decides.
        chunk_bytes: how many bytes of the file are read at a time.

    Raises: SourceError: the file does not have the given encoding, or is UTF-16 without a mark.
    """
    chunk = file.read(chunk_bytes)
    marked, length = mark_of(chunk)
    if not encoding and not marked:
        _check_nuls(chunk, source)
        while chunk:
            yield chunk
            chunk = file.read(chunk_bytes)
        return
    name = encoding or marked
    if name not in (marked, marked[:6]) and (marked or chunk.startswith(codecs.BOM_UTF8)):
        raise SourceError(
            f"{source}: its byte order mark shows {marked or 'utf-8'} (got encoding={name}); omit "
            f"the option"
        )
    begin = length if name == marked else 0
    decoder, line = codecs.getincrementaldecoder(name)(), 1
    is_last = False
    data = chunk[begin:]
    while not is_last:
        is_last = not data
        try:
            text = decoder.decode(data, is_last)
        except UnicodeDecodeError as exc:
            line += exc.object[: exc.start].decode(name, "replace").count("\n")
            raise _not_decoded(exc, f"{source}:{line}", name, is_given=bool(encoding)) from exc
        line += text.count("\n")
        if text:
            yield text.encode("utf-8")
        data = file.read(chunk_bytes)


def _not_decoded(exc: UnicodeDecodeError, where: str, name: str, *, is_given: bool) -> SourceError:
    byte = exc.object[exc.start]
    source = "encoding=" if is_given else "its byte order mark shows "
    return SourceError(
        f"{where}: byte {byte:#04x} is not {name} ({source}{name}; {exc.reason}); give the "
        f"encoding of the file with --encoding, or save it as UTF-8"
    )


def _check_nuls(head: bytes, source: str) -> None:
    """Check that a file is not UTF-16 without its byte order mark. Raises: NotUnderstoodError."""
    some = head[:_HEAD_BYTES]
    for begin, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        nuls, others = some[begin::2].count(0), some[1 - begin :: 2].count(0)
        if len(some) > 3 and nuls > _NULS_OF_UTF16 * len(some) and not others:
            raise NotUnderstoodError(
                f"{source}:1: every second byte is NUL, as in {name}", options={"encoding": name}
            )


def decoded_head(head: bytes) -> bytes:
    """Return the first bytes of a file in UTF-8, if its byte order mark shows its encoding."""
    name, length = mark_of(head)
    return head[length:].decode(name, "ignore").encode() if name else head
