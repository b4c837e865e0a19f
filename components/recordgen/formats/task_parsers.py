"""The parser of rows that a task declares."""

from __future__ import annotations

from recordgen.core.rows.row import Adjustments
from recordgen.core.task.task import Task
from recordgen.formats.row_parser import RowParser
from recordgen.formats.table_layout import OwnColumns


def has_row_parser(task: type[Task]) -> bool:
    """Return whether the lines of a task's CSV are ML_USE, a payload and its annotation.

    The CSV of other tasks has a layout of its own.
    """
    if task.csv_parser is None:
        return False
    return issubclass(task.declared("csv_parser"), RowParser)


def own_columns(task: type[Task]) -> OwnColumns | None:
    """Return how the columns of a task's files are found; None if it declares its columns."""
    if task.csv_parser is None:
        return None
    found: OwnColumns | None = task.declared("csv_parser").own_columns()
    return found


def row_parser(task: Task, adjusted: Adjustments) -> RowParser:
    """Return the task's parser of rows with named fields."""
    parser: RowParser = task.declared("csv_parser")(task, adjusted)
    return parser
