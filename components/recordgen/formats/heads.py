"""Reads the head of an import file: its first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import SourceError
from recordgen.formats.by_header import without_padding
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    find_columns,
)
from recordgen.formats.csv_records import read_blocks
from recordgen.formats.field_kinds import is_like, kind_of
from recordgen.formats.head import Head, Line
from recordgen.formats.header import Given
from recordgen.formats.label_fields import Classes
from recordgen.formats.made_columns import with_made_columns
from recordgen.formats.separators import read_separator
from recordgen.rejects import Reject


def read_csv_head(path: str, some: Sequence[bytes], given: Given) -> Head | None:
    """Return the head of a CSV file, or None if it is empty. Raises: SourceError, UsageError.

    ``some`` are the first lines of the file.
    """
    delimiter, _ = read_separator(some, path)
    items = list(with_made_columns(read_blocks(some, path), given, path))
    rejects = [item for item in items if isinstance(item, Reject)]
    blocks = (item.each(strip=True) for item in items if not isinstance(item, Reject))
    records = [record for record in chain.from_iterable(blocks) if any(record.fields)]
    if not records:
        return None
    rows = [record.fields for record in records]
    first, where = rows[0], f"{path}:{records[0].line}"
    header: Sequence[str] | None = None
    classes: Mapping[int, Classes] = {}
    has_header, in_doubt = _first_line(rows, given)
    if has_header:
        header, classes = given.rename(first, where), given.one_hot(first, where)
    elif given.roles:
        header = given.numbered(first, where)
    data = [
        Line.of(
            f"{path}:{record.line}",
            without_padding(record.fields),
            is_quoted=_is_quoted(record.text, record.fields, delimiter),
            separator=given.label_separator,
        )
        for record in records
        if not has_header or record.fields != first
    ]
    if header is not None and not has_header and data:
        given.check_numbers(given.roles, max(len(line.fields) for line in data), where)
    if rejects and not data:
        first_reject = rejects[0]
        raise SourceError(
            f"{path}:{first_reject.line}: no row below the header is readable: "
            f"{first_reject.message}"
        )
    return Head(
        path,
        where,
        rows,
        header,
        has_header,
        data,
        delimiter=delimiter,
        classes=classes,
        label_separator=given.label_separator,
        boxes=given.find_boxes(first, where) if has_header else (),
        in_doubt=in_doubt,
    )


def _first_line(rows: Sequence[Sequence[str]], given: Given) -> tuple[bool, bool]:
    """Return whether the first row is a header, and whether that is in doubt.

    It is a header if it names a known column of paths or texts, and no field is a path, a text or a
    word of ML_USE. The readers obey this decision.
    """
    first = rows[0]
    if given.settles_header:
        return given.header != "no", False
    if given.numbers_names(first):
        return True, False
    kinds = {*map(kind_of, first), "split" if first[0] and is_ml_use(first[0]) else ""}
    is_named = find_columns(first, PATH_COLUMNS | TEXT_COLUMNS | TEXT_FILE_COLUMNS)
    if is_named and kinds <= {"", "text"}:
        return "text" not in kinds, "text" in kinds
    begin, *subjects = (Line.of("", row).subject for row in rows)
    recurs = any(
        field and field in row[at : at + 1] for row in rows[1:] for at, field in enumerate(first)
    )
    is_row = any(kinds) or recurs or is_like(begin, subjects)
    return False, not is_row and len(rows) > 1


def _is_quoted(text: str, fields: Sequence[str], delimiter: str) -> bool:
    """Return whether the path or text of a row is in quotes."""
    if len(fields) > 1 and is_ml_use(fields[0]):
        text = text.partition(delimiter)[2]
    return text.lstrip().startswith('"')


def read_jsonl_head(path: str, some: Sequence[bytes], given: Given) -> Head:
    """Return the head of a JSONL file. Raises: SourceError, UsageError.

    ``some`` are the first lines of the file. If options name the keys of the path or the text, the
    objects are also rows below a header.
    """
    from recordgen.formats.automl_jsonl import parse_object, split_word  # a CSV needs neither
    from recordgen.formats.named_records import check_names, given_names, named_head

    objects: list[tuple[int, Mapping[str, Any]]] = []
    for number, raw in enumerate(some, start=1):
        with suppress(AnnotationError):  # the reader of the rows reports it
            objects.append((number, parse_object(raw)))
    names = given_names(given)
    check_names(names, (record for _, record in objects), path)
    splits = [split_word(record) for _, record in objects]
    if not {"path", "text"} & given.roles.keys():
        return Head(path, f"{path}:1", objects=objects, splits_of_objects=splits)
    values = ([*map(record.get, names)] for _, record in objects)
    head = named_head(path, names, values, given)
    return replace(head, objects=objects, splits_of_objects=splits)
