r"""Records whose values have names → rows: objects of JSON, rows of frames, Parquet and Arrow.

    {"file": "a.jpg", "tags": ["cat", "dog"]}      with --columns path=file,label=tags
    →  the fields a.jpg and cat␟dog, below the header file,tags
    {"file": "a.jpg", "box": [[1, 2, 3, 4], [5, 6, 7, 8]], "kind": ["cat", "dog"]}
    →  a line for each box, as in a CSV, with --columns path=file,xyxy=box,label=kind

The columns are found once for a source. Then each record becomes the fields of a line below a
header, so constants, templates, box lists, one-hot columns and groups have one
reader: that of CSV files. The line of a record is its number from 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from recordgen.core.rows.row import Adjustments, batched
from recordgen.core.task.annotation import AnnotationError, bad_annotation, printable
from recordgen.core.task.task import Task
from recordgen.errors import UsageError
from recordgen.formats.csv_records import BLOCK_LINES, Item, Records
from recordgen.formats.format import OpenFrame, Rows
from recordgen.formats.frame_images import suffix_of
from recordgen.formats.header import NOTHING_GIVEN, Given, Head, Line, is_constant
from recordgen.formats.label_fields import BETWEEN_ITEMS
from recordgen.formats.row_parser import made_below, names_in_path, row_parser, with_made_columns
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.roles import BOX_ROLES, LABEL, LABEL_TEXT
from recordgen.tasks import Tabular, task_for
from recordgen.tasks.texts.task import CONTENT_KEY

if TYPE_CHECKING:
    import pandas as pd


# Letters of records that become rows together.
_LETTERS = 1 << 20

#: The number of a record, from 1, and the values of its columns; or why it has none.
Values: TypeAlias = "tuple[int, Sequence[Any]] | Reject"

_Way: TypeAlias = Callable[[Any, str], str]


def single(value: Any, column: str) -> str:
    """Return the field of one value: 3.0 is ``3``, null and NaN are empty.

    Raises: AnnotationError: it is none.
    """
    if isinstance(value, str):
        return value
    texts = _several(value, column)
    if len(texts) > 1:
        raise bad_annotation(f"{printable(column)} must hold one value (got {len(texts)})")
    return "".join(texts)


def _several(value: Any, column: str) -> Sequence[str]:
    """Return the labels in a value, which may be a list. Raises: as :func:`single`."""
    if isinstance(value, str):
        return [value]
    if getattr(value, "ndim", 0) > 1:
        what = f"column {column!r} holds arrays, and no images (got {value.dtype} {[*value.shape]})"
        raise UsageError(f"{what}: uint8 of 1, 3 or 4 channels; recordgen.write writes any arrays")
    if is_list(value):
        return [text for item in value for text in _several(item, column)]
    if value is None or value != value:
        return []
    if isinstance(value, bytes):
        return [_decoded(value, column)]
    if isinstance(value, dict):
        raise bad_annotation(f"{printable(column)} needs text, number or list (got {value!r:.80})")
    if isinstance(value, float) and value.is_integer():
        return [str(int(value))]
    return [json.dumps(value) if isinstance(value, bool | int | float) else str(value)]


def _decoded(value: bytes, column: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as exc:
        message = f"{printable(column)} must hold a text in UTF-8 (got {value!r:.80})"
        raise AnnotationError(RejectCode.BAD_ENCODING, message) from exc


class NamedRecords:
    """Makes rows of one source from the values of its columns.

    Args:
        source: its name, for rows and messages.
        names: of the columns.

    Raises: UsageError: the task lacks a given role, or the source a given column.
    """

    def __init__(
        self, source: str, names: Sequence[str], task: Task, adjusted: Adjustments, given: Given
    ) -> None:
        check_roles(task, given)
        separator = given.label_separator or BETWEEN_ITEMS
        self._source, self._names, self._task = source, names, task
        self._given = replace(given, header="yes", label_separator=separator)
        self._parser = row_parser(task, adjusted)
        made = made_below(names, given, source)
        whole = {at for each in made for at in each.places}
        header = [*names, *(name for each in made for name in each.columns)]
        columns = given.below(header, source)
        self._columns = self._parser.columns_of(columns.known)
        used = {columns.group, *chain.from_iterable(self._columns.values())}
        whole |= {at for at, classes in columns.classes.items() if isinstance(classes, tuple)}
        labels = set(self._columns.get("label", ())) if self._parser.takes_labels else set()
        labels -= columns.classes.keys()

        def way(at: int) -> _Way | None:
            if at in whole:
                return _whole
            if at in labels:
                return partial(_joined, separator)
            return single if at in used else None

        self._ways = list(map(way, range(len(names))))
        lists = [each.places for each in made if each.columns == BOX_ROLES]
        corners = [at for role in BOX_ROLES for at in self._columns.get(role, ())[:1]]
        self._boxes = (*lists, corners)[0] if "xmin" in task.columns else ()
        self._labels = [at for at in self._columns.get("label", ()) if at < len(names)]

    def rows(self, records: Iterable[Values]) -> Rows:
        """Yield the rows of records, and the rejects."""
        items = with_made_columns(self._items(records), self._given, self._source)
        return self._parser.parse_below(items, self._source, self._given)

    def uri_of(self, values: Sequence[Any]) -> str:
        """Return the uri of a record that cannot be used, or ""."""
        keys = {"path": self._task.uri_key, "text": CONTENT_KEY}
        places = {key: self._columns[role][:1] for role, key in keys.items()}
        known = {key: values[at] for key, ats in places.items() for at in ats if at < len(values)}
        return self._task.uri_of(known)

    def _items(self, records: Iterable[Values]) -> Iterator[Item]:
        """Yield the header, and the records as lines below it."""
        yield Records([0], [""], {0: [*self._names]})
        lines, rows, letters = list[int](), list[list[str]](), 0
        for record in records:
            line = record.line if isinstance(record, Reject) else record[0]
            made = record if isinstance(record, Reject) else self._lines(line, record[1])
            if lines and (
                isinstance(made, Reject) or len(lines) >= BLOCK_LINES or letters > _LETTERS
            ):
                yield together(lines, rows)
                lines, rows, letters = [], [], 0
            if isinstance(made, Reject):
                yield made
            else:
                lines += [line] * len(made)
                rows += made
                letters += sum(map(len, chain.from_iterable(made)))
        if lines:
            yield together(lines, rows)

    def _lines(self, line: int, values: Sequence[Any]) -> list[list[str]] | Reject:
        try:
            return [
                [
                    way(value, name) if way else ""
                    for way, value, name in zip(self._ways, each, self._names, strict=True)
                ]
                for each in self._each_box(values)
            ]
        except AnnotationError as exc:
            return exc.reject(self._source, line, self.uri_of(values))

    def _each_box(self, values: Sequence[Any]) -> Iterable[Sequence[Any]]:
        """Return the values of a record with one box; those of several, for each of them."""
        sides = [values[at] for at in self._boxes]
        if not any(map(is_list, sides)):
            return [values]
        lists = [[*_flat(side)] for side in sides]
        if len(lists) == 1:
            [numbers] = lists
            lists = [[numbers[at : at + 4] for at in range(0, len(numbers), 4)]]
        columns = [*lists, *([*_flat(values[at])] for at in self._labels)]
        if len(counts := {*map(len, columns)}) > 1:
            raise bad_annotation(f"expected a label for each box (got {sorted(counts)})")
        places, lines = (*self._boxes, *self._labels), list[Sequence[Any]]()
        for found in [*zip(*columns, strict=True)] or [(None,) * len(places)]:
            of_box = dict(zip(places, found, strict=True))
            lines.append([of_box.get(at, value) for at, value in enumerate(values)])
        return lines


def together(lines: Sequence[int], rows: Sequence[list[str]]) -> Records:
    """Return records that have only fields."""
    return Records(lines, [""] * len(lines), dict(enumerate(rows)))


def _flat(value: Any) -> Iterator[Any]:
    """Yield the values in a list of any depth; none in a missing one."""
    for item in value if is_list(value) else ():
        yield from _flat(item) if is_list(item) else [item]
    if not (is_list(value) or value in (None, "")):
        yield value


def _whole(value: Any, column: str) -> str:
    """Return a list as one field, as box lists and one-hot lists are read."""
    return text_of(value) if is_list(value) else single(value, column)


def _joined(separator: str, value: Any, column: str) -> str:
    return value if isinstance(value, str) else separator.join(_several(value, column))


def check_roles(task: Task, given: Given) -> None:
    """Check that the task has the given roles. Raises: UsageError."""
    if not task.columns:
        what = f"columns: {task.name} has no columns, because its annotations are lists of spans"
        raise UsageError(f"{what}; write {task.expected} in each line of a JSONL file, and omit it")
    row_parser(task, Adjustments()).check_roles(given)


def given_names(given: Given) -> Sequence[str]:
    """Return the names of all columns that options give, which each occur once."""
    names = [*(names_in_path(given) or given.roles.get("path", ()))]
    for role in given.roles.keys() - {"path"}:
        names += [name for name in given.keys_of(role) if not is_constant(name)]
    return list(dict.fromkeys([*names, *given.box_columns(()), *filter(None, [given.group])]))


def named_head(
    source: str, names: Sequence[str], records: Iterable[Sequence[Any]], given: Given
) -> Head:
    """Return the first records of a source, for detection.

    Raises: UsageError: a given column is missing.
    """
    values = [list(record) for record in records]
    texts = [[text_of(value) for value in record] for record in values]
    block = together(range(len(texts) + 1), [[*names], *texts])
    items = with_made_columns([block], replace(given, header="yes"), source)
    first, *rows = (row for it in items if isinstance(it, Records) for row in it.rows(strip=True))
    separator = given.label_separator
    lines = [Line.of(f"{source}:{n}", row, separator=separator) for n, row in enumerate(rows, 1)]
    lists = {at for record in values for at, value in enumerate(record) if is_list(value)}
    rows, columns = [first, *rows], given.below(first, source)
    return Head(source, source, rows, columns, True, lines, lists, label_separator=separator)


SOURCE = "DataFrame"

_SAMPLE_ROWS = 1000

# The columns of texts and images in Parquet that an export wrote.
_COPIED = {"text", "image", "source_id", LABEL, LABEL_TEXT}


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


def without_source_id(frame: pd.DataFrame, options: ConvertOptions) -> pd.DataFrame:
    """Return a frame of ``export parquet`` without the names of its rows' sources."""
    names = [str(name) for name in frame.columns]
    is_plain = options.task != Tabular.name and Given.of(options) == NOTHING_GIVEN
    is_copy = is_plain and {LABEL, LABEL_TEXT} <= {*names} <= _COPIED
    return frame.drop(columns="source_id", errors="ignore") if is_copy else frame


