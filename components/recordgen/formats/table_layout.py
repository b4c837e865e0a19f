"""What a task of tables finds out by itself: the columns of its source, and its header.

The parser of a task's CSV has it, see :meth:`recordgen.formats.format.CsvParser.own_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recordgen.core.rows.row import ReadItem
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
