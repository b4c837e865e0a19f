"""A pandas DataFrame as rows: columns ``split``, ``image_uri`` and ``label``, in any order.

    split   image_uri   label
    TRAIN   /a/1.jpg    cat     →  Row("DataFrame", 1, "train", "/a/1.jpg", "cat")

The header names of the CSV are understood here too. A row's line is its 1-based position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recordgen.errors import UsageError
from recordgen.options import AUTO
from recordgen.rows import Reject, Row
from recordgen.sources.automl_csv import LineParser, column_name, names_path_column
from recordgen.sources.text_csv import TextParser, has_text_column, is_media
from recordgen.tasks import (
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    TextClassification,
    TextMultiLabel,
    TextSentiment,
)
from recordgen.tasks.image_classification import LABEL_COLUMNS
from recordgen.tasks.task import Task

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "DataFrame"

_TEXTS_LOOKED_AT = 1000

_SENTIMENT_COLUMN = "sentiment"
_WHOLE = re.compile(r"[0-9]+(\.0)?", re.ASCII)


def dataframe_task(frame: pd.DataFrame, task: str) -> str:
    """Return the task of a frame, found out from its columns unless it is given.

    Columns of a box: object detection. A column of texts and none of paths: texts, of which whole
    numbers in a column ``sentiment`` are sentiments. Lists in a label column, or several label
    columns: several labels per example.

    Raises:
        UsageError: boxes are there in a form that is not known, or texts are names of images.
    """
    if task != AUTO:
        return task
    names = [str(column) for column in frame.columns]
    if ObjectDetection.has_header(names):
        return ObjectDetection.name
    columns = _label_columns(frame)
    several = len(columns) > 1 or _list_column(frame) is not None
    if names_path_column(names) and (boxes := ObjectDetection.other_boxes(names)):
        raise UsageError(
            f"the DataFrame has boxes in a form that is not known ({', '.join(boxes)}): give it "
            f"columns xmin, ymin, xmax and ymax, shares of the image; to leave them out, say task"
        )
    if not has_text_column(names) or names_path_column(names):
        return (ImageMultiLabel if several else ImageClassification).name
    _check_texts(frame)
    if several:
        return TextMultiLabel.name
    is_sentiment = not columns and any(
        column_name(str(name)) == _SENTIMENT_COLUMN and _are_whole(frame[name])
        for name in frame.columns
    )
    return (TextSentiment if is_sentiment else TextClassification).name


def _check_texts(frame: pd.DataFrame) -> None:
    """Check that texts are no names of images. Raises: UsageError."""
    [name, *_] = [name for name in frame.columns if has_text_column([str(name)])]
    texts = [value for value in frame[name].head(_TEXTS_LOOKED_AT) if isinstance(value, str)]
    if texts and sum(map(is_media, texts)) * 2 >= len(texts):
        raise UsageError(
            f"column {name!r} of the DataFrame is called as texts are, and it holds the names of "
            f"images or videos (such as {next(filter(is_media, texts))!r:.80}); name it image_uri, "
            f"or video_uri, or say task"
        )


def _are_whole(column: pd.Series[Any]) -> bool:
    """Say whether a column holds whole numbers and nothing else, but for gaps."""
    values = column.dropna()
    return len(values) > 0 and all(_WHOLE.fullmatch(str(value)) for value in values)


def dataframe_rows(
    frame: pd.DataFrame, task: Task, adjusted: Counter[str]
) -> Iterator[Row | Reject]:
    """Yield a Row or a Reject for each row of ``frame``; missing values are empty fields.

    Args:
        frame: its columns are those of a CSV with a header; a label may be a list of labels where
            the task takes several.
        task: reads the columns behind the path.
        adjusted: counts what was changed to make rows usable, by kind.

    Raises:
        UsageError: no column has the name of a path column, or the task's rows have no columns.
    """
    if not task.columns:
        raise UsageError(
            f"rows of {task.name} do not come as a DataFrame: write {task.expected}, one per line "
            f"of a JSONL file, and name that"
        )
    columns = ", ".join(map(str, frame.columns))
    parser = TextParser(task, adjusted) if task.kind == "text" else LineParser(task, adjusted)
    is_header = parser.parse_header(list(map(str, frame.columns))) is not None
    frame = frame[[name for name in frame.columns if parser.knows(str(name))]]
    if task.repeats is not None:
        frame = _spread_lists(frame)
    names = [str(column) for column in frame.columns]
    parse = parser.parse_header(names)
    if parse is None or not is_header:
        wanted = "text" if task.kind == "text" else "image_uri"
        raise UsageError(
            f"a DataFrame needs the column {wanted}, and split or label beside it (got {columns})"
        )
    present = frame.notna().to_numpy()
    values = frame.to_numpy(dtype=object)
    for line, (row, there) in enumerate(zip(values, present, strict=True), start=1):
        fields = [
            _to_text(value, name, line, task) if known else ""
            for value, known, name in zip(row, there, names, strict=True)
        ]
        yield parse(fields, SOURCE, line)


def _label_columns(frame: pd.DataFrame) -> list[Any]:
    """Return the names of the label columns that are named as the first of them."""
    stems = [(column_name(str(name)), name) for name in frame.columns]
    found = [(stem, name) for stem, name in stems if stem in LABEL_COLUMNS]
    return [name for stem, name in found if stem == found[0][0]]


def _list_column(frame: pd.DataFrame) -> Any:
    """Return the one label column if it holds lists, else None."""
    columns = _label_columns(frame)
    if len(columns) == 1 and any(map(is_list, frame[columns[0]])):
        return columns[0]
    return None


def is_list(value: Any) -> bool:
    """Say whether a cell holds several values."""
    import numpy as np

    return isinstance(value, list | tuple | set | frozenset | np.ndarray)  # Parquet has arrays


def _spread_lists(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with a column for each place in the lists of its label column."""
    import pandas as pd

    name = _list_column(frame)
    if name is None:
        return frame
    lists = [list(value) if is_list(value) else [value] for value in frame[name]]
    count = max(map(len, lists), default=0) or 1
    padded = [[*values, *[None] * (count - len(values))] for values in lists]
    spread = pd.DataFrame(padded, index=frame.index, columns=range(count), dtype=object)
    spread.columns = [f"{name}_{number}" for number in spread.columns]
    return pd.concat([frame.drop(columns=name), spread], axis=1)


def _to_text(value: Any, column: str, line: int, task: Task) -> str:
    """Return a cell as a CSV field: a label 3.0 of a column with gaps was 3 before pandas.

    Raises:
        UsageError: it is no single value.
    """
    if isinstance(value, bytes | dict) or is_list(value):
        raise UsageError(
            f"row {line} of the DataFrame: column {column!r} must hold single values (got "
            f"{value!r:.80}); several labels need task='{task.kind}_multi_label' and "
            f"one label column"
        )
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
