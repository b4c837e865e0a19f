"""Checks of columns against the task, the options and the first rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from recordgen.core.rows.row import Adjustments
from recordgen.core.task.task import Task
from recordgen.errors import SourceError, UsageError
from recordgen.formats import other_columns
from recordgen.formats.automl_jsonl import check_keys
from recordgen.formats.by_header import check_twice
from recordgen.formats.column_names import find_columns
from recordgen.formats.format import Format
from recordgen.formats.header import Given
from recordgen.formats.heads import Head
from recordgen.formats.import_file import ImportFile
from recordgen.formats.preview import ROWS_SHOWN
from recordgen.formats.task_parsers import has_row_parser, row_parser
from recordgen.options import ConvertOptions
from recordgen.tasks import TASKS, task_for

if TYPE_CHECKING:
    pass


@contextmanager
def first_lines_shown(head: Head) -> Iterator[None]:
    """Add the first lines of a file to a UsageError about its columns."""
    try:
        yield
    except UsageError as exc:
        rows = [f"\n  {' | '.join(row):.160}" for row in head.rows[:ROWS_SHOWN]]
        raise UsageError(f"{exc}\nthe first lines of {head.path}:{''.join(rows)}") from exc


def check_columns(
    heads: Sequence[Head], options: ConvertOptions, format_: Format, *, is_given: bool
) -> None:
    """Check columns against the task and the files. Raises: UsageError, SourceError.

    ``is_given``: the user has set the task.
    """
    if not heads or TASKS[options.task].own_columns is not None:
        return
    given, made = Given.of(options), task_for(options)
    labelled = next((head.path for head in heads if _label_columns(head, made)), "")
    for head in heads:
        check_labels(head, given, made, is_given=is_given, labelled=labelled)
        if format_.has_headers:
            with first_lines_shown(head):
                row_parser(made, Adjustments()).begin(head.rows[0], given, head.where)
        elif given.roles:
            check_keys(made, given)
    if format_.has_headers and not any(head.lines for head in heads):
        head = heads[0]
        raise SourceError(
            f"{head.where}: this file has a header ({','.join(head.rows[0]):.200}) and no rows"
        )


def _label_columns(head: Head, task: Task) -> Sequence[int]:
    """Return the columns of labels below a header of known names."""
    return find_columns(head.header or (), task.columns.get("label") or ())


def check_labels(
    head: Head, given: Given, task: Task, *, is_given: bool, labelled: str = ""
) -> None:
    """Check the columns of labels, and those that nobody chose to ignore. Raises: UsageError.

    ``labelled`` is a file with a column of labels, if there is one.
    """
    if head.header is None or not head.lines or "label" not in task.columns:
        return
    columns = row_parser(task, Adjustments()).columns_of(head.header)
    is_chosen = is_given or not given.roles.keys().isdisjoint({"path", "text", "label"})
    of_header = other_columns.of_boxes
    if len(task.columns) == 1:
        of_header = partial(other_columns.of_header, labelled=labelled)
    with first_lines_shown(head):
        check_twice(head.header, columns)
        if form := other_columns.of_split(
            head, columns, is_chosen=bool(given.roles), group=given.group
        ):
            raise UsageError(form)
        if form := of_header(head, columns, type(task), is_chosen=is_chosen):
            raise UsageError(form)


def shown_columns(
    heads: Sequence[Head],
    options: ConvertOptions,
    format_: Format | None = None,
    files: Sequence[ImportFile] = (),
) -> tuple[tuple[str, str], ...]:
    """Return pairs of a column, or of a folder, and its role; none if position decides."""
    if format_ is not None and (roles := format_.roles(files)):
        return tuple(roles)
    given = Given.of(options)
    group = ((given.group, "group"),) if given.group else ()
    if format_ is not None and format_.has_columns and not format_.has_headers:
        return (
            *((name, role) for role, names in options.columns.roles.items() for name in names),
            *group,
        )
    if not heads or heads[0].header is None or not has_row_parser(TASKS[options.task]):
        return ()
    found = row_parser(task_for(options), Adjustments()).columns_of(heads[0].header)
    columns = ((heads[0].names[at], role) for role, where in found.items() for at in where)
    return (*columns, *group)
