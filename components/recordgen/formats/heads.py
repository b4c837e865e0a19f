"""Reads the head of an import file: its first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import SourceError
from recordgen.formats import foreign_formats
from recordgen.formats.by_header import without_padding
from recordgen.formats.csv_records import read_blocks
from recordgen.formats.first_line import first_is_header
from recordgen.formats.head import Head, Line
from recordgen.formats.header import Given
from recordgen.formats.label_fields import Classes
from recordgen.formats.layout import read_layout
from recordgen.formats.made_columns import with_made_columns
from recordgen.rejects import Reject


def read_csv_head(path: str, some: Sequence[bytes], given: Given, task: str) -> Head | None:
    """Return the head of a CSV file, or None if it is empty. Raises: SourceError, UsageError.

    ``some`` are the first lines of the file.
    """
    dialect, _ = read_layout(some, path)
    items = list(with_made_columns(read_blocks(some, path), given, path))
    rejects = [item for item in items if isinstance(item, Reject)]
    blocks = (item.each(strip=True) for item in items if not isinstance(item, Reject))
    records = [record for record in chain.from_iterable(blocks) if any(record.fields)]
    if not records:
        return None
    rows = [record.fields for record in records]
    first, where = rows[0], f"{path}:{records[0].line}"
    is_open = not (given.settles_header or given.roles)
    if is_open and (foreign := foreign_formats.of_header(first)) is not None:
        raise foreign.error(where)
    header: Sequence[str] | None = None
    classes: Mapping[int, Classes] = {}
    has_header = first_is_header(rows, given, task)
    if has_header:
        header, classes = given.rename(first, where), given.one_hot(first, where)
    elif given.roles:
        header = given.numbered(first, where)
    data = [
        Line.of(
            f"{path}:{record.line}",
            without_padding(record.fields),
            is_quoted=',"' in record.text.partition("\n")[0],
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
        dialect=dialect,
        classes=classes,
        label_separator=given.label_separator,
        boxes=given.find_boxes(first, where) if has_header else (),
    )


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
