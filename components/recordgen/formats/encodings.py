"""Messages about bytes that are not UTF-8, with the encoding that they probably have."""

from __future__ import annotations

import re

_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_CYRILLIC_RUN = 4


def not_utf8(exc: UnicodeDecodeError, what: str) -> str:
    """Return the message for a line that is not UTF-8.

    Args:
        exc: the error; its ``object`` is the line.
        what: the line, in words.
    """
    name = likely_encoding(exc.object)
    return (
        f"byte {exc.start + 1} of {what} is not UTF-8, but perhaps {name}; then use --encoding "
        f"{name.lower()}"
    )


def likely_encoding(data: bytes) -> str:
    """Return the encoding of a text that is not UTF-8: GB18030, CP1251, CP932 or CP1252.

    Chinese is written in pairs of high bytes, Russian in long runs of them, Japanese (CP932) often
    with a second byte that is ASCII; in western texts, such bytes stand alone.
    """
    runs = _NOT_ASCII.findall(data)
    in_pairs = sum(len(run) for run in runs if len(run) % 2 == 0)
    if in_pairs * 10 >= 9 * sum(map(len, runs)) and _decodes(data, "gb2312"):
        return "GB18030"
    if any(len(run) >= _CYRILLIC_RUN for run in runs):
        return "CP932" if _decodes(data, "cp932") and _is_japanese(data) else "CP1251"
    return "CP1252"


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_japanese(data: bytes) -> bool:
    """Return whether a text has kana, which no other reading of CP932's bytes gives."""
    return any("\u3041" <= char <= "\u30fe" for char in data.decode("cp932"))
