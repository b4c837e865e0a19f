"""A pandas DataFrame as rows: columns ``split``, ``image_uri`` and ``label``, in any order.

    split   image_uri   label
    TRAIN   /a/1.jpg    cat     →  Row("DataFrame", 1, "train", "/a/1.jpg", "cat")

The header names of the CSV are understood here too. A row's line is its 1-based position.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recordgen.errors import UsageError
from recordgen.rows import Reject, Row
from recordgen.sources.automl_csv import parse_header

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "DataFrame"


def dataframe_rows(frame: pd.DataFrame) -> Iterator[Row | Reject]:
    """Yield a Row or a Reject for each row of ``frame``; missing values are empty fields.

    Raises:
        UsageError: no column has the name of a path column.
    """
    parse = parse_header([str(column) for column in frame.columns])
    if parse is None:
        raise UsageError(
            f"a DataFrame needs the column image_uri, and split or label beside it "
            f"(got {', '.join(map(str, frame.columns))})"
        )
    present = frame.notna().to_numpy()
    values = frame.to_numpy(dtype=object)
    for line, (row, there) in enumerate(zip(values, present, strict=True), start=1):
        fields = [_to_text(value) if known else "" for value, known in zip(row, there, strict=True)]
        yield parse(fields, SOURCE, line)


def _to_text(value: Any) -> str:
    """Return a cell as a CSV field: a label 3.0 of a column with gaps was 3 before pandas."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
