"""A pandas DataFrame as rows: columns ``split``, ``image_uri`` and ``label``, in any order.

    split   image_uri   label
    TRAIN   /a/1.jpg    cat     →  Row("DataFrame", 1, "train", "/a/1.jpg", "cat")

The header names of the CSV are understood here too. A row's line is its 1-based position.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any

from recordgen.errors import UsageError
from recordgen.rejects import Reject
from recordgen.rows.row import Adjustments, Row
from recordgen.sources.automl_jsonl import row_parser
from recordgen.sources.header import NOWHERE, Given
from recordgen.tasks.task import Task

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "DataFrame"

ROWS_LOOKED_AT = 1000

_BY_NAME = Given("yes")


def frame_records(frame: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the first rows of a frame as fields, for detection; lists are empty there."""
    head = frame.head(ROWS_LOOKED_AT)
    present = head.notna().to_numpy()
    for row, there in zip(head.to_numpy(dtype=object), present, strict=True):
        yield [
            _shown(value) if known and not is_list(value) else ""
            for value, known in zip(row, there, strict=True)
        ]


def list_columns(frame: pd.DataFrame) -> frozenset[int]:
    """Return the columns whose cells are lists, tuples, sets or arrays."""
    return frozenset(
        index for index in range(frame.shape[1]) if any(map(is_list, frame.iloc[:, index]))
    )


def dataframe_rows(
    frame: pd.DataFrame, task: Task, adjusted: Adjustments, given: Given = _BY_NAME
) -> Iterator[Row | Reject]:
    """Yield a Row or a Reject for each row of ``frame``; missing values are empty fields.

    Args:
        frame: its columns are those of a CSV with a header; a label may be a list of labels where
            the task takes several.
        task: reads the columns behind the path.
        adjusted: gets what is changed to make rows usable.
        given: the columns that options name, by role.

    Raises:
        UsageError: no column has the name of a path column, or the task's rows have no columns.
    """
    if not task.columns:
        raise UsageError(
            f"rows of {task.name} do not come as a DataFrame: write {task.expected}, one per line "
            f"of a JSONL file, and name that"
        )
    parser = row_parser(task, adjusted)
    names = [str(column) for column in frame.columns]
    try:
        parser.begin(names, Given("yes", given.roles, given.group), SOURCE)
    except UsageError as exc:
        if given.roles or given.group or len(set(names)) < len(names):
            raise
        wanted = "text" if task.kind == "text" else "image_uri"
        raise UsageError(
            f"a DataFrame needs the column {wanted}, and split or label beside it (got "
            f"{', '.join(names)}); or say which column holds what, such as "
            f"columns={{'path': …, 'label': …}}"
        ) from exc
    header = given.rename(names, SOURCE)
    columns = parser.columns_of(header)
    groups = _groups(frame, given.find_group(names, SOURCE), task)
    used = sorted({at for found in columns.values() for at in found})
    frame = frame.iloc[:, used]
    titles = [(header[at], names[at]) for at in used]
    labels = {used.index(at) for at in columns["label"]}
    lists = labels & list_columns(frame) if task.repeats is not None else set()
    parse = parser.by_header([name for name, _ in titles])
    rows = zip(frame.to_numpy(dtype=object), frame.notna().to_numpy(), strict=True)
    for line, ((row, present), group) in enumerate(zip(rows, groups, strict=False), start=1):
        cells: list[tuple[str, str]] = []
        for at, (name, column) in enumerate(titles):
            values = [row[at] if present[at] else None]
            if at in lists and is_list(row[at]):
                values = list(row[at])
            cells += [(name, _to_text(value, column, line, task)) for value in values]
        if lists:  # rows have different numbers of labels, and a field for each
            parse = parser.by_header([name for name, _ in cells])
        made = parse([text for _, text in cells], SOURCE, line)
        yield made if isinstance(made, Reject) else made._replace(group=group)


def _groups(frame: pd.DataFrame, at: int, task: Task) -> Iterator[str | None]:
    """Yield what the column of groups holds; None for all rows if there is no such column."""
    if at == NOWHERE:
        yield from repeat(None)
        return
    column, name = frame.iloc[:, at], str(frame.columns[at])
    for line, (value, is_there) in enumerate(zip(column, column.notna(), strict=True), start=1):
        yield (_to_text(value, name, line, task).strip() or None) if is_there else None


def is_list(value: Any) -> bool:
    """Say whether a cell holds several values."""
    import numpy as np

    return isinstance(value, list | tuple | set | frozenset | np.ndarray)  # Parquet has arrays


def _shown(value: Any) -> str:
    """Return a cell as text, for messages and detection."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _to_text(value: Any, column: str, line: int, task: Task) -> str:
    """Return a cell as a CSV field: a label 3.0 of a column with gaps was 3 before pandas.

    Raises:
        UsageError: it is no single value.
    """
    if value is None:
        return ""
    if isinstance(value, bytes | dict) or is_list(value):
        raise UsageError(
            f"row {line} of the DataFrame: column {column!r} must hold single values (got "
            f"{value!r:.80}); several labels need task='{task.kind}_multi_label' and "
            f"one label column"
        )
    return _shown(value)
