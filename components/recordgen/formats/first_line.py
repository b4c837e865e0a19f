"""Whether the first line of a file is a header, a row, or in doubt.

split,image_uri,label        known names: a header
age,job,deposit              other names above full columns: the header of a table
Review Text,Department       may be a header: the run stops and asks
TRAIN,img/1.jpg,cat          a row
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from recordgen import tasks
from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.records.numbers import is_marker
from recordgen.core.rows.row import Adjustments
from recordgen.formats.automl_csv import names_path_column
from recordgen.formats.by_header import without_padding
from recordgen.formats.column_names import KNOWN_COLUMNS, TEXT_COLUMNS, column_name, find_columns
from recordgen.formats.field_kinds import (
    BRACKETED,
    IMAGE_WORD,
    NUMBER,
    is_file,
    is_list,
    is_sentence,
    kind_of,
    mostly,
    names_media,
)
from recordgen.formats.head import Line
from recordgen.formats.header import Given
from recordgen.formats.table_layout import row_parser
from recordgen.options import AUTO
from recordgen.tasks import TASKS

#: Among this many lines, a single line that reads differently is malformed.
LINES_AROUND_A_MISTAKE = 10

# Fewer lines may be alike by chance.
_LINES_ALIKE = 3

# Usual last words of column names: "Review Text", "breed_id".
_LAST_WORDS = frozenset(
    {"id", "name", "path", "file", "filename", "url", "uri", "image", "label", "labels", "class"}
    | {"category", "text", "split", "target", "sentiment"}
)

_DIGITS = re.compile(r"\d+")


def first_is_header(rows: Sequence[Sequence[str]], given: Given, task: str) -> bool:
    """Return whether the first row is a header. The readers obey this decision."""
    if given.settles_header:
        return given.header != "no"
    first = rows[0]
    if _is_known(first, rows, task):
        return True
    return given.numbers_names(first)


def _is_known(first: Sequence[str], rows: Sequence[Sequence[str]], task: str) -> bool:
    """Return whether a first line is a header of known names, for the task if it is given."""
    made = TASKS[tasks.TextClassification.name if task == AUTO else task]()
    if row_parser(made, Adjustments()).is_header(first):
        return True
    return task == AUTO and (
        tasks.ObjectDetection.has_header(first)
        or names_path_column(first)
        or (names_text_column(first) and not is_table(rows))
    )


def names_text_column(fields: Sequence[str]) -> bool:
    """Return whether a line can only be a header that names a column of texts."""
    return (
        len(fields) > 1
        and bool(find_columns(fields, TEXT_COLUMNS))
        and not any(is_file(field) or (field and is_ml_use(field)) for field in fields)
        and not any(len(field.split()) > 3 for field in fields)
    )


def odd_first_line(rows: Sequence[Sequence[str]]) -> str:
    """Return why the first line of a file may be a header; "" if it reads as a row."""
    first, rest = without_padding(rows[0]), rows[1:]
    if not rest:
        return ""
    if len(first) > 1 and list(first) == [str(at) for at in range(len(first))]:
        return "its fields number the columns, as pandas does if they have no names"
    is_row = any(kind_of(field) or NUMBER.fullmatch(field) or is_ml_use(field) for field in first)
    if is_row or is_like(first[0], [row[0] for row in rest]):
        return ""
    if named := next(filter(_is_name, first), None):
        return f"{named!r} reads as the name of a column"
    if all(Line.of("", row).kind in ("image", "video") for row in rest):
        return "all lines below it name files, and it does not"
    for at, name in enumerate(first):
        below = [row[at] for row in rest if at < len(row)]
        filled = list(filter(None, below))
        if len(filled) >= _LINES_ALIKE and all(map(is_sentence, filled)):
            return f"all lines below {name!r} hold texts"
        forms = {_DIGITS.sub("#", value) for value in filled}
        if len(filled) >= _LINES_ALIKE and len(forms) == 1 and "#" in next(iter(forms)):
            return f"all values below {name!r} have the form {filled[0]!r}"
        if filled and all(NUMBER.fullmatch(v) or BRACKETED.fullmatch(v) for v in filled):
            return f"the column below {name!r} holds numbers"
        # A few values may repeat by chance, except in the last column, which holds the labels.
        is_label = 0 < at == len(first) - 1
        is_unlike = name not in below and len(set(below)) * 2 <= len(below)
        if is_unlike and (is_label or (first[1:] and len(below) >= LINES_AROUND_A_MISTAKE)):
            return f"{name!r} occurs in no other line, and the values below it repeat"
    return ""


def _is_name(field: str) -> bool:
    name = column_name(field)
    last = name.rpartition("_")[2] if name != field else name
    return name in KNOWN_COLUMNS or last in _LAST_WORDS


def numbers_columns(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first line names columns by words and then by years, or other numbers.

    ``country,1850,1860,1870`` above rows of numbers: its numbers rise evenly, and those of no row
    do; and each word is unlike the values below it.
    """
    at = [n for n, name in enumerate(first) if NUMBER.fullmatch(name)]
    whole = [row for row in rows if len(row) == len(first)]
    if 0 in at or len(at) < _LINES_ALIKE or min(len(whole), len(rows)) < _LINES_ALIKE:
        return False
    columns = list(zip(*whole, strict=True))
    values = [value for n in at for value in columns[n] if value and not is_marker(value)]
    return (
        _rise_evenly([first[n] for n in at])
        and not any(_rise_evenly([row[n] for n in at]) for row in whole)
        and all(map(NUMBER.fullmatch, values))
        and not any(
            not name or is_marker(name) or is_like(name, columns[n])
            for n, name in enumerate(first)
            if n not in at
        )
    )


