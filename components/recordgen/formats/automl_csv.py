r"""AutoML's CSV files: ``[ML_USE],PATH``, followed by the task's annotation.

Vertex AI's "Prepare image training data" has no header; ML_USE and the annotation are optional *per
row*, so the first field is ML_USE or the path. For image classification::

    TRAIN,gs://bucket/1.jpg,cat   →  Row(split="train", uri="gs://bucket/1.jpg", annotation="cat")
    gs://bucket/2.jpg,cat         →  Row(split=None, uri="gs://bucket/2.jpg", annotation="cat")
    test,gs://bucket/3.jpg        →  Row(split="test", uri="gs://bucket/3.jpg", annotation=None)
    gs://bucket/4.jpg             →  Row(split=None, uri="gs://bucket/4.jpg", annotation=None)

A first line of column names only (``split,image_uri,label``, in any order) is a header, and so is
any line that repeats it. TFRecorder and many scripts write headers.
"""

from __future__ import annotations

from collections.abc import Sequence

from recordgen.core.dataset.splits import is_ml_use, parse_ml_use
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError, are_clean_uris, named_split
from recordgen.core.task.task import SEVERAL, Task
from recordgen.formats.column_names import NOWHERE, PATH_COLUMNS
from recordgen.formats.field_kinds import names_media, without_padding
from recordgen.formats.row_parser import ByHeader, Columns, Parser, Places, RowParser
from recordgen.rejects import Reject, RejectCode

_LIST_SUFFIX = ".csv"


class LineParser(RowParser):
    """Makes rows from paths and annotations."""

    paths = PATH_COLUMNS

    def __init__(self, task: Task, adjusted: Adjustments) -> None:
        super().__init__(task, adjusted)
        self._are_addresses = type(task).check_uri is Task.check_uri
        self._has_one_field = len(task.columns) == 1 and task.labelling != SEVERAL

    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line of a file without a header; see the module's examples."""
        if not any(fields):
            return self._no_path(fields).reject(source, line)
        used = list(fields)
        while len(used) > 1 and not used[-1]:
            used.pop()  # spreadsheets pad short rows with empty fields
        second = used[1] if len(used) > 1 else ""
        if is_ml_use(used[0]) and (len(fields) > 1 or not _looks_like_path(used[0])):
            return self.to_row(used[0], second, "", used[2:], source, line)
        is_full = self._has_one_field and len(used) == 3
        if not _looks_like_path(used[0]) and (is_full or _looks_like_path(second)):
            return self.to_row(used[0], second, "", used[2:], source, line)  # rejects a bad ML_USE
        return self.to_row("", used[0], "", used[1:], source, line)

    def parse_batch(
        self, rows: Sequence[Sequence[str]], parse: Parser, repeated: Sequence[str] | None
    ) -> Columns | None:
        """Parse rows of labels with the same number of fields, see :class:`RowParser`."""
        if not self.takes_labels or len(set(map(len, rows))) != 1 or repeated in rows:
            return None
        if self.has_header(rows):
            return None
        columns = list(zip(*rows, strict=True))
        groups = None
        if isinstance(parse, ByHeader):
            places = parse.places if len(columns) == parse.count else None
            if parse.group < len(columns):
                groups = [group or None for group in columns[parse.group]]
        else:
            places = _places(columns)
        if places is None or not all(columns[places.path]):
            return None
        count = len(rows)
        named = columns[places.split] if places.split < len(columns) else [""] * count
        labels = [columns[index] for index in places.annotation]
        annotations = list(zip(*labels, strict=True)) if labels else [()] * count
        try:
            split_of = {word: parse_ml_use(word) for word in set(named)}
            labels_of = parse.labels if isinstance(parse, ByHeader) else _filled
            annotation_of = {fields: self.decoded(labels_of(fields)) for fields in set(annotations)}
            uris: Sequence[str] = columns[places.path]
            if not self._are_addresses or not are_clean_uris(",".join(uris)):
                uris = list(map(self._task.check_uri, uris))
        except ValueError:  # one of them is a reject
            return None
        splits = list(map(split_of.__getitem__, named))
        return splits, uris, list(map(annotation_of.__getitem__, annotations)), groups

    def to_row(
        self, ml_use: str, path: str, text: str, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        uri = path
        try:
            split = named_split(ml_use)
            if not uri:
                raise self._no_path([ml_use, uri, *fields])
            uri = self._task.check_uri(uri)
            annotation = self.decoded(without_padding(fields))
        except AnnotationError as exc:
            return exc.reject(source, line, uri)
        return Row(source, line, split, uri, annotation)

    def _no_path(self, fields: Sequence[str]) -> AnnotationError:
        expected, got = self._task.expected, ",".join(fields)
        message = f"expected {expected}, but the line has no path (got {got!r})"
        return AnnotationError(RejectCode.NO_PATH, message)


def _filled(fields: Sequence[str]) -> list[str]:
    return list(filter(None, fields))


def _places(columns: Sequence[Sequence[str]]) -> Places | None:
    """Return the places of columns without a header; None if lines differ or leave doubt."""
    first = columns[0]
    if len(columns) in (2, 3) and all(map(is_ml_use, set(first))):
        return Places(0, 1, range(2, len(columns)))
    if len(columns) == 2 and all(map(_looks_like_path, first)):  # no word of ML_USE does
        return Places(NOWHERE, 0, [1])
    return None


def _looks_like_path(text: str) -> bool:
    return "/" in text or names_media(text) or text.lower().endswith(_LIST_SUFFIX)
