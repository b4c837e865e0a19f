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
from recordgen.errors import NotUnderstoodError, UsageError
from recordgen.formats import column_names
from recordgen.formats.field_kinds import field_at
from recordgen.formats.head import Head, Line
from recordgen.formats.header import Given
from recordgen.formats.label_fields import BETWEEN, IS_CLASS, UNCERTAIN, Classes, classes_of
from recordgen.formats.split_names import names_split
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.roles import BOX_ROLES, LABEL_COLUMNS, SEGMENT_ROLES, Columns
from recordgen.tasks import TASKS


def with_one_hot(heads: Sequence[Head], options: ConvertOptions) -> ConvertOptions:
    """Return the options with the columns of 0 and 1, if all columns beside the payload are."""
    given = Given.of(options)
    _check_certain(heads, options)
    is_open = options.task == AUTO or {*TASKS[options.task].columns} == {"label"}
    if not is_open or options.labels == "none" or "label" in given.roles:
        return options
    found = dict.fromkeys(chain.from_iterable(map(_flags, heads)))
    if not found:
        return options
    roles = {**given.roles, "label": BETWEEN.join(found)}
    columns = replace(options.columns, by_role=Columns.of(roles).by_role)
    return replace(options, columns=columns)


def _check_certain(heads: Sequence[Head], options: ConvertOptions) -> None:
    """Check that it is known what -1 and empty fields of one-hot columns mean.

    Raises: NotUnderstoodError: it is not; UsageError: there are no one-hot columns.
    """
    if options.columns.uncertain != AUTO:
        if not any(head.classes for head in heads):
            raise UsageError("columns: uncertain needs one-hot columns, such as label=cat|dog")
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


def _flags(head: Head) -> Sequence[str]:
    """Return the columns of 0 and 1 beside the payload; none if other columns have another use."""
    header = head.header or ()
    others_known = {*LABEL_COLUMNS, *BOX_ROLES, *SEGMENT_ROLES, "sentiment"}
    if not head.has_header or head.classes or column_names.find_columns(header, others_known):
        return ()
    paths = column_names.PATH_COLUMNS | column_names.TEXT_FILE_COLUMNS
    used = {column_names.find_split(header), column_names.find_path(header, paths)}
    used |= {*column_names.find_columns(header, column_names.TEXT_COLUMNS)}
    others = [at for at, name in enumerate(head.names) if name.strip() and at not in used]
    names = [head.names[at].strip() for at in others]
    has_others = any(BETWEEN in name or names_split(name) for name in names)
    are_classes = len({*names}) == len(names) > 1 and not has_others
    return names if are_classes and all(_are_flags(head.filled(at)) for at in others) else ()


def _are_flags(values: Sequence[str]) -> bool:
    return bool(values) and {*map(str.lower, values)} <= IS_CLASS.keys()


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
