"""The text of one CSV record ⇄ its fields, for every reader and writer of CSV in this package."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

#: Longest record of an import file, CSV or JSONL, without the end of its last line.
MAX_RECORD_BYTES = 256 * 1024

#: What separates the fields of import files, and its name.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}

_NEEDS_QUOTES = re.compile(r'^ |[",\r\n]')


def read_fields(lines: Iterable[str], delimiter: str = ",") -> Iterator[list[str]]:
    r"""Yield the fields of each record, by RFC 4180, but without the blanks before them.

    Args:
        lines: with their ends, of which a quoted field may hold some.
        delimiter: the sign that separates fields.

    Raises:
        csv.Error: quotes are not balanced, something follows a closing quote, or a carriage return
            stands inside a field without quotes.
    """
    # Python's limit on fields is the whole process's, and below that of records. It is only ever
    # raised, so no other reader refuses a file because of this one.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD_BYTES))
    return csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)


def split_plain(text: str) -> list[str]:
    """Return the fields of a record without quotes, separated by commas, without leading blanks."""
    fields = text.split(",")
    if ", " in text or text[:1] == " ":
        return [field.lstrip(" ") for field in fields]
    return fields


def is_number(field: str) -> bool:
    """Say whether a field is a number as Python writes and reads it, which may be ``nan``."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def csv_line(fields: Sequence[str]) -> str:
    """Return fields, which hold no NUL, as a record separated by commas, without a line's end.

    Unlike csv's own writer, it quotes fields that begin with a blank, which would not count.
    """
    return ",".join(map(_quoted, fields)) or '""'


def _quoted(field: str) -> str:
    if _NEEDS_QUOTES.search(field) is None:
        return field
    return '"' + field.replace('"', '""') + '"'
