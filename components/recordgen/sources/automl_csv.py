r"""AutoML's CSV files: ``[ML_USE],PATH`` and what the task says of the payload behind it.

Vertex AI "Prepare image training data": no header; ML_USE and the annotation are optional *per
row*, so the first field is ML_USE or the path. Of image classification, for example::

    TRAIN,gs://bucket/1.jpg,cat   →  Row(split="train", uri="gs://bucket/1.jpg", annotation="cat")
    gs://bucket/2.jpg,cat         →  Row(split=None, uri="gs://bucket/2.jpg", annotation="cat")
    test,gs://bucket/3.jpg        →  Row(split="test", uri="gs://bucket/3.jpg", annotation=None)
    gs://bucket/4.jpg             →  Row(split=None, uri="gs://bucket/4.jpg", annotation=None)

A first line that holds only column names (``split,image_uri,label``, in any order) is a header,
and so is any line that repeats it; TFRecorder and many scripts write one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from recordgen.dataset.splits import is_ml_use, parse_ml_use
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Adjustments, Row
from recordgen.sources.csv_records import Record, read_records
from recordgen.sources.field_kinds import names_media
from recordgen.sources.header import PATH_COLUMNS, Given, find_columns
from recordgen.sources.row_parser import Parser, RowParser, without_padding
from recordgen.tasks.task import AnnotationError, Task

_LIST_SUFFIX = ".csv"

_BY_POSITION = Given()


def parse_lines(
    lines: Iterable[bytes],
    *,
    source: str,
    task: Task,
    adjusted: Adjustments,
    given: Given = _BY_POSITION,
) -> Iterator[Row | Reject]:
    r"""Parse the physical lines of an import file.

    Args:
        lines: without their ``\n``, see :mod:`recordgen.sources.csv_records`.
        source: the file's name, for rows and messages.
        task: reads the fields behind the path.
        adjusted: gets what is changed to make rows usable.
        given: what options say about columns.

    Raises:
        SourceError: the file as a whole is no CSV of rows, see :mod:`recordgen.sources.layout`.
        UsageError: the columns that options name are not there; or the first line names columns
            of which no row can be made.
    """
    return parse_records(
        read_records(lines, source, strip=True),
        source=source,
        task=task,
        adjusted=adjusted,
        given=given,
    )


def parse_records(
    records: Iterable[Record | Reject],
    *,
    source: str,
    task: Task,
    adjusted: Adjustments,
    given: Given = _BY_POSITION,
) -> Iterator[Row | Reject]:
    """Parse the records of an import file, the first of which may be a header.

    Args and Raises: as :func:`parse_lines`; rejects among the records stay what they are.
    """
    parser = LineParser(task, adjusted)
    parse: Parser = parser.parse_row
    first = True
    repeated: Sequence[str] | None = None
    for record in records:
        if isinstance(record, Reject):
            yield record
            continue
        number, fields = record.line, record.fields
        if not any(fields):
            yield Reject(source, number, "", RejectCode.NO_PATH.value, _no_path(fields, task))
        elif first:
            first = False
            parse, is_header = parser.begin(fields, given, f"{source}:{number}")
            if is_header:
                repeated = fields
            else:
                yield parse(fields, source, number)
        elif fields != repeated:  # else files that were put together, each with its header
            yield parse(fields, source, number)


class LineParser(RowParser):
    """Makes rows of paths and what the task says about them."""

    paths = PATH_COLUMNS

    def __init__(self, task: Task, adjusted: Adjustments) -> None:
        super().__init__(task, adjusted)
        self._has_one_field = len(task.columns) == 1 and task.repeats is None

    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line without header; see the module's examples."""
        if len(fields) == 3 and is_ml_use(fields[0]):  # what nearly every line looks like
            return self.to_row(fields[0], fields[1], "", fields[2:], source, line)
        used = list(fields)
        while len(used) > 1 and not used[-1]:
            used.pop()  # spreadsheets pad short rows with empty fields
        second = used[1] if len(used) > 1 else ""
        if is_ml_use(used[0]) and (len(fields) > 1 or not _looks_like_path(used[0])):
            return self.to_row(used[0], second, "", used[2:], source, line)
        is_full = self._has_one_field and len(used) == 3
        if not _looks_like_path(used[0]) and (is_full or _looks_like_path(second)):
            return self.to_row(used[0], second, "", used[2:], source, line)  # a bad ML_USE
        return self.to_row("", used[0], "", used[1:], source, line)

    def names_columns(self, fields: Sequence[str]) -> bool:
        """Say whether a line can only be a header, see :class:`RowParser`."""
        return names_path_column(fields)

    def is_payload(self, field: str) -> bool:
        """Say whether a field names a file."""
        return _looks_like_path(field)

    def to_row(
        self, ml_use: str, path: str, text: str, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        """Make a row of what its columns hold, or say why there is none."""
        uri = path
        try:
            split = parse_ml_use(ml_use)
        except ValueError as exc:
            return Reject(source, line, uri, RejectCode.UNKNOWN_ML_USE.value, str(exc))
        if not uri:
            message = _no_path([ml_use, uri, *fields], self._task)
            return Reject(source, line, "", RejectCode.NO_PATH.value, message)
        try:
            uri = self._task.check_uri(uri)
            annotation = self._task.from_fields(without_padding(fields), self._adjusted)
        except AnnotationError as exc:
            shown = uri if uri.isprintable() else ascii(uri)
            return Reject(source, line, shown, exc.code.value, exc.message)
        return Row(source, line, split, uri, annotation)


def names_path_column(fields: Sequence[str]) -> bool:
    """Say whether a line can only name columns, a path's among them."""
    return bool(find_columns(fields, PATH_COLUMNS)) and not any(map(_looks_like_path, fields))


def _looks_like_path(text: str) -> bool:
    return "/" in text or names_media(text) or text.lower().endswith(_LIST_SUFFIX)


def _no_path(fields: Sequence[str], task: Task) -> str:
    return f"expected {task.expected}, but the line has no path (got {','.join(fields)!r})"