def _rise_evenly(numbers: Sequence[str]) -> bool:
    """Return whether whole numbers rise by the same step: ``1850,1860,1870``."""
    if not all(number.isdecimal() and number.isascii() for number in numbers):
        return False
    steps = {int(later) - int(number) for number, later in pairwise(numbers)}
    return len(steps) == 1 and min(steps) > 0


def is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line names the columns that the other lines fill."""
    names, others = list(rows[0]), rows[1:]
    whole = [row for row in others if len(row) == len(names)]
    if not whole or len(whole) * 2 < len(others):
        return False
    columns = list(zip(*whole, strict=True))
    if not names[0] and _are_numbers(columns[0]):
        # An index that pandas wrote; the reader of the table reports the missing name.
        names, columns = names[1:], columns[1:]
    names = list(without_padding(names))
    if len(names) < 2 or not all(names) or len(set(names)) < len(names) or is_ml_use(names[0]):
        return False
    is_numbered = numbers_columns(names, rows[1:])
    if any(map(_holds_payloads, columns)) or (
        not is_numbered and any(map(_is_no_name, names, columns))
    ):
        return False
    # Two columns of numbers have words above them: a value may have the name of its column.
    if sum(map(_are_numbers, columns)) < 2 and any(map(is_like, names, columns)):
        return False
    has_sentences = any(is_sentence(field) for column in columns for field in column)
    if len(names) == 2 and has_sentences:
        return False  # just as likely a text and its label
    return any(map(_are_numbers, columns)) or (len(names) > 2 and not has_sentences)


def _holds_payloads(column: Sequence[str]) -> bool:
    """Return whether most fields name images or videos: addresses of other pages may be few."""
    return mostly(lambda field: kind_of(field) in ("image", "video"), list(filter(None, column)))


def _is_no_name(name: str, values: Sequence[str]) -> bool:
    is_path = "/" in name and any("/" in value for value in values)
    is_file = names_media(name) or is_list(name) or is_path
    return bool(is_file or IMAGE_WORD.search(name) or NUMBER.fullmatch(name))


def _are_numbers(column: Iterable[str]) -> bool:
    """Return whether all filled fields are numbers, and at least one is filled."""
    filled = [field for field in column if field]
    return bool(filled) and all(map(NUMBER.fullmatch, filled))


def is_like(name: str, values: Sequence[str]) -> bool:
    """Return whether a field occurs below it, or differs only in its number: ``img0``, ``img1``."""
    pattern = _DIGITS.sub("#", name)
    return name in values or (
        "#" in pattern and any(pattern == _DIGITS.sub("#", value) for value in values)
    )
