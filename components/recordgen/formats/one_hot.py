"""Columns of 0 and 1, one for each class, below a header; and lists of 0 and 1.

image,cat,dog       →  the columns cat and dog are one-hot: --columns 'label=cat|dog'
1.jpg,0,1
image,label         →  the list is one-hot, and the vocabulary has the names of its classes:
1.jpg,"[0, 1]"         --columns 'label=label[cat|dog]'
id,text,rude,harsh  →  the run stops: id may be a label, too
7,Go away!,1,1
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from recordgen.core.dataset.manifest import read_vocabulary
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import NotUnderstoodError, UsageError
from recordgen.formats.by_header import field_at
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    find_columns,
    find_path,
    find_split,
)
from recordgen.formats.field_kinds import kind_of
from recordgen.formats.header import Given
from recordgen.formats.label_fields import (
    BETWEEN,
    IS_CLASS,
    UNCERTAIN,
    Classes,
    classes_of,
    one_hot_list,
    width_of_lists,
)
from recordgen.formats.other_columns import names_split
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.roles import BOX_ROLES, LABEL_COLUMNS, SEGMENT_ROLES, Columns
from recordgen.tasks import TASKS

if TYPE_CHECKING:
    from recordgen.formats.head import Head, Line


def with_one_hot(heads: Sequence[Head], options: ConvertOptions) -> ConvertOptions:
    """Return the options with the one-hot columns of files that have no other labels.

    Raises:
        UsageError: other columns may hold labels, too, or a column's name cannot be given; or the
            classes of one-hot lists have no names.
        SourceError, DataError: the vocabulary cannot be read.
    """
    given = Given.of(options)
    _check_certain(heads, options)
    is_open = options.task == AUTO or set(TASKS[options.task].columns) == {"label"}
    if not is_open or options.labels == "none" or given.header == "no":
        return options
    if label := next(filter(None, (_list_in(head, options) for head in heads)), ""):
        return replace(options, columns=_with_label(options.columns, given, label))
    if "label" in given.roles:
        return options
    names: dict[str, None] = {}
    for head in heads:
        names.update(dict.fromkeys(_one_hot(head, given, options)))
    if not names:
        return options
    label = BETWEEN.join(names)
    columns = replace(options.columns, by_role=())
    return replace(options, columns=_with_label(columns, given, label))


def _check_certain(heads: Sequence[Head], options: ConvertOptions) -> None:
    """Check that it is known what -1 and empty fields of one-hot columns mean.

    Raises: NotUnderstoodError: it is not; UsageError: there are no one-hot columns.
    """
    if options.columns.uncertain != AUTO:
        if not any(head.classes for head in heads):
            raise UsageError(
                "columns: uncertain is for one-hot columns; name them, such as label=cat|dog"
            )
        return
    lines = [(head, line) for head in heads if head.classes for line in head.lines]
    odd = [(head, line, at) for head, line in lines for at in _uncertain(head, line)]
    is_minus = any(field_at(line.fields, at) for _, line, at in odd)
    if is_minus or len(odd) > len(lines) * options.max_reject_fraction:
        head, line, at = odd[0]
        raise NotUnderstoodError(
            f"{line.where}: the one-hot column {head.names[at]!r} holds "
            f"{field_at(line.fields, at)!r}, not 0 or 1; uncertain=0 reads -1 as 0, uncertain=1 as "
            f"1, and both read an empty field as 0",
            options={"columns": str(replace(options.columns, uncertain="0"))},
        )


def _uncertain(head: Head, line: Line) -> Sequence[int]:
    """Return the one-hot columns of a line that hold -1 or nothing, beside others with a value."""
    fields = {
        at: field_at(line.fields, at) for at, name in head.classes.items() if isinstance(name, str)
    }
    return [at for at, text in fields.items() if text in UNCERTAIN and any(fields.values())]


def _with_label(columns: Columns, given: Given, label: str) -> Columns:
    by_role = Columns.of({**given.roles, "label": label}).by_role
    return replace(columns, by_role=by_role)


def _list_in(head: Head, options: ConvertOptions) -> str:
    """Return the column of one-hot lists with its classes: ``labels[cat|dog]``; "" without one.

    Raises: UsageError, SourceError, DataError: as :func:`with_one_hot`.
    """
    if not head.has_header and not head.keys:
        return ""
    places = find_columns(head.header or (), LABEL_COLUMNS)
    if len(places) != 1 or places[0] in head.classes:
        return ""
    fields = (field_at(line.fields, places[0]) for line in head.lines)
    width = width_of_lists(filter(None, fields))
    if width < 2:
        return ""
    column = head.names[places[0]].strip()
    known = read_vocabulary(options.vocabulary) if options.vocabulary else None
    names = known.names if known is not None else ()
    label = f"{column}[{BETWEEN.join(names)}]"
    if len(names) == width and one_hot_list(label, ()) == (column, tuple(names)):
        return label
    example = shlex.quote(f"label={column}[cat|dog|…]")
    raise UsageError(
        f"{head.where}: {column} holds lists of {width} times 0 or 1, as one-hot labels are, but "
        f"the names of the {width} classes are missing; name them in their order: --columns "
        f"{example}, or --vocabulary FILE with a name in each line"
    )


def _one_hot(head: Head, given: Given, options: ConvertOptions) -> Sequence[str]:
    """Return the names of the one-hot columns of a file; none if it has other labels."""
    if not head.rows or head.keys or (head.header is None and options.task == AUTO):
        return ()  # a table may have columns of texts, and of 0 and 1
    names = [name.strip() for name in head.rows[0]]
    header = given.rename(names, head.where)
    payload = [
        find_path(header, PATH_COLUMNS | TEXT_FILE_COLUMNS),
        *find_columns(header, TEXT_COLUMNS),
    ]
    used = {find_split(header), given.find_group(names, head.where), *payload}
    others = [at for at, name in enumerate(names) if name and at not in used]
    is_header = any(at < len(names) for at in payload) and not any(map(kind_of, names))
    has_labels = find_columns(header, {*LABEL_COLUMNS, *BOX_ROLES, *SEGMENT_ROLES, "sentiment"})
    rows = [row for row in head.rows[1:] if list(row) != list(head.rows[0])]
    flags = [at for at in others if _are_flags(rows, at)]
    if not is_header or has_labels or len(flags) < 2 or any(names_split(names[at]) for at in flags):
        return ()
    found = [names[at] for at in flags]
    role = "text" if payload[0] >= len(names) else "path"
    subject = names[next(at for at in payload if at < len(names))]
    example = shlex.quote(f"{role}={subject},label={BETWEEN.join(found)}")
    if unsure := [names[at] for at in others if at not in flags]:
        raise UsageError(
            f"{head.where}: {', '.join(found):.200} hold 0 and 1, as one-hot labels do, but "
            f"{', '.join(unsure):.200} hold other values; if the former are the classes, use "
            f"--columns {example}; if another column holds the labels, name it: "
            f"--columns {role}={subject},label=…"
        )
    if any(BETWEEN in name for name in found) or len(set(found)) < len(found):
        raise UsageError(
            f"{head.where}: {', '.join(found):.200} hold 0 and 1, as one-hot labels do, but the "
            f"names of classes must be different and without {BETWEEN}; rename the columns"
        )
    return found


def _are_flags(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether a column holds only 0 and 1; rows that end before it have no labels."""
    values = {field_at(row, at).lower() for row in rows if at < len(row)}
    return bool(values - {""}) and values <= {*IS_CLASS, ""}


def one_hot_classes(heads: Sequence[Head]) -> tuple[str, ...]:
    """Return the classes of the one-hot columns of files, in the order of their columns."""
    found = (each for head in heads for each in head.classes.values())
    names = (each if isinstance(each, tuple) else (each,) for each in found)
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def have_several(rows: Sequence[Sequence[str]], classes: Mapping[int, Classes]) -> bool:
    """Return whether a row of one-hot columns has several classes, or none.

    A row whose columns are empty has no labels, and decides nothing.
    """
    for row in rows:
        fields = [field_at(row, at) for at in classes]
        with suppress(AnnotationError):  # the reader rejects the row
            if any(fields) and len(classes_of(fields, [*classes.values()], "1")) != 1:
                return True
    return False
