"""The first line of a table: whether it is a header, and the names of columns.

age,job       above   58,management    a header
58,management above   44,technician    a row: the run stops, unless ``header`` says what it is
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from recordgen.core.records.number_texts import DATE
from recordgen.errors import SourceError
from recordgen.formats.by_header import without_padding
from recordgen.formats.csv_records import Item, Record, records_of
from recordgen.formats.field_kinds import NUMBER, kind_of
from recordgen.formats.other_forms import (
    OTHER_SEPARATORS,
    SEPARATE,
    SEPARATED_BY_BLANKS,
    is_separated_by_blanks,
)
from recordgen.options import AUTO, ConvertOptions
from recordgen.quoting import listed

#: So many rows show whether the first line is like them.
ROWS_BELOW = 100

# Patterns of fields that are hardly ever names; others are compared with the fields below them.
_KINDS = {"number": NUMBER, "date": re.compile(DATE), "email": re.compile(r"[^@\s]+@[^@\s]+\.\w+")}
_DIGITS = re.compile(r"\d+")


def names_of(
    first: Record, below: Iterable[Item], where: str, options: ConvertOptions
) -> list[str]:
    """Return the names of columns: the header, or numbers from 1 if the file has none.

    Args:
        first: the first record.
        below: the records after it.
        where: file and line of the first record.
        options: ``header``, and the options that name columns.

    Raises:
        SourceError: the first line is no header, or its names cannot be names of features.
    """
    fields = first.fields
    if len(fields) == 1 and "," in fields[0]:
        raise SourceError(
            f"{where}: the whole line is quoted as one field; remove the quotes around the lines"
        )
    _check_separator(fields, where)
    if options.columns.header == "no":
        return [str(number) for number, _ in enumerate(fields, start=1)]
    rows = [row for row in islice(_rows(below), ROWS_BELOW) if row != fields]
    is_open = options.columns.header == AUTO and not _is_named(fields, options)
    if is_open and (why := _why_row(fields, rows)):
        last = len(fields)
        raise SourceError(
            f"{where}: this line reads as a row, not as the names of columns: {why} "
            f"({first.text:.100}); if the file has no header, use --columns header=no, which names "
            f"its columns 1 to {last}, such as --columns header=no,target={last}; if it is the "
            f"header, use --columns header=yes"
        )
    return check_header(fields, where)


def _is_named(fields: Sequence[str], options: ConvertOptions) -> bool:
    """Return whether an option names a column of the first line by a word."""
    named = {options.columns.target, options.columns.weight, options.columns.split}
    return any(name in fields and not NUMBER.fullmatch(name) for name in named if name)


def check_header(fields: Sequence[str], where: str) -> list[str]:
    """Return the names of columns. Raises: SourceError: they cannot be names of features."""
    names = list(without_padding(fields))
    _check_separator(names, where)
    if "" in names:
        raise SourceError(
            f"{where}: column {names.index('') + 1} has no name; a table begins with a header that "
            f"names each column (if it is the index of pandas, write to_csv(…, index=False))"
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{where}: two columns are named {listed(twice)}; rename one")
    return names


def _check_separator(names: Sequence[str], where: str) -> None:
    if len(names) == 1 and is_separated_by_blanks(names[0]):
        raise SourceError(f"{where}: {SEPARATED_BY_BLANKS}")
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise SourceError(f"{where}: fields must be separated by commas")
    sign = next((sign for sign in OTHER_SEPARATORS if names and sign in names[-1]), "")
    if sign == "::" or (sign and len(names) == 1):
        raise SourceError(f"{where}: {sign} separates the fields ({names[-1]:.80}); {SEPARATE}")


def _rows(items: Iterable[Item]) -> Iterator[list[str]]:
    for item in items:
        yield from (it.fields for it in records_of(item, strip=False) if isinstance(it, Record))


def _why_row(fields: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return why a first line reads as a row of a table, or "" if it reads as a header."""
    if number := next(filter(NUMBER.fullmatch, fields), None):
        return f"{number!r} is a number"
    columns = [[row[at] for row in rows if at < len(row)] for at in range(len(fields))]
    pairs = zip(fields, columns, strict=True)
    alike = [field for field, values in pairs if field and _is_like(field, values)]
    if alike and len(alike) * 2 >= len(fields):
        return f"{alike[0]!r} is like the values below it"
    return ""


def _is_like(field: str, values: Sequence[str]) -> bool:
    """Return whether a field occurs below it, or has the kind or the form of the fields there."""
    if field in values:
        return True
    filled = list(filter(None, values))
    kind, form = _kind(field), _DIGITS.sub("#", field)
    if kind:
        return bool(filled) and all(_kind(value) == kind for value in filled)
    return "#" in form and any(form == _DIGITS.sub("#", value) for value in filled)


def _kind(field: str) -> str:
    text = field.strip()
    found = (kind for kind, pattern in _KINDS.items() if pattern.fullmatch(text))
    return next(found, "") or kind_of(text)
