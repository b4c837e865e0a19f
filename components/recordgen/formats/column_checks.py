"""Checks of columns against the task, the options and the first rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from recordgen.core.rows.row import Adjustments
from recordgen.core.task.task import Task
from recordgen.errors import SourceError, UsageError
from recordgen.formats import other_columns
from recordgen.formats.ambiguous_headers import table_of_images
from recordgen.formats.by_header import check_twice
from recordgen.formats.column_names import find_columns
from recordgen.formats.find_format import check_task
from recordgen.formats.format import Format
from recordgen.formats.head import Head
from recordgen.formats.header import Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.label_fields import BETWEEN
from recordgen.formats.one_hot import one_hot_classes
from recordgen.formats.row_reader import ROWS_SHOWN
from recordgen.formats.table_layout import has_row_parser, own_columns, row_parser
from recordgen.messages import listed
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.roles import BOX_LISTS, BOX_ROLES
from recordgen.tasks import TASKS, task_for


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
    if not heads or own_columns(TASKS[options.task]) is not None:
        for form in map(table_of_images, [] if is_given or options.of_tables() else heads):
            if form:
                raise UsageError(form)
        return
    given, made = Given.of(options), task_for(options)
    known = made.columns.get("label") or ()
    labelled = next((it.path for it in heads if find_columns(it.header or (), known)), "")
    for head in heads:
        check_labels(head, given, made, is_given=is_given, labelled=labelled)
        if format_.has_headers:
            with first_lines_shown(head):
                row_parser(made, Adjustments()).begin(head.rows[0], given, head.where)
        elif given.roles:
            from recordgen.formats.json_keys import check_keys  # a CSV has no keys

            check_keys(made, given)
    if format_.has_headers and not any(head.lines for head in heads):
        head = heads[0]
        raise SourceError(
            f"{head.where}: this file has a header ({','.join(head.rows[0]):.200}) and no rows"
        )


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
    head = heads[0]
    found = row_parser(task_for(options), Adjustments()).columns_of(head.header or ())
    columns = [
        (head.names[at], role)
        for role, where in found.items()
        for at in where
        if at not in head.classes
    ]
    if head.boxes:
        form, name = head.boxes
        columns = [pair for pair in columns if pair[1] not in BOX_ROLES] + [(name, form)]
    if head.classes:
        columns.append((listed(one_hot_classes([head]), str, between=BETWEEN), "one-hot labels"))
    return (*columns, *group)


def check_format(format_: Format, options: ConvertOptions) -> None:
    """Check that task, format and columns fit each other. Raises: UsageError."""
    task, found = options.task, format_.name
    check_task(format_, task)
    if options.columns.header != AUTO and not format_.has_headers:
        raise UsageError(f"columns: header is for CSV files (got the format {found}); omit it")
    grouping = options.grouping
    if grouping is not None and grouping.column and not format_.has_columns:
        raise UsageError(
            f"group_by={grouping.column} names a column, but the format {found} has none; give a "
            f"regular expression that finds the group in the uri, such as '(patient\\d+)/'"
        )
    if options.columns.roles and not (format_.has_columns or format_.numbered_roles):
        raise UsageError(f"columns is for CSV and JSONL files (got the format {found}); omit it")
    if Given.of(options).boxes and not format_.has_headers:
        raise UsageError(
            f"columns: {' and '.join(BOX_LISTS)} are for CSV files and DataFrames (got the format "
            f"{found}); omit it"
        )
    if options.image_root and not format_.has_columns:
        raise UsageError(
            f"image_root is for CSV and JSONL files (got the format {found}, which finds its "
            f"images itself); omit it"
        )
    if options.encoding and not format_.is_decoded:
        raise UsageError(f"encoding is for lines and texts (got the format {found}); omit it")
    has_fields = format_.has_headers or "label" in options.columns.roles
    check_separator(options, found if not format_.has_columns or not has_fields else "")


def check_image_root(options: ConvertOptions) -> None:
    """Check that rows of a task name files if their root is given. Raises: UsageError."""
    if options.image_root and not TASKS[options.task].names_payloads:
        raise UsageError(
            f"image_root is for rows that name files, and those of {options.task} do not; omit it, "
            f"or name the columns of the images: --columns path=…,label=…"
        )


def check_separator(options: ConvertOptions, without_fields: str) -> None:
    """Check that labels are fields of rows if a separator of them is given. Raises: UsageError.

    ``without_fields`` is the format, if its labels are no fields.
    """
    if not options.label_separator:
        return
    if without_fields:
        raise UsageError(
            f"label_separator divides fields of labels, which CSV files have, and JSONL files with "
            f"--columns label=KEY (got the format {without_fields}); omit it"
        )
    if not has_row_parser(TASKS[options.task]) or set(TASKS[options.task].columns) != {"label"}:
        raise UsageError(f"label_separator is for labels, which {options.task} does not have")
