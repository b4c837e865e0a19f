"""A pandas DataFrame as rows: columns ``split``, ``image_uri`` and ``label``, in any order.

    split   image_uri   label
    TRAIN   /a/1.jpg    cat     →  Row("DataFrame", 1, "train", "/a/1.jpg", "cat")

Columns may have the known names of CSV headers. A row's line is its 1-based position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from recordgen.core.rows.row import Adjustments, Row, batched
from recordgen.core.task.annotations import SEVERAL
from recordgen.core.task.task import Task
from recordgen.errors import UsageError
from recordgen.formats.column_names import NOWHERE
from recordgen.formats.frame_cells import as_before_gaps, frame_cells, is_list, single_text, text_of
from recordgen.formats.head import Head, Line
from recordgen.formats.header import NOTHING_GIVEN, Given
from recordgen.formats.table_layout import OpenFrame, row_parser
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.tasks import task_for

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "DataFrame"

_SAMPLE_ROWS = 1000


def as_dense(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with dense columns; cells and types of sparse ones need special handling."""
    import pandas as pd

    if not any(isinstance(dtype, pd.SparseDtype) for dtype in frame.dtypes):
        return frame
    columns = [
        column.sparse.to_dense()  # type: ignore[attr-defined]  # the stubs do not know it
        if isinstance(column.dtype, pd.SparseDtype)
        else column
        for _, column in frame.items()
    ]
    return pd.concat(columns, axis=1)


def frame_records(frame: pd.DataFrame) -> Iterator[list[str]]:
    """Return the first rows of a frame as fields, for detection; lists are written as in JSON."""
    return ([*map(text_of, cells)] for cells in frame_cells(frame.head(_SAMPLE_ROWS)))


def list_columns(frame: pd.DataFrame) -> frozenset[int]:
    """Return the indices of columns with lists, tuples, sets or arrays."""
    return frozenset(
        index for index in range(frame.shape[1]) if any(map(is_list, frame.iloc[:, index]))
    )


def open_frame(frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
    """Return the rows of a frame. Raises: as :func:`dataframe_rows`."""
    task, adjusted = task_for(options), Adjustments()
    found = dataframe_rows(frame, task, adjusted, Given.of(options))
    return OpenFrame(options, batched(found, adjusted))


def dataframe_rows(
    frame: pd.DataFrame, task: Task, adjusted: Adjustments, given: Given = NOTHING_GIVEN
) -> Iterator[Row | Reject]:
    """Yield a Row or a Reject for each row of a frame with the columns of a CSV with a header.

    Missing values are empty fields. If the task takes several labels, a label may be a list.

    Raises: UsageError: no column has the name of a path column, or the task's rows have no columns.
    """
    if not task.columns:
        raise UsageError(
            f"rows of {task.name} cannot be a DataFrame: write {task.expected}, one per line of a "
            f"JSONL file, and pass that file"
        )
    parser = row_parser(task, adjusted)
    names = [str(column) for column in frame.columns]
    try:
        parser.begin(names, replace(given, header="yes"), SOURCE)
    except UsageError as exc:
        if given.roles or given.group or len(set(names)) < len(names):
            raise
        wanted = "text" if task.kind == "text" else "image_uri"
        raise UsageError(
            f"a DataFrame needs the column {wanted}, and split or label (got {', '.join(names)}); "
            f"or name the columns, such as columns={{'path': …, 'label': …}}"
        ) from exc
    header = given.rename(names, SOURCE)
    columns = parser.columns_of(header)
    used = sorted({at for found in columns.values() for at in found})
    titles = [(header[at], names[at]) for at in used]
    labels = set(columns["label"]) if task.labelling == SEVERAL else set()
    group_at, group = given.find_group(names, SOURCE), NOWHERE
    if group_at != NOWHERE:  # a first column of its own, since it may also be one of the others
        used, titles, group = [group_at, *used], [("", names[group_at]), *titles], 0
    one_hot = given.one_hot(names, SOURCE)
    lists = labels & list_columns(frame) - one_hot.keys()
    classes = {n: one_hot[at] for n, at in enumerate(used) if at in one_hot}
    parse = parser.by_header([name for name, _ in titles], group=group, classes=classes)
    several = f"several labels need task='{task.kind}_multi_label' and one label column"
    for line, cells in enumerate(frame_cells(frame.iloc[:, used]), start=1):
        fields: list[tuple[str, str]] = []
        for at, (name, column), cell in zip(used, titles, cells, strict=True):
            if isinstance(one_hot.get(at), tuple) and is_list(cell):
                cell = text_of(cell)
            values = list(cell) if at in lists and name and is_list(cell) else [cell]
            texts = (single_text(as_before_gaps(v), column, line, several) for v in values)
            fields += [(name, text) for text in texts]
        if lists:  # each label is a field, so rows differ in their number of fields
            parse = parser.by_header([name for name, _ in fields], group=group)
        yield parse([text for _, text in fields], SOURCE, line)


def head_of_frame(frame: pd.DataFrame, given: Given) -> Head:
    """Return the first rows of a DataFrame. Raises: UsageError: a given column is missing."""
    names = [str(name) for name in frame.columns]
    rows = list(frame_records(frame))
    separator = given.label_separator
    lines = [
        Line.of(f"{SOURCE}:{at}", row, separator=separator) for at, row in enumerate(rows, start=1)
    ]
    return Head(
        SOURCE,
        SOURCE,
        [names, *rows],
        given.rename(names, SOURCE),
        True,
        lines,
        list_columns(frame),
        classes=given.one_hot(names, SOURCE),
        label_separator=separator,
        boxes=given.find_boxes(names, SOURCE),
    )
