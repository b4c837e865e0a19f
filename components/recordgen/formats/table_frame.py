"""Tables as CSV, and a pandas DataFrame as a table: lines of CSV, and the types of its columns.

A row's line is its 1-based position. A column of text stays text, even if all values are digits,
and a column of floats stays one, even if it held whole numbers before pandas met its gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen.core.records.numbers import is_marker
from recordgen.core.rows.row import Adjustments, RowBatch
from recordgen.core.task.task import Task
from recordgen.errors import UsageError
from recordgen.formats.column_stats import MAX_CLASSES
from recordgen.formats.csv_records import BLOCK_LINES, TOO_LONG, Item, Records, read_blocks
from recordgen.formats.format import Layout, OpenFrame, OwnColumns, Rows
from recordgen.formats.header import Given
from recordgen.formats.named_records import (
    SOURCE,
    as_before_gaps,
    check_no_pixels,
    frame_cells,
    is_list,
)
from recordgen.formats.row_parser import columns_of_table
from recordgen.formats.table_columns import (
    check_header,
    find_table,
    fitted,
    lines_of,
    table_of,
    without_headers,
)
from recordgen.formats.table_roles import schema_types
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import MAX_RECORD_BYTES, csv_line
from recordgen.tables.roles import TABLE_ROLES
from recordgen.tasks import Tabular

if TYPE_CHECKING:
    import pandas as pd

    from recordgen.formats.import_file import ImportFile

_DTYPES = {"integer": "int64", "floating": "float32", "mixed-integer-float": "float32"}


class TableParser(OwnColumns):
    """Makes rows from the lines of tables, and from DataFrames."""

    @classmethod
    def parse_lines(
        cls, lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
    ) -> Rows:
        """Yield the lines that have a field for every column of the task, and rejects of others."""
        if not isinstance(task, Tabular):
            raise TypeError(f"{task.name} has no table")
        items = fitted(read_blocks(lines, source, adjusted), len(task.table.columns))
        if not task.table.is_bare:
            items = without_headers(items, task.table.names, source, adjusted)
        return lines_of(items, source, task.table)

    @classmethod
    def layout(cls, files: Sequence[ImportFile], options: ConvertOptions) -> Layout:
        table = find_table(files, options)
        decided = replace(options, table=table.to_json())
        return Layout(decided, columns_of_table(table), options.columns.header != "no")

    @classmethod
    def open_frame(cls, frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
        table = frame_table(frame, options)
        decided = replace(options, table=table.to_json())
        return OpenFrame(decided, frame_lines(frame, table), columns_of_table(table))

    @classmethod
    def wrong_role(cls, roles: Iterable[str]) -> str:
        wrong = [role for role in roles if role not in ("split", *TABLE_ROLES)]
        if not wrong:
            return ""
        return (
            f"columns: a table has no role {wrong[0]!r}, only split, target and weight; name the "
            f"column to predict with --columns target=NAME"
        )


def frame_table(frame: pd.DataFrame, options: ConvertOptions) -> Table:
    """Return the columns of a frame.

    Raises:
        SourceError: the names of its columns cannot be names of features.
        UsageError: the columns contradict the options.
    """
    header = check_header([str(name) for name in frame.columns], SOURCE)
    types = schema_types(header, options)
    if not types:
        types = {name: _dtype(frame.iloc[:, at]) for at, name in enumerate(header)}
    classes = _classes_with_gaps(frame, header, options)
    if classes is not None:
        types = {**types, classes: "int64"}
    return table_of(header, _records(frame, classes), options, types, SOURCE)


def frame_lines(frame: pd.DataFrame, table: Table) -> Iterator[RowBatch | Reject]:
    """Yield the rows of a frame as lines of CSV, and a reject for each row that cannot be one."""
    return lines_of(_records(frame, table.target if table.has_labels else None), SOURCE, table)


def _classes_with_gaps(
    frame: pd.DataFrame, header: Sequence[str], options: ConvertOptions
) -> str | None:
    """Return the target if it holds numbers of classes, which gaps made floats; else None.

    Raises: UsageError: such a target may also hold amounts, and no option says which.
    """
    target = options.columns.target
    if target not in header or not _was_whole(column := frame.iloc[:, header.index(target)]):
        return None
    if options.columns.prediction == AUTO and column.nunique() <= MAX_CLASSES:
        raise UsageError(
            f"the target {target!r} holds floats and gaps, and all floats are whole: use "
            f"--columns target:class={target} if they are classes, or target:number={target} if "
            f"they are amounts"
        )
    return target if options.columns.prediction == "classification" else None


def _dtype(column: pd.Series[Any]) -> str:
    import pandas as pd

    cells = column.astype(object)
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    if kind.startswith("mixed"):
        are_there = [not (isinstance(cell, str) and is_marker(cell.strip())) for cell in cells]
        kind = pd.api.types.infer_dtype(cells[np.array(are_there, bool)], skipna=True)
    return _DTYPES.get(kind, "bytes")


def _was_whole(column: pd.Series[Any]) -> bool:
    """Return whether a column of floats has gaps and otherwise only whole numbers."""
    import pandas as pd

    if not pd.api.types.is_float_dtype(column.dtype):
        return False
    present = column.dropna()
    return 0 < len(present) < len(column) and bool((present % 1 == 0).all())


def _records(frame: pd.DataFrame, classes: str | None) -> Iterator[Item]:
    """Yield the rows of a frame; the column ``classes`` may hold whole numbers as floats."""
    names = [str(name) for name in frame.columns]
    rows = (
        (
            line,
            [
                _field(as_before_gaps(cell) if name == classes else cell, name, line)
                for cell, name in zip(cells, names, strict=True)
            ],
        )
        for line, cells in enumerate(frame_cells(frame), start=1)
    )
    return table_items(rows, SOURCE)


def _field(value: Any, column: str, line: int) -> str:
    """Return a cell as a field; None is empty. Raises: UsageError: it is not a single value."""
    check_no_pixels(value, column)
    if isinstance(value, dict | bytes) or is_list(value):
        raise UsageError(
            f"row {line} of the DataFrame: column {column!r} must hold single values, and texts "
            f"that are decoded (got {value!r:.80})"
        )
    return "" if value is None else str(value)


def table_items(rows: Iterable[tuple[int, list[str] | Reject]], source: str) -> Iterator[Item]:
    """Yield numbered rows as lines of CSV, and a reject for each row that cannot be one."""
    lines, texts, quoted = list[int](), list[str](), dict[int, list[str]]()
    for line, fields in rows:
        if isinstance(fields, Reject):
            yield fields
            continue
        text = csv_line(fields)
        if (reject := _reject(source, line, text)) is not None:
            yield reject
            continue
        if '"' in text or not any(fields):
            quoted[len(texts)] = fields
        lines.append(line)
        texts.append(text)
        if len(texts) == BLOCK_LINES:
            yield Records(lines, texts, quoted)
            lines, texts, quoted = [], [], {}
    if texts:
        yield Records(lines, texts, quoted)


def _reject(source: str, line: int, text: str) -> Reject | None:
    """Return a reject for a row if no CSV file could hold it."""
    if "\0" in text:
        message = f"a row must not hold a NUL (got {text!r:.80})"
        return Reject(source, line, "", RejectCode.BAD_LINE.value, message)
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        message = f"a row must hold whole characters, not halves of pairs (got {text!r:.80})"
        return Reject(source, line, "", RejectCode.BAD_ENCODING.value, message)
    if size > MAX_RECORD_BYTES:
        return Reject(source, line, "", RejectCode.BAD_LINE.value, TOO_LONG)
    return None
