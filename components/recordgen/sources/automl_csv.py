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

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from recordgen.errors import SourceError
from recordgen.rows import Reject, RejectCode, Row
from recordgen.sources.layout import EMPTY, checked
from recordgen.sources.lines import MAX_LINE_BYTES
from recordgen.splits import is_ml_use, parse_ml_use
from recordgen.tasks.task import AnnotationError, Task, check_uri

#: Names that may as well be those of something else, if another column names splits.
_PERHAPS_SPLIT = frozenset({"set", "subset", "partition"})
SPLIT_COLUMNS = _PERHAPS_SPLIT | {"split", "ml_use", "mluse", "dataset_split", "data_split"}
_PATH_COLUMNS = frozenset(
    {"image_uri", "imagegcsuri", "gcs_file_path", "gcs_path", "gcs_uri", "uri", "path", "url"}
    | {"image_url", "image_path", "img_path", "file_path", "filepath", "filename", "file_name"}
    | {"file", "image", "image_name", "image_file", "img", "img_name"}
    | {"imageuri", "imageurl", "imagepath", "imagename", "imagefile"}
    | {"video_uri", "videogcsuri", "video_url", "video_path", "video", "video_name", "video_file"}
)

#: What names of images and of videos end with.
IMAGE_SUFFIX = re.compile(r"\.(jpe?g|png|gif|bmp|ico|webp|tiff?)$", re.IGNORECASE)
VIDEO_SUFFIX = re.compile(r"\.(mp4|m4v|mpe?g4?|mov|avi|mkv|webm|wmv)$", re.IGNORECASE)
_LIST_SUFFIX = ".csv"

#: (fields, source, line) → what the line says
Parser = Callable[[Sequence[str], str, int], "Row | Reject"]


def parse_lines(
    lines: Iterable[bytes], *, source: str, task: Task, adjusted: Counter[str]
) -> Iterator[Row | Reject]:
    r"""Parse the physical lines of an import file.

    Each physical line is one record: no field of this format can hold a line break, so an
    unbalanced quote spoils one line and not the rest of the file.

    Args:
        lines: lines with or without their ending (``\n`` or ``\r\n``); a first UTF-8 byte order
            mark is skipped, and so are lines of blanks and commas alone.
        source: the file's name, for rows and messages.
        task: reads the fields behind the path.
        adjusted: counts what was changed to make rows usable, by kind.

    Raises:
        SourceError: the file as a whole is no CSV of rows, see :mod:`recordgen.sources.layout`; or
            its first line names columns that no row can be made of.
    """
    line_parser = LineParser(task, adjusted)
    parse: Parser = line_parser.parse_row
    first = True
    repeated: Sequence[str] | None = None
    for number, raw in enumerate(checked(lines, source), start=1):
        if not raw.strip(EMPTY):
            continue
        fields = split_line(raw, source, number)
        if isinstance(fields, Reject):
            yield fields
        elif not any(fields):
            yield Reject(source, number, "", RejectCode.NO_PATH.value, _no_path(fields, task))
        elif first and (header := line_parser.parse_header(fields)) is not None:
            parse, repeated = header, fields
        elif fields == repeated:
            pass  # files that were put together, each with its header
        elif first and names_path_column(fields):
            raise SourceError(
                f"{source}:{number}: this line names columns, and beside the path's none is known "
                f"({','.join(fields)}); name them split, image_uri and label, and those of boxes "
                f"xmin, ymin, xmax, ymax"
            )
        elif first and line_parser.names_all_but_path(fields):
            raise SourceError(
                f"{source}:{number}: this line names columns, and none of them is known to hold "
                f"paths ({','.join(fields)}); name that one {task.kind}_uri"
            )
        else:
            yield parse(fields, source, number)
        first = False


