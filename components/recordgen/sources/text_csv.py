r"""AutoML's CSV files of texts: ``[ML_USE],TEXT`` and what the task says behind it.

No header; ML_USE and the labels are optional *per row*. Of text classification::

    TRAIN,"Good, and cheap.",praise  →  text "Good, and cheap.", label praise, in train
    Good and cheap.,praise           →  text "Good and cheap.", label praise, its split drawn
    TEST,gs://bucket/1.txt           →  the text in that file, without a label, in test

Fields may be quoted, and then hold commas and line breaks (:mod:`recordgen.sources.csv_records`).
A text is kept as it is written, but for blanks before it, or before its quotes. A first line that
holds only column names (``split,text,label``, in any order) is a header, and so is any line that
repeats it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from recordgen import storage
from recordgen.errors import SourceError
from recordgen.rows import Reject, RejectCode, Row
from recordgen.sources.automl_csv import (
    SPLIT_COLUMNS,
    Parser,
    alike,
    at,
    column_name,
    names_media,
    split_column,
    without_padding,
)
from recordgen.sources.csv_records import read_records
from recordgen.sources.layout import checked
from recordgen.splits import is_ml_use, parse_ml_use
from recordgen.tasks.image_classification import LABEL_COLUMNS
from recordgen.tasks.task import AnnotationError, Task, check_uri
from recordgen.tasks.text_task import TextSaid, inline, stored

_TEXT_COLUMNS = frozenset(
    {"text", "content", "text_content", "textcontent", "sentence", "review", "comment", "document"}
    | {"message", "body", "utterance", "tweet", "text_snippet"}
)
_FILE_COLUMNS = frozenset(
    {"text_gcs_uri", "textgcsuri", "text_uri", "text_file", "text_path", "gcs_file_path"}
    | {"gcs_path", "gcs_uri", "uri", "path", "url", "file_path", "filepath", "filename"}
    | {"file_name", "file"}
)

# Blanks are part of a URL only if its end says so.
_URL = re.compile(r"[a-z][a-z0-9+.-]*://(\S+|.+\.txt)", re.IGNORECASE)

_URL_INSIDE = re.compile(r"\s[a-z][a-z0-9+.-]*://", re.IGNORECASE)

# A name of more words is rather the end of a sentence.
_WORDS_OF_A_NAME = 3

_CAPITALS = re.compile(r"[A-Z]+", re.ASCII)
_ML_USES = ("TRAIN", "TRAINING", "VALIDATION", "VALIDATE", "TEST", "UNASSIGNED")


class _Payload(NamedTuple):
    """A text as it stands in a line, or the file that has it."""

    text: str
    file: str = ""

    @classmethod
    def of(cls, field: str) -> _Payload:
        """Return what a field holds that is a text or a file."""
        return cls("", field.strip()) if is_file(field) else cls(field)

    @classmethod
    def of_text(cls, field: str) -> _Payload:
        """Return what a field holds in a column of texts, where a path is not looked for."""
        return cls("", field.strip()) if _is_known_url(field.strip()) else cls(field)


def parse_lines(
    lines: Iterable[bytes], *, source: str, task: Task, adjusted: Counter[str]
) -> Iterator[Row | Reject]:
    r"""Parse the physical lines of an import file of texts.

    Args:
        lines: without their ``\n``; a first UTF-8 byte order mark is skipped.
        source: the file's name, for rows and messages.
        task: reads the fields behind the text.
        adjusted: counts what was changed to make rows usable, by kind.

    Raises:
        SourceError: the file as a whole is no CSV of rows, see :mod:`recordgen.sources.layout`; or
            its first line names columns of which none but the text's is known.
    """
    parser = TextParser(task, adjusted)
    parse: Parser = parser.parse_row
    repeated: Sequence[str] | None = None
    for number, record in enumerate(read_records(checked(lines, source), source)):
        if isinstance(record, Reject):
            yield record
        elif number == 0 and (header := parser.parse_header(record.fields)) is not None:
            parse, repeated = header, record.fields
        elif record.fields == repeated:
            pass  # files that were put together, each with its header
        elif number == 0 and names_text_column([field.strip() for field in record.fields]):
            raise SourceError(
                f"{source}:{record.line}: this line names columns, and beside the text's none is "
                f"known ({','.join(record.fields)}); name them split, text and label; if it is a "
                f"row, write ML_USE in front of it, such as UNASSIGNED"
            )
        else:
            yield parse(record.fields, source, record.line)


def is_file(field: str) -> bool:
    """Say whether a field names a text file: a URL of a known storage, or a path to a ``.txt``.

    Words that end with ``.txt`` are a text, unless a ``/`` is among them.
    """
    text = field.strip()
    if len(text.splitlines()) != 1:
        return False
    if text.lower().endswith(".txt"):
        return "/" in text or len(text.split()) == 1
    return _is_known_url(text)


def _is_known_url(text: str) -> bool:
    # A URL among other words is part of a text.
    return _URL.fullmatch(text) is not None and storage.is_known(text)


def is_media(field: str) -> bool:
    """Say whether a field is the name of an image or a video, and no text."""
    text = field.strip()
    words = len(text.split())
    if not names_media(text) or has_url_inside(text):
        return False
    return words == 1 or ("/" in text and words <= _WORDS_OF_A_NAME)


def has_url_inside(text: str) -> bool:
    """Say whether other words stand before a URL, so that a text ends with it."""
    return _URL_INSIDE.search(text) is not None


def has_text_column(names: Iterable[str]) -> bool:
    """Say whether one of a header's columns is one of texts."""
    return any(column_name(name) in _TEXT_COLUMNS for name in names)


