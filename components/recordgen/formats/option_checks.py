"""Checks that options fit the task and the format of a source."""

from __future__ import annotations

from recordgen.errors import NotUnderstoodError, UsageError
from recordgen.formats.find_format import check_task
from recordgen.formats.format import Format
from recordgen.formats.table_layout import has_row_parser
from recordgen.options import AUTO, ConvertOptions
from recordgen.tasks import TASKS


def check_format(format_: Format, options: ConvertOptions) -> None:
    """Check that task, format, columns and the image root fit each other. Raises: UsageError."""
    task, found = options.task, format_.name
    check_task(format_, task)
    if options.columns.header != AUTO and not format_.has_headers:
        raise UsageError(f"columns: header is for CSV files (got the format {found}); omit it")
    grouping = options.grouping
    has_words = format_.has_columns or options.layout
    if grouping is not None and grouping.column and not has_words:
        raise UsageError(
            f"group_by={grouping.column} names a column, but the format {found} has none; give a "
            f"regular expression that finds the group in the uri, such as '(patient\\d+)/'"
        )
    if options.columns.roles and not (format_.has_columns or format_.numbered_roles):
        raise UsageError(f"columns is for CSV and JSONL files (got the format {found}); omit it")
    if options.image_root and not format_.has_columns:
        raise NotUnderstoodError(
            f"image_root is for CSV and JSONL files (got the format {found}, which looks for "
            f"images below the folder of its documents); pass a local document with it, or the "
            f"folder that holds both",
            options={"image_root": ""},
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
