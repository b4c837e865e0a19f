"""Reads the head of an import file: its first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from recordgen.formats.made_columns import with_made_columns
from recordgen.formats.path_template import PathTemplate, with_path_key
from recordgen.formats.separators import read_separator
from recordgen.rejects import Reject


def read_csv_head(path: str, some: Sequence[bytes], given: Given, task: str) -> Head | None:
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
    )


def read_jsonl_head(path: str, some: Sequence[bytes], given: Given) -> Head:
    """Return the head of a JSONL file. Raises: SourceError, UsageError.

    ``some`` are the first lines of the file. If options name the keys of the path or the text, the
    objects are also rows below a header.
    """
    from recordgen.formats.automl_jsonl import parse_object, split_word  # a CSV needs neither
    from recordgen.formats.json_keys import check_names

    objects: list[tuple[int, Mapping[str, Any]]] = []
    template = PathTemplate.of(given)
    for number, raw in enumerate(some, start=1):
        with suppress(AnnotationError):  # the reader of the rows reports it
            objects.append((number, with_path_key(parse_object(raw), template)))
    check_names((record for _, record in objects), given, path)
    splits = [split_word(record) for _, record in objects]
    if not {"path", "text"} & given.roles.keys():
        return Head(path, f"{path}:1", objects=objects, splits_of_objects=splits)
    roles = [(role, key) for role in given.roles for key in given.keys_of(role)]
    header, keys = [role for role, _ in roles], [key for _, key in roles]
    rows = [[record.get(key) for key in keys] for _, record in objects]
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    one_hot = given.one_hot_keys
    classes = {at: one_hot[key] for at, key in enumerate(keys) if key in one_hot}
    lists = {at for row in rows for at, value in enumerate(row) if isinstance(value, list)}
    found = [Line.of(path, row, separator=given.label_separator) for row in texts]
    return Head(
        path,
        f"{path}:1",
        texts,
        header,
        lines=found,
        lists=lists,
        objects=objects,
        keys=keys,
        classes=classes,
        label_separator=given.label_separator,
        splits_of_objects=splits,
    )