def names_text_column(fields: Sequence[str]) -> bool:
    """Say whether a line can only name columns, a text's among them."""
    return (
        len(fields) > 1
        and has_text_column(fields)
        and not any(is_file(field) or (field and is_ml_use(field)) for field in fields)
        and not any(len(field.split()) > 3 for field in fields)
    )


def knows_columns(fields: Sequence[str]) -> bool:
    """Say whether a header names a split, or what tasks say of texts, beside the text."""
    known = SPLIT_COLUMNS | LABEL_COLUMNS | {"sentiment"}
    return any(column_name(field) in known for field in fields)


class TextParser:
    """Makes rows of the fields of texts, for one task."""

    def __init__(self, task: Task, adjusted: Counter[str]) -> None:
        self._task = task
        self._adjusted = adjusted

    def knows(self, field: str) -> bool:
        """Say whether a header's field names a column that a row is made of."""
        known = (SPLIT_COLUMNS, _TEXT_COLUMNS, _FILE_COLUMNS, *self._task.columns.values())
        return any(column_name(field) in names for names in known)

    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a record without header; see the module's examples."""
        used = without_padding([field if field.strip() else "" for field in fields])
        first = used[0].strip() if used else ""
        has_ml_use = bool(used) and is_ml_use(first) and (len(used) > 1 or len(fields) > 1)
        if (media := next(filter(is_media, used[has_ml_use : has_ml_use + 1]), None)) is not None:
            return _no_text(media.strip(), source, line)
        if has_ml_use:
            text = used[1] if len(used) > 1 else ""
            return self._to_row(first, _Payload.of(text), used[2:], source, line)
        is_full = self._task.repeats is None and len(used) == 3
        if len(used) > 1 and (is_full or _is_misspelt(first) or is_file(used[1])):
            try:
                parse_ml_use(first)
            except ValueError as exc:
                message = (
                    f"{exc}; quote a text that holds a comma, and write an empty field before one "
                    f"that looks like ML_USE"
                )
                return Reject(source, line, "", RejectCode.UNKNOWN_ML_USE.value, message)
        return self._to_row("", _Payload.of(used[0] if used else ""), used[1:], source, line)

    def parse_header(self, fields: Sequence[str]) -> Parser | None:
        """Return the parser for the columns that a header names; None: it is a data line.

        A header names a text's or file's column and, if it has more columns, a split or one of the
        task's; columns of other names are allowed beside them and ignored.
        """
        roles = {"split": SPLIT_COLUMNS, "text": _TEXT_COLUMNS, "file": _FILE_COLUMNS}
        columns: dict[str, list[int]] = {}
        for index, field in enumerate(fields):
            for role, names in (roles | dict(self._task.columns)).items():
                if column_name(field.strip()) in names:
                    columns.setdefault(role, []).append(index)
        if columns.keys().isdisjoint({"text", "file"}) or (
            len(fields) > 1 and columns.keys() <= {"text", "file"}
        ):
            return None
        nowhere = [len(fields)]
        split_at = split_column(fields)
        text_at, file_at = (columns.get(role, nowhere)[0] for role in ("text", "file"))
        label_at = [
            index
            for role in self._task.columns
            for index in alike(fields, columns.get(role, nowhere))
        ]

        def parse(row: Sequence[str], source: str, line: int) -> Row | Reject:
            if any(field.strip() for field in row[len(fields) :]):
                message = (
                    f"expected {len(fields)} fields as in the header (got {len(row)}); quote a "
                    f"text that holds a comma"
                )
                return Reject(source, line, "", RejectCode.TOO_MANY_FIELDS.value, message)
            text = row[text_at] if text_at < len(row) else ""
            payload = _Payload.of_text(text) if text.strip() else _Payload("", at(row, file_at))
            labels = [at(row, index) for index in label_at]
            return self._to_row(at(row, split_at), payload, labels, source, line)

        return parse

    def _to_row(
        self, ml_use: str, payload: _Payload, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        text, uri = payload
        try:
            split = parse_ml_use(ml_use)
        except ValueError as exc:
            return Reject(source, line, uri, RejectCode.UNKNOWN_ML_USE.value, str(exc))
        try:
            labels = without_padding([field.strip() for field in fields])
            said = TextSaid.decode(self._task.from_fields(labels, self._adjusted)).said
            row = stored(check_uri(uri), said) if uri else inline(text, said)
        except AnnotationError as exc:
            shown = uri if uri.isprintable() else ascii(uri)
            return Reject(source, line, shown, exc.code.value, exc.message)
        return Row(source, line, split, *row)


def _is_misspelt(field: str) -> bool:
    """Say whether a field can only be a misspelt ML_USE."""
    return _CAPITALS.fullmatch(field) is not None and bool(
        get_close_matches(field, _ML_USES, n=1, cutoff=0.8)
    )


def _no_text(name: str, source: str, line: int) -> Reject:
    """Return the reject of a row that is about an image or a video."""
    message = (
        "the row names an image or a video, and the file is one of texts; keep the rows of each "
        "task in files of their own (if it is a text: a header such as split,text,label says so)"
    )
    shown = name if name.isprintable() else ascii(name)
    return Reject(source, line, shown, RejectCode.BAD_LINE.value, message)
