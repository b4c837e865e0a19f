"""The parser of rows that a task declares, and what a task of tables finds out by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recordgen.core.rows.row import Adjustments, ReadItem
from recordgen.core.task.task import Task
from recordgen.formats.format import CsvParser
from recordgen.formats.row_parser import RowParser
from recordgen.options import ConvertOptions
from recordgen.tables.columns import Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from recordgen.formats.import_file import ImportFile


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


class OwnColumns(CsvParser):
    """A parser that finds the columns of files and DataFrames, which its task does not declare."""

    @classmethod
    @abstractmethod
    def layout(cls, files: Sequence[ImportFile], options: ConvertOptions) -> Layout:
        """Return the columns of files. Raises: SourceError, UsageError."""

    @classmethod
    @abstractmethod
    def open_frame(cls, frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
        """Return the rows of a frame, and its columns. Raises: SourceError, UsageError."""

    @classmethod
    @abstractmethod
    def wrong_role(cls, roles: Iterable[str]) -> str:
        """Return what is wrong with the roles of columns that options give, or ""."""


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
