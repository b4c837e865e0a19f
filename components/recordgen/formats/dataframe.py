"""A pandas DataFrame as rows: columns ``split``, ``image_uri`` and ``label``, in any order.

    split   image_uri   label
    TRAIN   /a/1.jpg    cat     →  Row("DataFrame", 1, "train", "/a/1.jpg", "cat")

Columns may have the known names of CSV headers. A row's line is its 1-based position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recordgen.core.rows.row import Adjustments, batched
from recordgen.core.task.annotations import SEVERAL
from recordgen.core.task.task import Task
from recordgen.formats.format import OpenFrame, Rows
from recordgen.formats.frame_cells import as_before_gaps, frame_cells, is_list, single_text
from recordgen.formats.head import Head
from recordgen.formats.header import NOTHING_GIVEN, Given
from recordgen.formats.named_records import Cells, NamedRecords, named_head
from recordgen.options import ConvertOptions
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


def open_frame(frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
    """Return the rows of a frame. Raises: as :func:`dataframe_rows`."""
    task, adjusted = task_for(options), Adjustments()
    found = dataframe_rows(frame, task, adjusted, Given.of(options))
    return OpenFrame(options, batched(found, adjusted))


def dataframe_rows(
    frame: pd.DataFrame, task: Task, adjusted: Adjustments, given: Given = NOTHING_GIVEN
) -> Rows:
    """Yield the rows of a frame with the columns of a CSV with a header, and rejects.

    Missing values are empty fields. If the task takes several labels, a label may be a list.

    Raises: UsageError: no column has the name of a path column, or the task's rows have no columns.
    """
    names = [str(name) for name in frame.columns]
    reader = NamedRecords(SOURCE, names, _FrameCells(task), task, adjusted, given)
    return reader.rows(enumerate(frame_cells(frame), start=1))


class _FrameCells(Cells):
    """Cells of a frame; a column that does not fit the task stops the run."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def single(self, value: Any, column: str, line: int) -> str:
        remedy = f"several labels need task='{self._task.kind}_multi_label' and one label column"
        return single_text(as_before_gaps(value), column, line, remedy)

    def several(self, value: Any, column: str, line: int) -> Sequence[str]:
        is_one = self._task.labelling != SEVERAL or not is_list(value)
        return [self.single(each, column, line) for each in ([value] if is_one else value)]


def head_of_frame(frame: pd.DataFrame, given: Given) -> Head:
    """Return the first rows of a DataFrame. Raises: UsageError: a given column is missing."""
    names = [str(name) for name in frame.columns]
    return named_head(SOURCE, names, frame_cells(frame.head(_SAMPLE_ROWS)), given)