def split_line(raw: bytes, source: str, line: int) -> list[str] | Reject:
    r"""Split one physical line into stripped fields, with RFC 4180 quoting.

    ``b'TRAIN,"a,b.jpg", cat\r\n'`` → ``["TRAIN", "a,b.jpg", "cat"]``
    """
    if len(raw) > MAX_LINE_BYTES:
        message = f"a line must be at most {MAX_LINE_BYTES} bytes long; is this a CSV file?"
        return Reject(source, line, "", RejectCode.BAD_LINE.value, message)
    try:
        text = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as exc:
        message = f"byte {exc.start + 1} of the line is not UTF-8; save the file as UTF-8"
        return Reject(source, line, "", RejectCode.BAD_ENCODING.value, message)
    if "\0" in text:
        message = "the line holds a NUL character; is this a CSV file?"
        return Reject(source, line, "", RejectCode.BAD_LINE.value, message)
    if '"' not in text:
        return [field.strip() for field in text.split(",")]
    try:
        [fields] = csv.reader([text], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as exc:
        message = (
            f"quotes must be balanced within the line, a quote inside doubled ({exc}): {text[:80]}"
        )
        return Reject(source, line, "", RejectCode.BAD_LINE.value, message)
    return [field.strip() for field in fields]


class LineParser:
    """Makes rows of fields, for one task."""

    def __init__(self, task: Task, adjusted: Counter[str]) -> None:
        self._task = task
        self._adjusted = adjusted
        self._has_one_field = len(task.columns) == 1 and task.repeats is None

    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line without header; see the module's examples."""
        if len(fields) == 3 and is_ml_use(fields[0]):  # what nearly every line looks like
            return self._to_row(fields[0], fields[1], fields[2:], source, line)
        used = list(fields)
        while len(used) > 1 and not used[-1]:
            used.pop()  # spreadsheets pad short rows with empty fields
        second = used[1] if len(used) > 1 else ""
        if is_ml_use(used[0]) and (len(fields) > 1 or not _looks_like_path(used[0])):
            return self._to_row(used[0], second, used[2:], source, line)
        is_full = self._has_one_field and len(used) == 3
        if not _looks_like_path(used[0]) and (is_full or _looks_like_path(second)):
            return self._to_row(used[0], second, used[2:], source, line)  # a bad ML_USE
        return self._to_row("", used[0], used[1:], source, line)

    def knows(self, field: str) -> bool:
        """Say whether a header's field names a column that a row is made of."""
        known = (SPLIT_COLUMNS, _PATH_COLUMNS, *self._task.columns.values())
        return any(column_name(field) in names for names in known)

    def names_all_but_path(self, fields: Sequence[str]) -> bool:
        """Say whether a line names columns of two kinds that a row is made of, but no path's."""
        names = {column_name(field) for field in fields}
        kinds = (SPLIT_COLUMNS, *self._task.columns.values())
        return sum(not names.isdisjoint(kind) for kind in kinds) > 1 and not any(
            map(_looks_like_path, fields)
        )

    def parse_header(self, fields: Sequence[str]) -> Parser | None:
        """Return the parser for the columns that a header line names; None: it is a data line.

        A header names a path column and, if it has more columns, a split or one of the task's;
        columns of other names are allowed beside them and ignored.
        """
        roles = {"split": SPLIT_COLUMNS, "uri": _PATH_COLUMNS, **self._task.columns}
        columns: dict[str, list[int]] = {}
        for index, field in enumerate(fields):
            for role, names in roles.items():
                if column_name(field) in names:
                    columns.setdefault(role, []).append(index)
        if "uri" not in columns or (len(fields) > 1 and len(columns) == 1):
            return None
        uri_at, split_at = columns["uri"][0], split_column(fields)
        takes_labels = len(self._task.columns) == 1
        annotation_at = [
            index
            for role in self._task.columns
            for index in alike(fields, columns.get(role, [len(fields)]))[
                : None if takes_labels else 1
            ]
        ]

        def parse(row: Sequence[str], source: str, line: int) -> Row | Reject:
            if len(row) > len(fields) and any(row[len(fields) :]):
                message = f"expected {len(fields)} fields as in the header (got {len(row)})"
                uri = at(row, uri_at)
                return Reject(source, line, uri, RejectCode.TOO_MANY_FIELDS.value, message)
            annotation = [at(row, index) for index in annotation_at]
            if takes_labels:
                annotation = list(filter(None, annotation))
            return self._to_row(at(row, split_at), at(row, uri_at), annotation, source, line)

        return parse

    def _to_row(
        self, ml_use: str, uri: str, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        try:
            split = parse_ml_use(ml_use)
        except ValueError as exc:
            return Reject(source, line, uri, RejectCode.UNKNOWN_ML_USE.value, str(exc))
        if not uri:
            message = _no_path([ml_use, uri, *fields], self._task)
            return Reject(source, line, "", RejectCode.NO_PATH.value, message)
        try:
            uri = check_uri(uri)
            annotation = self._task.from_fields(without_padding(fields), self._adjusted)
        except AnnotationError as exc:
            shown = uri if uri.isprintable() else ascii(uri)
            return Reject(source, line, shown, exc.code.value, exc.message)
        return Row(source, line, split, uri, annotation)


def column_name(field: str) -> str:
    """Return a header's field as the names are listed: ``Image URI`` → ``image_uri``."""
    return re.sub(r"_\d+$", "", field.lower().replace(" ", "_"))


def split_column(header: Sequence[str]) -> int:
    """Return which column of a header names splits; as many as there are: none does."""
    names = [column_name(field.strip()) for field in header]
    for known in (SPLIT_COLUMNS - _PERHAPS_SPLIT, _PERHAPS_SPLIT):
        if found := [index for index, name in enumerate(names) if name in known]:
            return found[0]
    return len(names)


def names_path_column(fields: Sequence[str]) -> bool:
    """Say whether a line can only name columns, a path's among them."""
    return any(column_name(field) in _PATH_COLUMNS for field in fields) and not any(
        map(_looks_like_path, fields)
    )


def alike(fields: Sequence[str], indices: Sequence[int]) -> Sequence[int]:
    """Return the columns that are named as the first of them: ``label_1``, ``label_2``."""
    names = [column_name(at(fields, index)) for index in indices]
    return [index for index, name in zip(indices, names, strict=True) if name == names[0]]


def without_padding(fields: Sequence[str]) -> Sequence[str]:
    """Return fields without the empty ones at their end."""
    end = len(fields)
    while end and not fields[end - 1]:
        end -= 1
    return fields[:end]


def at(fields: Sequence[str], index: int) -> str:
    """Return a field, stripped; "": the line is shorter."""
    return fields[index].strip() if index < len(fields) else ""


def _looks_like_path(text: str) -> bool:
    return "/" in text or names_media(text) or text.lower().endswith(_LIST_SUFFIX)


def names_media(text: str) -> bool:
    """Say whether a text ends as names of images and of videos do."""
    return IMAGE_SUFFIX.search(text) is not None or VIDEO_SUFFIX.search(text) is not None


def _no_path(fields: Sequence[str], task: Task) -> str:
    return f"expected {task.expected}, but the line has no path (got {','.join(fields)!r})"
