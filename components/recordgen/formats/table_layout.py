"""The parser of rows that a task declares, and what a task of tables finds out by itself.

That is the columns of its source, and its header; see
:meth:`recordgen.formats.format.CsvParser.own_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recordgen.core.rows.row import Adjustments, ReadItem
from recordgen.core.task.task import Task
from recordgen.formats.row_parser import RowParser
from recordgen.options import ConvertOptions
from recordgen.tables.columns import Column, Table


class Layout(NamedTuple):
    """The columns of import files.

    Attributes:
        options: the options, with the detected columns.
        columns: pairs of a column and its type and role, as the preview shows them.
        header: whether the first line is a header.
    """

    options: ConvertOptions
    columns: Sequence[tuple[str, str]]
    header: bool


class OpenFrame(NamedTuple):
    """A DataFrame as rows.

    Attributes:
        options: the options, with the detected columns.
        rows: its rows, and their rejects and findings.
        columns: as in :class:`Layout`; None if detection knows them already.
    """

    options: ConvertOptions
    rows: Iterable[ReadItem]
    columns: Sequence[tuple[str, str]] | None = None


@dataclass(frozen=True)
class OwnColumns:
    """How the columns of a task's files and DataFrames are found.

    Attributes:
        layout: ``(files, options)`` → :class:`Layout`.
        open_frame: ``(frame, options)`` → :class:`OpenFrame`.
        wrong_role: returns what is wrong with the roles of columns that options give, or "".
    """

    layout: Callable[[Any, ConvertOptions], Layout]
    open_frame: Callable[[Any, ConvertOptions], OpenFrame]
    wrong_role: Callable[[Iterable[str]], str]


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
