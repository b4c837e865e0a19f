"""The text of a CSV record ⇄ its fields, for all readers and writers of CSV in this package."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from recordgen.errors import UsageError

if TYPE_CHECKING:
    from _csv import Reader

#: Largest record of an import file, CSV or JSONL, without the last line end.
MAX_RECORD_BYTES = 256 * 1024

#: The separators of import files, with their names.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}

_UTF8 = ("utf-8", "utf-8-sig", "ascii")

_NEEDS_QUOTES = re.compile(r'^ |[",\r\n]')


def read_fields(lines: Iterable[str], delimiter: str = ",") -> Reader:
    """Yield the fields of each record by RFC 4180, but without leading blanks.

    Quoted fields may contain the line ends of ``lines``.

    Raises: csv.Error: quotes are not balanced, or a carriage return is in a field without them.
    """
    # Python's limit on fields applies to the whole process and is below MAX_RECORD_BYTES. It is
    # only raised, never lowered, so other readers in the process are not affected.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD_BYTES))
    return csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)


def is_number(field: str) -> bool:
    """Return whether Python reads a field as a number, including ``nan``."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def csv_line(fields: Sequence[str]) -> str:
    """Return fields, which contain no NUL, as a record without a line end.

    Unlike :mod:`csv`, it quotes fields that begin with a blank, because readers remove such blanks.
    """
    return ",".join(map(_quoted, fields)) or '""'


def _quoted(field: str) -> str:
    if _NEEDS_QUOTES.search(field) is None:
        return field
    return '"' + field.replace('"', '""') + '"'


def known_encoding(name: str) -> str:
    """Return the name of an encoding as Python spells it; empty for UTF-8.

    Raises: UsageError: Python does not know it, or it is none of texts, such as ``base64``.
    """
    if not name:
        return ""
    try:
        "".encode(name)
    except (LookupError, ValueError) as exc:
        raise UsageError(
            f"encoding must be one that Python knows, such as cp1252, shift_jis, gb18030 or "
            f"utf-16-le (got {name!r})"
        ) from exc
    found = codecs.lookup(name).name
    return "" if found in _UTF8 else found
