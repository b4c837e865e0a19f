"""Columns of 0 and 1, one for each class, below a header.

image,cat,dog    →  the columns cat and dog are one-hot: --columns 'label=cat|dog'
1.jpg,0,1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from recordgen.core.task.annotation import AnnotationError
from recordgen.formats.by_header import field_at
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    find_columns,
    find_path,
    find_split,
)
from recordgen.formats.field_kinds import filled_at
from recordgen.formats.head import Head
from recordgen.formats.header import Given
from recordgen.formats.label_fields import BETWEEN, IS_CLASS, Classes, classes_of
from recordgen.formats.split_names import names_split
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.roles import BOX_ROLES, LABEL_COLUMNS, SEGMENT_ROLES, Columns
from recordgen.tasks import TASKS


def with_one_hot(heads: Sequence[Head], options: ConvertOptions) -> ConvertOptions:
    """Return the options with the columns of 0 and 1, if all columns beside the payload are."""
    given = Given.of(options)
    is_open = options.task == AUTO or {*TASKS[options.task].columns} == {"label"}
    if not is_open or options.labels == "none" or "label" in given.roles:
        return options
    found = dict.fromkeys(chain.from_iterable(map(_flags, heads)))
    if not found:
        return options
    roles = {**given.roles, "label": BETWEEN.join(found)}
    columns = replace(options.columns, by_role=Columns.of(roles).by_role)
    return replace(options, columns=columns)


def _flags(head: Head) -> Sequence[str]:
    """Return the columns of 0 and 1 beside the payload; none if other columns have another use."""
    header = head.header or ()
    others_known = {*LABEL_COLUMNS, *BOX_ROLES, *SEGMENT_ROLES, "sentiment"}
    if not head.has_header or head.classes or find_columns(header, others_known):
        return ()
    used = {find_split(header), find_path(header, PATH_COLUMNS | TEXT_FILE_COLUMNS)}
    used |= {*find_columns(header, TEXT_COLUMNS)}
    others = [at for at, name in enumerate(head.names) if name.strip() and at not in used]
    rows = [line.fields for line in head.lines]
    names = [head.names[at].strip() for at in others]
    are_classes = len({*names}) == len(names) > 1 and not any(
        BETWEEN in name or names_split(name) for name in names
    )
    return names if are_classes and all(_are_flags(rows, at) for at in others) else ()


def _are_flags(rows: Sequence[Sequence[str]], at: int) -> bool:
    values = {*map(str.lower, filled_at(rows, at))}
    return bool(values) and values <= IS_CLASS.keys()


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
            if any(fields) and len(classes_of(fields, [*classes.values()])) != 1:
                return True
    return False
