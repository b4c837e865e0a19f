"""A record of CSV → its fields, however long they are.

Python's reader refuses fields of more than 131,072 characters. That limit is the whole process's,
so it is not raised: what the reader may refuse is read by :func:`split_long`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

# Up to the quote that ends a field, and that quote if it stands in this line.
_QUOTED = re.compile(r'([^"]*(?:""[^"]*)*)("?)')


def is_long(text: str) -> bool:
    """Say whether Python's reader may refuse a record for the length of a field."""
    return len(text) >= csv.field_size_limit()


def split_long(lines: Iterable[str]) -> list[str]:
    r"""Return the fields of the record that lines begin with, as ``csv.reader(strict=True)`` does.

    ``'a,"b\n', 'c"\n'`` → ``["a", "b\nc"]``

    Args:
        lines: with their ends; no more of them are taken than the record has.

    Raises:
        csv.Error: quotes are not balanced, or something follows one.
    """
    following = iter(lines)
    line, at = next(following, ""), 0
    fields: list[str] = []
    while True:
        if line.startswith('"', at):
            field, line, at = _quoted(line, at + 1, following)
        else:
            end = line.find(",", at)
            field = line[at:] if end < 0 else line[at:end]
            at += len(field)
            field = field.rstrip("\r\n") if end < 0 else field
            if "\r" in field:
                raise csv.Error("carriage return in a field without quotes")
        fields.append(field)
        if not line.startswith(",", at):
            break
        at += 1
    if line[at:].strip("\r\n"):
        raise csv.Error("',' expected after '\"'")
    return fields


def _quoted(line: str, at: int, following: Iterator[str]) -> tuple[str, str, int]:
    """Return the rest of a quoted field, the line in which it ends, and where."""
    parts = []
    while found := _QUOTED.match(line, at):
        parts.append(found[1])
        if found[2]:
            return "".join(parts).replace('""', '"'), line, found.end()
        line, at = next(following, ""), 0
        if not line:
            break
    raise csv.Error("unexpected end of data")
