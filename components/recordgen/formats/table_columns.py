"""The columns of a table, inferred from all rows before the first row is converted.

    age,job       above   58,management    a header
    58,management above   44,technician    a row: the run stops, unless ``header`` says what it is

A column of whole numbers is int64, a column of other numbers float32, any other column text.
Numbers must look as programs write them: ``007`` and whole numbers of more than 64 bits are text,
because they would lose digits as numbers. Empty fields are missing values and decide nothing, and
so do markers such as ``NA`` and ``?``, which are missing values if all other fields are numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from recordgen.core.records.numbers import DATE
from recordgen.core.rows.row import Adjustments
from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.formats.by_header import without_padding
from recordgen.formats.column_stats import ColumnStats, add_records
from recordgen.formats.csv_records import Item, Record, read_blocks
from recordgen.formats.field_kinds import NUMBER, is_like, kind_of
from recordgen.formats.lines import open_file
from recordgen.formats.table_csv import fitted, named, without_headers
from recordgen.formats.table_roles import decide_table, schema_types
from recordgen.messages import listed
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import Reject
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import is_number

if TYPE_CHECKING:
    from recordgen.formats.import_file import ImportFile


# So many rows show whether the first line is like them.
_ROWS_BELOW = 100

_WORDS_OF_A_NAME = 2

# Patterns of fields that are hardly ever names; others are compared with the fields below them.
_KINDS = {"number": NUMBER, "date": re.compile(DATE), "email": re.compile(r"[^@\s]+@[^@\s]+\.\w+")}


def find_table(files: Sequence[ImportFile], options: ConvertOptions) -> Table:
    """Return the columns of import files; the first file begins with a header, or none does.

    Raises:
        SourceError: a file is missing or unreadable, or begins with a different header.
        UsageError: the columns contradict the options.
    """
    header, stats = _read_all(files, options)
    table = decide_table(header, stats, options, schema_types(header, options))
    return replace(table, is_bare=options.columns.header == "no")


def _read_all(
    files: Sequence[ImportFile], options: ConvertOptions
) -> tuple[list[str], list[ColumnStats]]:
    header: list[str] = []
    stats: list[ColumnStats] = []
    header_file = ""
    for file in files:
        with open_file(file, options.encoding) as lines:
            blocks = read_blocks(lines, file.path)
            begin = list(islice(blocks, 2))
            if not begin:
                continue
            item = begin[0]
            if isinstance(item, Reject):
                if not header:
                    raise SourceError(
                        f"{file.path}:{item.line}: cannot read the header: {item.message}"
                    )
            else:
                first = next(item.each())
                where = f"{file.path}:{first.line}"
                if not header:
                    header, header_file = names_of(first, begin, where, options), file.path
                    stats = [ColumnStats() for _ in header]
                elif options.columns.header == "no":
                    _check_width(first, header, where)
                elif named(without_padding(first.fields)) != header:
                    _check_first_row(first, header, stats, file.path, header_file)
            rows = fitted(chain(begin, blocks), len(header))
            if options.columns.header != "no":
                # The reader of the rows reports repeated headers, so they are not collected here.
                rows = without_headers(rows, header, file.path, Adjustments())
            add_records(rows, stats)
    if not header:
        raise SourceError(f"{files[0].path}: this table is empty; it needs a header and rows")
    return header, stats


def _check_width(first: Record, names: Sequence[str], where: str) -> None:
    """Check that a file without a header has the columns of the first file."""
    if len(first.fields) != len(names):
        raise SourceError(
            f"{where}: the first line of the first file has {len(names)} fields (got "
            f"{len(first.fields)}: {first.text!r:.200}); convert tables with other columns "
            f"separately"
        )


def _check_first_row(
    first: Record, header: Sequence[str], stats: list[ColumnStats], path: str, header_file: str
) -> None:
    """Check that the first line of a later file is a row, since it is not the header."""
    fields = first.fields
    named = len(set(fields) & set(header))
    # Rows usually contain a number and headers do not. If all fields are text, one name is enough.
    is_header = named * 2 > len(header) or (named > 0 and not any(map(is_number, fields)))
    misfit = any(
        item.dtype != "bytes" and text.strip() and not is_number(text)
        for text, item in zip(fields, stats, strict=False)
    )
    if is_header and not any(map(is_number, fields)):
        more, lacking = {*fields} - {*header, ""}, {*header} - {*fields}
        raise NotUnderstoodError(
            f"{path}:{first.line}: this header differs from that of {header_file}, by "
            f"{listed(sorted(more | lacking)) or 'the order of its columns'}",
            source=path if len(more) > len(lacking) else header_file,
        )
    if is_header or misfit or len(fields) != len(header):
        raise SourceError(
            f"{path}:{first.line}: the first line is neither the header of the first file nor a "
            f"row that fits its columns (expected {','.join(header)!r:.200}, got "
            f"{first.text!r:.200}); convert tables with other columns separately, and repeat the "
            f"header above a row that looks like another header"
        )


# --- the first line -----------------------------------------------------------------------------


def names_of(
    first: Record, below: Iterable[Item], where: str, options: ConvertOptions
) -> list[str]:
    """Return the names of columns: the header, or numbers from 1 if the file has none.

    Args:
        first: the first record.
        below: the records of the file, or some of them.
        where: file and line of the first record.
        options: ``header``, and the options that name columns.

    Raises: SourceError: the first line is no header, or its names cannot be names of features.
    """
    fields = first.fields
    if len(fields) == 1 and "," in fields[0]:
        raise SourceError(
            f"{where}: the whole line is quoted as one field; remove the quotes around the lines"
        )
    _check_separator(fields, where)
    if options.columns.header == "no":
        return [str(number) for number, _ in enumerate(fields, start=1)]
    found = (item.rows(strip=True) for item in below if not isinstance(item, Reject))
    names = [field.strip() for field in fields]
    rows = [row for row in islice(chain.from_iterable(found), 1, _ROWS_BELOW + 1) if row != names]
    is_open = options.columns.header == AUTO and not _is_named(fields, options)
    if is_open and (why := _why_row(fields, rows)):
        raise NotUnderstoodError(
            f"{where}: this line reads as a row, not as the names of columns: {why} "
            f"({first.text:.100}); if it is the header, use --columns header=yes",
            options={"columns": f"header=no,target={len(fields)}"},
        )
    return check_header(fields, where)


def _is_named(fields: Sequence[str], options: ConvertOptions) -> bool:
    """Return whether an option names a column of the first line by a word."""
    named = {options.columns.target, options.columns.weight, options.columns.split}
    return any(name in fields and not NUMBER.fullmatch(name) for name in named if name)


def check_header(fields: Sequence[str], where: str) -> list[str]:
    """Return the names of columns. Raises: SourceError: they cannot be names of features."""
    names = named(without_padding(fields))
    _check_separator(names, where)
    if "" in names:
        raise SourceError(
            f"{where}: column {names.index('') + 1} has no name; a table begins with a header that "
            f"names each column"
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{where}: two columns are named {listed(twice)}; rename one")
    return names


def _check_separator(names: Sequence[str], where: str) -> None:
    """Check that a single column is not several that another character separates."""
    is_one = len(names) == 1
    found = is_one and any(sign in names[0] for sign in ("::", ";", "\t", "|"))
    if found or (is_one and len(names[0].split()) > _WORDS_OF_A_NAME):
        raise SourceError(
            f"{where}: fields must be separated by commas, semicolons, tabs or bars (got "
            f"{names[0]:.80})"
        )


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
    if not (kind := _kind(field)):
        return is_like(field, values)
    filled = list(filter(None, values))
    return field in values or (bool(filled) and all(_kind(value) == kind for value in filled))


def _kind(field: str) -> str:
    text = field.strip()
    found = (kind for kind, pattern in _KINDS.items() if pattern.fullmatch(text))
    return next(found, "") or kind_of(text)
