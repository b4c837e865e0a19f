"""Cells of a pandas DataFrame, or values of JSON, as fields of a CSV line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recordgen.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


def frame_cells(frame: pd.DataFrame) -> Iterator[list[Any]]:
    """Yield the cells of each row; missing values are empty texts."""
    present = frame.notna().to_numpy()
    for row, there in zip(frame.to_numpy(dtype=object), present, strict=True):
        yield [value if known else "" for value, known in zip(row, there, strict=True)]


def is_list(value: Any) -> bool:
    """Return whether a cell has several values."""
    import numpy as np

    return isinstance(value, list | tuple | set | frozenset | np.ndarray)  # Parquet yields arrays


def as_before_gaps(value: Any) -> Any:
    """Return a cell as it was before pandas, which turns 3 into 3.0 in a column with gaps."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(value: Any) -> str:
    """Return a cell as a field; lists, but not sets, in brackets, each value whole."""
    if value is None:
        return ""
    is_ordered = is_list(value) and not isinstance(value, set | frozenset)
    return f"[{', '.join(map(str, value))}]" if is_ordered else str(as_before_gaps(value))


def single_text(value: Any, column: str, line: int, remedy: str = "") -> str:
    """Return a cell as a CSV field; None is empty. Raises: UsageError: it is not a single value."""
    if way := _way_of_content(value, column):
        raise UsageError(f"row {line} of the DataFrame: column {column!r} holds {way}")
    if isinstance(value, dict) or is_list(value):
        raise UsageError(
            f"row {line} of the DataFrame: column {column!r} must hold single values (got "
            f"{value!r:.80})" + (f"; {remedy}" if remedy else "")
        )
    return "" if value is None else str(value)


def _way_of_content(value: Any, column: str) -> str:
    """Return what a cell holds instead of a path, and the way to convert it; "" for other cells."""
    import numpy as np

    if isinstance(value, bytes | bytearray | memoryview):
        return f"texts as bytes; decode them: frame[{column!r}].str.decode('utf-8')"
    is_array = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    if not is_array or isinstance(value, np.generic) or np.ndim(value) < 2:
        return ""
    return (
        f"images in memory ({type(value).__name__}); write each to a file, and put the paths of "
        f"the files into the column; or write examples of arrays or bytes with recordgen.write"
    )
