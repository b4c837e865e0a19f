"""A pandas DataFrame as a table: lines of CSV, and the types of its columns.

A row's line is its 1-based position. A column of text stays text, even if all values are digits,
and a column of floats stays one, even if it held whole numbers before pandas met its gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen.core.records.number_texts import is_marker
from recordgen.core.rows.row import batched
from recordgen.errors import UsageError
from recordgen.formats.column_stats import MAX_CLASSES, column_stats
from recordgen.formats.csv_records import TOO_LONG, Record
from recordgen.formats.dataframe import SOURCE, as_before_gaps, frame_cells, single_text
from recordgen.formats.format import Rows
from recordgen.formats.table_columns import schema_types, table_layout
from recordgen.formats.table_csv import lines_of
from recordgen.formats.table_header import check_header
from recordgen.formats.table_layout import OpenFrame, OwnColumns, columns_of_table
from recordgen.formats.table_roles import decide_table
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import MAX_RECORD_BYTES, csv_line
from recordgen.tables.roles import TABLE_ROLES

if TYPE_CHECKING:
    import pandas as pd

_DTYPES = {"integer": "int64", "floating": "float32", "mixed-integer-float": "float32"}


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
    return decide_table(header, column_stats(_records(frame, classes), header), options, types)


def open_frame(frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
    """Return the rows of a frame, and its columns. Raises: as :func:`frame_table`."""
    table = frame_table(frame, options)
    decided = replace(options, table=table.to_json())
    return OpenFrame(decided, batched(frame_lines(frame, table)), columns_of_table(table))


def wrong_role(roles: Iterable[str]) -> str:
    """Return what is wrong with the roles of columns that options give, or ""."""
    wrong = [role for role in roles if role not in ("split", *TABLE_ROLES)]
    if not wrong:
        return ""
    return (
        f"columns: a table has no role {wrong[0]!r}, only split, target and weight; name the "
        f"column to predict with --columns target=NAME"
    )


OWN_COLUMNS = OwnColumns(table_layout, open_frame, wrong_role)


def frame_lines(frame: pd.DataFrame, table: Table) -> Rows:
    """Yield the rows of a frame as lines of CSV, and a reject for each row that cannot be one."""
    return lines_of(_records(frame, table.target if table.has_labels else None), SOURCE, table)


def _classes_with_gaps(
    frame: pd.DataFrame, header: Sequence[str], options: ConvertOptions
) -> str | None:
    """Return the target if it holds numbers of classes, which gaps made floats; else None.

    Raises:
        UsageError: such a target may also hold amounts, and no option says which.
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


def _records(frame: pd.DataFrame, classes: str | None) -> Iterator[Record | Reject]:
    """Yield the rows of a frame; the column ``classes`` may hold whole numbers as floats."""
    names = [str(name) for name in frame.columns]
    for line, cells in enumerate(frame_cells(frame), start=1):
        fields = [
            single_text(as_before_gaps(cell) if name == classes else cell, name, line)
            for cell, name in zip(cells, names, strict=True)
        ]
        yield _record(line, fields)


def _record(line: int, fields: list[str]) -> Record | Reject:
    """Return a row as a record, or a reject if no CSV file could hold it."""
    if any("\0" in field for field in fields):
        message = f"a row must not hold a NUL (got {fields!r:.80})"
        return Reject(SOURCE, line, "", RejectCode.BAD_LINE.value, message)
    text = csv_line(fields)
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        message = f"a row must hold whole characters, not halves of pairs (got {text!r:.80})"
        return Reject(SOURCE, line, "", RejectCode.BAD_ENCODING.value, message)
    if size > MAX_RECORD_BYTES:
        return Reject(SOURCE, line, "", RejectCode.BAD_LINE.value, TOO_LONG)
    return Record(line, text, fields)
