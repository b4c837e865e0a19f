"""AutoML image CSV, single label: ``[ML_USE],GCS_FILE_PATH,[LABEL]``.

Vertex AI "Prepare image training data for classification": no header; ML_USE and LABEL are
optional *per row*, so the first field is ML_USE or the path::

    TRAIN,gs://bucket/1.jpg,cat   →  Row(split="train", uri="gs://bucket/1.jpg", label="cat")
    gs://bucket/2.jpg,cat         →  Row(split=None, uri="gs://bucket/2.jpg", label="cat")
    test,gs://bucket/3.jpg        →  Row(split="test", uri="gs://bucket/3.jpg", label=None)
    gs://bucket/4.jpg             →  Row(split=None, uri="gs://bucket/4.jpg", label=None)

A first line that holds only column names (``split,image_uri,label``, in any order) is a header;
TFRecorder and many scripts write one.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from recordgen.errors import SourceError
from recordgen.rows import Reject, RejectCode, Row
from recordgen.sources.lines import MAX_LINE_BYTES
from recordgen.splits import is_ml_use, parse_ml_use

EXPECTED = "[ML_USE],PATH,[LABEL]"

_SPLIT_COLUMNS = frozenset({"split", "ml_use", "mluse", "dataset_split", "set"})
_PATH_COLUMNS = frozenset(
    {"image_uri", "imagegcsuri", "gcs_file_path", "gcs_path", "gcs_uri", "uri", "path", "url"}
    | {"image_url", "image_path", "img_path", "file_path", "filepath", "filename", "file_name"}
    | {"file", "image", "image_name", "image_file"}
)
_LABEL_COLUMNS = frozenset({"label", "labels", "class", "class_name", "display_name", "category"})

_IMAGE_SUFFIX = re.compile(r"\.(jpe?g|png|gif|bmp|ico|webp|tiff?)$", re.IGNORECASE)
# "TRAIN;a.jpg;cat", or tabs: a spreadsheet's other ideas of CSV.
_OTHER_SEPARATOR = re.compile(
    rb"\s*(train(ing)?|validat(ion|e)|test|unassigned|split|ml_use|label|image_uri)[;\t]",
    re.IGNORECASE,
)
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# (fields, source, line) → what the line says
_Parser = Callable[[Sequence[str], str, int], "Row | Reject"]


def parse_lines(lines: Iterable[bytes], *, source: str) -> Iterator[Row | Reject]:
    r"""Parse the physical lines of an import file.

    Each physical line is one record: no field of this format can hold a line break, so an
    unbalanced quote spoils one line and not the rest of the file.

    Args:
        lines: lines with or without their ending (``\n`` or ``\r\n``); a first UTF-8 byte order
            mark is skipped.
        source: the file's name, for rows and messages.

    Raises:
        SourceError: the file is UTF-16.
    """
    parse: _Parser = parse_row
    first = True
    for number, raw in enumerate(lines, start=1):
        if number == 1:
            if raw.startswith(_UTF16_MARKS):
                raise SourceError(f"{source}: this file is UTF-16; save it as CSV UTF-8")
            raw = raw.removeprefix(codecs.BOM_UTF8)
        if not raw.strip():
            continue
        if first and b"," not in raw and _OTHER_SEPARATOR.match(raw):
            raise SourceError(f"{source}:{number}: fields must be separated by commas")
        fields = split_line(raw, source, number)
        if isinstance(fields, Reject):
            yield fields
        elif not any(fields):
            yield Reject(source, number, "", RejectCode.NO_PATH.value, _no_path(fields))
        elif first and (header := parse_header(fields)) is not None:
            parse = header
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


def parse_row(fields: Sequence[str], source: str, line: int) -> Row | Reject:
    """Parse the fields of a line without header; see the module's examples."""
    used = fields
    if len(used) == 3 and is_ml_use(used[0]):  # what nearly every line looks like
        return _to_row(used[0], used[1], used[2], source, line)
    used = list(fields)
    while len(used) > 3 and not used[-1]:
        used.pop()  # spreadsheets pad short rows with empty fields
    labels_follow = _looks_like_path(used[0]) and not _looks_like_path(_at(used, 1))
    if len(used) > 3 or (_at(used, 2) and labels_follow):
        message = (
            f"expected {EXPECTED}, one label per image (got {len(used)} fields); "
            f"quote a field that holds a comma"
        )
        uri = used[1] if is_ml_use(used[0]) else used[0]
        return Reject(source, line, uri, RejectCode.TOO_MANY_FIELDS.value, message)
    if is_ml_use(used[0]) and (len(used) > 1 or not _looks_like_path(used[0])):
        return _to_row(used[0], _at(used, 1), _at(used, 2), source, line)
    if _at(used, 2) or (len(used) > 1 and _names_path_second(used)):
        return _to_row(used[0], used[1], _at(used, 2), source, line)
    return _to_row("", used[0], _at(used, 1), source, line)


