"""The parser of rows that a task declares, and what a task of tables finds out by itself."""

from __future__ import annotations

from recordgen.core.rows.row import Adjustments
from recordgen.core.task.task import Task
from recordgen.formats.format import OwnColumns
from recordgen.formats.row_parser import RowParser
from recordgen.tables.columns import Column, Table


def columns_of_table(table: Table) -> tuple[tuple[str, str], ...]:
    """Return the columns of a table with their types and roles."""
    return tuple((column.name, _shown(column, table)) for column in table.columns)


def _shown(column: Column, table: Table) -> str:
    """Return the type of a column and its roles: ``float``, ``int (target, regression)``."""
    if column.name == table.split:
        return "split"
    roles = []
    if column.name == table.target:
        roles += ["target", str(table.prediction)]
    if column.name == table.group:
        roles.append("group")
    return f"{column.type} ({', '.join(roles)})" if roles else str(column.type)


def has_row_parser(task: type[Task]) -> bool:
    """Return whether the lines of a task's CSV are ML_USE, a payload and its annotation.

    The CSV of other tasks has a layout of its own.
    """
    return bool(task.csv_parser) and issubclass(task.declared("csv_parser"), RowParser)


def own_columns(task: type[Task]) -> type[OwnColumns] | None:
    """Return the parser that finds the columns of a task; None if the task declares them."""
    found = task.csv_parser and task.declared("csv_parser")
    return found if found and issubclass(found, OwnColumns) else None


def row_parser(task: Task, adjusted: Adjustments) -> RowParser:
    """Return the task's parser of rows with named fields."""
    parser: RowParser = task.declared("csv_parser")(task, adjusted)
    return parser
