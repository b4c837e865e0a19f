"""A pandas DataFrame as a table: lines of CSV, and the types of its columns.

A row's line is its 1-based position. A column of whole floats with gaps held whole numbers before
pandas read it; a column of text stays text, even if all values are digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recordgen.options import ConvertOptions
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import RowBatch
from recordgen.sources.csv_records import TOO_LONG, Record
from recordgen.sources.dataframe import SOURCE, as_before_gaps, frame_cells, single_text
from recordgen.sources.table_columns import check_header, column_stats, decide_table, schema_types
from recordgen.sources.table_csv import lines_of
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import MAX_RECORD_BYTES, csv_line

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
    return decide_table(header, column_stats(_records(frame), header), options, types)


def frame_lines(frame: pd.DataFrame, table: Table) -> Iterator[RowBatch | Reject]:
    """Yield the rows of a frame as lines of CSV, and a reject for each row that cannot be one."""
    return lines_of(_records(frame), SOURCE, table)


def _dtype(column: pd.Series[Any]) -> str:
    import pandas as pd

    kind = pd.api.types.infer_dtype(column.astype(object), skipna=True)
    return "int64" if _was_whole(column) else _DTYPES.get(kind, "bytes")


def _was_whole(column: pd.Series[Any]) -> bool:
    """Return whether a column of floats has gaps and otherwise only whole numbers."""
    import pandas as pd

    if not pd.api.types.is_float_dtype(column.dtype):
        return False
    present = column.dropna()
    return 0 < len(present) < len(column) and bool((present % 1 == 0).all())


def _records(frame: pd.DataFrame) -> Iterator[Record | Reject]:
    names = [str(name) for name in frame.columns]
    whole = [_was_whole(frame.iloc[:, at]) for at in range(len(names))]
    for line, cells in enumerate(frame_cells(frame), start=1):
        fields = [
            single_text(as_before_gaps(cell) if is_whole else cell, name, line)
            for cell, name, is_whole in zip(cells, names, whole, strict=True)
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