def parse_header(fields: Sequence[str]) -> _Parser | None:
    """Return the parser for the columns that a header line names; None: it is a data line.

    A header names a path column and, if it has more columns, a split or a label column; columns
    of other names are allowed beside them and ignored.
    """
    columns: dict[str, int] = {}
    for index, field in enumerate(fields):
        for role, names in _ROLES.items():
            if field.lower().replace(" ", "_") in names:
                columns.setdefault(role, index)
    if "uri" not in columns or (len(fields) > 1 and len(columns) == 1):
        return None

    def parse(row: Sequence[str], source: str, line: int) -> Row | Reject:
        if len(row) > len(fields) and any(row[len(fields) :]):
            message = f"expected {len(fields)} fields as in the header (got {len(row)})"
            uri = _at(row, columns["uri"])
            return Reject(source, line, uri, RejectCode.TOO_MANY_FIELDS.value, message)
        split, uri, label = (
            _at(row, columns[role]) if role in columns else "" for role in ("split", "uri", "label")
        )
        return _to_row(split, uri, label, source, line)

    return parse


_ROLES: Mapping[str, frozenset[str]] = {
    "split": _SPLIT_COLUMNS,
    "uri": _PATH_COLUMNS,
    "label": _LABEL_COLUMNS,
}


def _to_row(ml_use: str, uri: str, label: str, source: str, line: int) -> Row | Reject:
    try:
        split = parse_ml_use(ml_use)
    except ValueError as exc:
        return Reject(source, line, uri, RejectCode.UNKNOWN_ML_USE.value, str(exc))
    if not uri:
        return Reject(source, line, "", RejectCode.NO_PATH.value, _no_path([ml_use, uri, label]))
    if not (uri + label).isprintable() and (reason := _unusable(uri, label)):
        return Reject(source, line, ascii(uri), *reason)
    return Row(source, line, split, uri, label or None)


def _unusable(uri: str, label: str) -> tuple[str, str] | None:
    """Return code and message if a field cannot be written to a text file and read back."""
    try:
        (uri + label).encode("utf-8")
    except UnicodeEncodeError:
        return RejectCode.BAD_ENCODING.value, "the path or label is not Unicode text"
    if len(uri.splitlines()) > 1 or len(label.splitlines()) > 1:
        return RejectCode.BAD_LINE.value, "a path or label must not hold a line break"
    return None


def _at(fields: Sequence[str], index: int) -> str:
    return fields[index] if index < len(fields) else ""


def _looks_like_path(text: str) -> bool:
    return "/" in text or _IMAGE_SUFFIX.search(text) is not None


def _names_path_second(fields: Sequence[str]) -> bool:
    """Say whether the path can only be the second field, so that the first is a bad ML_USE."""
    return not _looks_like_path(fields[0]) and _looks_like_path(fields[1])


def _no_path(fields: Sequence[str]) -> str:
    return f"expected {EXPECTED}, but the line has no path (got {','.join(fields)!r})"
