r"""AutoML's CSV files: ``[ML_USE],PATH`` or ``[ML_USE],TEXT``, followed by the task's annotation.

Vertex AI's "Prepare image training data" has no header; ML_USE and the annotation are optional *per
row*, so the first field is ML_USE or the path. For image classification::

    TRAIN,gs://bucket/1.jpg,cat   →  Row(split="train", uri="gs://bucket/1.jpg", annotation="cat")
    gs://bucket/2.jpg,cat         →  Row(split=None, uri="gs://bucket/2.jpg", annotation="cat")
    test,gs://bucket/3.jpg        →  Row(split="test", uri="gs://bucket/3.jpg", annotation=None)
    gs://bucket/4.jpg             →  Row(split=None, uri="gs://bucket/4.jpg", annotation=None)

A first line of column names only (``split,image_uri,label``, in any order) is a header, and so is
any line that repeats it. TFRecorder and many scripts write headers.

In files of texts, a row may also name a file with its text. A text is kept as written, except for
blanks before it, or before its quotes::

    TRAIN,"Good, and cheap.",praise  →  text "Good, and cheap.", label praise, in train
    TEST,gs://bucket/1.txt           →  the text in that file, without a label, in test

An import file of videos may contain rows of segments, and lines that name lists of them. Paths in a
list are relative to the list's folder. The author of the import file chose the lists, so they
follow the same rules as the payloads of its rows: :mod:`recordgen.storage.access`::

    TRAIN,gs://bucket/train.csv              gs://bucket/1.mp4,car,120,180.5
    TEST,gs://bucket/test.csv                gs://bucket/1.mp4,bike,150,inf
    import file                              list
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext

from recordgen import storage
from recordgen.core.dataset.splits import is_ml_use, near_ml_use, parse_ml_use
from recordgen.core.rows.row import Adjustments, Row, RowBatch, content_uri
from recordgen.core.task.annotation import AnnotationError, are_clean_uris, check_uri, named_split
from recordgen.core.task.task import ADDING, SEVERAL, Task
from recordgen.errors import FileTooLargeError, NotAllowedError, SourceError, UnknownSchemeError
from recordgen.formats import field_kinds
from recordgen.formats.csv_records import Item, read_blocks
from recordgen.formats.format import Rows
from recordgen.formats.header import NOWHERE, PATH_COLUMNS, TEXT_COLUMNS, TEXT_FILE_COLUMNS, Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.lines import OpenLines, bounded_lines, open_lines
from recordgen.formats.row_parser import ByHeader, Columns, Parser, Places, RowParser
from recordgen.rejects import Reject, RejectCode, reject
from recordgen.storage import RequestContext
from recordgen.storage.access import Access, RowUrlPolicy
from recordgen.tasks.texts.task import TextContent, inline, stored

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
            annotation = self.decoded(field_kinds.without_padding(fields))
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
    return "/" in text or field_kinds.names_media(text) or text.lower().endswith(_LIST_SUFFIX)


# --- texts ---------------------------------------------------------------------------------------

_CAPITALS = re.compile(r"[A-Z]+", re.ASCII)


class TextParser(RowParser):
    """Makes rows from texts, or from paths of text files, and their labels."""

    paths = TEXT_FILE_COLUMNS
    texts = TEXT_COLUMNS
    strips = False

    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a record of a file without a header; see the module's examples."""
        used = field_kinds.without_padding([field if field.strip() else "" for field in fields])
        first = used[0].strip() if used else ""
        has_ml_use = bool(used) and is_ml_use(first) and (len(used) > 1 or len(fields) > 1)
        subjects = used[has_ml_use:]
        if (media := next(filter(field_kinds.is_media, subjects[:1]), None)) is not None:
            what = "the row names an image or a video, but this is a file of texts"
            remedy = "keep the rows of different tasks in separate files"
            hint = "if it is a text, add a header such as split,text,label"
            message = f"{what}; {remedy} ({hint})"
            return AnnotationError(RejectCode.BAD_LINE, message).reject(source, line, media.strip())
        if len(used) > 1 and not has_ml_use and self._may_have_ml_use(used, first):
            try:
                parse_ml_use(first)
            except ValueError as exc:
                remedy = "quote a text that holds a comma, and write an empty field before one"
                message = f"{exc}; {remedy} that looks like ML_USE"
                return Reject(source, line, "", RejectCode.UNKNOWN_ML_USE.value, message)
        ml_use, text = first if has_ml_use else "", "".join(subjects[:1])
        path, text = (text, "") if field_kinds.is_file(text) else ("", text)
        return self.to_row(ml_use, path, text, subjects[1:], source, line)

    def _may_have_ml_use(self, used: Sequence[str], first: str) -> bool:
        """Return whether the first field may be a slip for ML_USE."""
        if self._task.labelling != SEVERAL and len(used) == 3:
            return True
        # "BEST" and "TEXT" are about as close to "TEST" as its own misspellings.
        is_near = _CAPITALS.fullmatch(first) is not None and near_ml_use(first, 0.8) is not None
        return is_near or field_kinds.is_file(used[1])

    def to_row(
        self, ml_use: str, path: str, text: str, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        stripped, uri = text.strip(), path.strip()
        if stripped:  # a column of texts may contain URLs, but not paths
            uri = stripped if field_kinds.is_known_url(stripped) else ""
        try:
            split = named_split(ml_use)
            labels = field_kinds.without_padding([field.strip() for field in fields])
            annotation = TextContent.decode(self.decoded(labels)).said
            row = stored(check_uri(uri), annotation) if uri else inline(text, annotation)
        except AnnotationError as exc:
            if stripped and not uri and self._task.labelling in ADDING:
                uri = content_uri(text)  # which its other rows have
            return exc.reject(source, line, uri)
        return Row(source, line, split, *row)


# --- lists of videos -----------------------------------------------------------------------------

# A list from a web server is untrusted and is kept in memory.
_MAX_LIST_BYTES = 256_000_000


class VideoParser(LineParser):
    """Makes rows from segments of videos; lines may also name lists of such rows."""

    names_lists = True

    @classmethod
    def parse_lines(
        cls, lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
    ) -> Iterator[Row | Reject]:
        """Parse the lines of an import file, except those that name lists: :meth:`read_list`."""
        rows = super().parse_lines(lines, source=source, task=task, adjusted=adjusted, given=given)
        for item in _each_row(rows):
            if isinstance(item, Reject) or not field_kinds.is_list(item.uri):
                yield item
            elif item.annotation is not None:
                what = f"ML_USE and the path of a list of videos; write {task.expected} in it"
                yield reject(item, RejectCode.TOO_MANY_FIELDS, f"expected {what}")

    @classmethod
    def find_lists(
        cls, lines: Iterable[bytes], source: str, task: Task, given: Given, access: Access
    ) -> Iterator[ImportFile]:
        """Yield the lists that lines name, in their order, with their sizes.

        Raises: SourceError: a list is missing, or may not be read; StorageError: storage failed.
        """
        records = _first_and_lists(read_blocks(lines, source))
        for item in cls(task, Adjustments()).parse_records(records, source, given):
            if isinstance(item, Row) and field_kinds.is_list(item.uri) and item.annotation is None:
                found = storage.resolve(item.uri, source)
                yield ImportFile(found, item.split, source, _list_bytes(found, item, access))

    @classmethod
    def read_list(
        cls, file: ImportFile, task: Task, adjusted: Adjustments, given: Given, access: Access
    ) -> Iterator[Row | Reject]:
        """Read the rows of a list, which another import file names.

        Raises: SourceError: it is missing, or may not be read; StorageError: storage failed.
        """
        path, named_by = file.path, str(file.named_by)
        _check_access(path, named_by, named_by, access)
        with _open_list(path, named_by, access, given.encoding) as lines:
            parsed = super().parse_lines(
                lines, source=path, task=task, adjusted=adjusted, given=given
            )
            for item in _each_row(parsed):
                if isinstance(item, Row) and field_kinds.is_list(item.uri):
                    message = "a list names another list; name it in the import file"
                    item = reject(item, RejectCode.BAD_ANNOTATION, message)
                yield item


def _open_list(path: str, source: str, access: Access, encoding: str) -> OpenLines:
    if not storage.is_http(path):
        return open_lines(path, encoding)
    context = RequestContext(RowUrlPolicy(access, source))
    try:
        data = storage.read_bytes(path, _MAX_LIST_BYTES, context)
    except (OSError, NotAllowedError, FileTooLargeError) as exc:
        raise SourceError(f"{source}: cannot read the list of videos {path}: {exc}") from exc
    return nullcontext(bounded_lines(io.BytesIO(data), path, encoding))


def _first_and_lists(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the records that may be a header or name a list: making all rows would be slow."""
    is_first = True
    for item in items:
        if not isinstance(item, Reject):
            texts = enumerate(item.texts)
            others = {at for at, text in texts if field_kinds.LIST_SUFFIX not in text.lower()}
            yield item.without(others - {0} if is_first else others)
            is_first = False


def _each_row(items: Rows) -> Iterator[Row | Reject]:
    for item in items:
        yield from item.rows if isinstance(item, RowBatch) else [item]


def _list_bytes(path: str, row: Row, access: Access) -> int:
    """Return the size of a list. Raises: SourceError: it is missing or may not be read."""
    where = f"{row.source}:{row.line}"
    _check_access(path, row.source, where, access)
    try:
        return storage.info(path, RequestContext(RowUrlPolicy(access, row.source))).size
    except FileNotFoundError as exc:
        raise SourceError(f"{where}: there is no list of videos {path}") from exc
    except (OSError, NotAllowedError, UnknownSchemeError) as exc:
        raise SourceError(f"{where}: cannot read the list of videos {path}: {exc}") from exc


def _check_access(path: str, source: str, where: str, access: Access) -> None:
    if (refusal := access.refusal(path, source)) is not None:
        raise SourceError(f"{where}: the list of videos {path} may not be read: {refusal}")