def open_frame(frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
    """Return the rows of a frame. Raises: as :func:`dataframe_rows`."""
    given, adjusted = Given.of(options), Adjustments()
    task = task_for(options).for_file(lambda it: dataframe_rows(frame, it, Adjustments(), given))
    found = dataframe_rows(frame, task, adjusted, given)
    return OpenFrame(options, batched(found, adjusted))


def dataframe_rows(
    frame: pd.DataFrame, task: Task, adjusted: Adjustments, given: Given = NOTHING_GIVEN
) -> Rows:
    """Yield the rows of a frame with the columns of a CSV with a header, and rejects.

    Missing values are empty fields. If the task takes several labels, a label may be a list.

    Raises: UsageError: no column has the name of a path column, or the task's rows have no columns.
    """
    names = [str(name) for name in frame.columns]
    reader = NamedRecords(SOURCE, names, task, adjusted, given)
    values = ([str(it) if isinstance(it, bool) else it for it in row] for row in frame_cells(frame))
    return reader.rows(enumerate(values, start=1))


def head_of_frame(frame: pd.DataFrame, given: Given) -> Head:
    """Return the first rows of a DataFrame. Raises: UsageError: a given column is missing."""
    names = [str(name) for name in frame.columns]
    return named_head(SOURCE, names, frame_cells(frame.head(_SAMPLE_ROWS)), given)


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
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
        suffix = suffix_of(value)
        return f"image{suffix}" if suffix else f"({len(value):,} bytes)"
    is_ordered = is_list(value) and not isinstance(value, set | frozenset)
    return f"[{', '.join(map(str, value))}]" if is_ordered else str(as_before_gaps(value))
