"""Rejected rows, and findings: changes that make rows usable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple, Protocol


class RejectCode(str, Enum):
    """Why a row is not in the dataset. ``rejects.jsonl`` holds the values."""

    BAD_LINE = "bad_line"
    BAD_ENCODING = "bad_encoding"
    TOO_MANY_FIELDS = "too_many_fields"
    UNKNOWN_ML_USE = "unknown_ml_use"
    NO_PATH = "no_path"
    BAD_ANNOTATION = "bad_annotation"
    CONFLICTING_LABELS = "conflicting_labels"
    CONFLICTING_SPLITS = "conflicting_splits"
    INCOMPLETE = "incomplete"
    AMBIGUOUS_PATH = "ambiguous_path"
    NO_GROUP = "no_group"
    MISSING_FILE = "missing_file"
    PERMISSION_DENIED = "permission_denied"
    UNREACHABLE = "unreachable"
    HTTP_ERROR = "http_error"
    BAD_RESPONSE = "bad_response"
    PARTIAL_CONTENT = "partial_content"
    UNKNOWN_SCHEME = "unknown_scheme"
    NOT_ALLOWED = "not_allowed"
    NOT_A_FILE = "not_a_file"
    CHANGED = "changed"
    EMPTY_FILE = "empty_file"
    EMPTY_TEXT = "empty_text"
    TOO_MANY_BYTES = "too_many_bytes"
    TOO_MANY_PIXELS = "too_many_pixels"
    TOO_MANY_PARTS = "too_many_parts"
    TOO_SLOW = "too_slow"
    OUT_OF_MEMORY = "out_of_memory"
    NOT_AN_IMAGE = "not_an_image"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    UNSUPPORTED_PIXELS = "unsupported_pixels"

    def __str__(self) -> str:
        return self.value


class Reject(NamedTuple):
    """One line that is not in the dataset, and the reason.

    Attributes:
        source: the import file as the user named it.
        line: 1-based physical line number in that file.
        uri: the payload's address, if the line has one.
        code: a :class:`RejectCode` value.
        message: what was found, what was expected, and the remedy.
    """

    source: str
    line: int
    uri: str
    code: str
    message: str


class Finding(NamedTuple):
    """One change that makes a row usable, such as a dropped box; a line of ``findings.jsonl``.

    The attributes are those of :class:`Reject`; ``rows.adjusted`` in ``dataset.json`` counts
    findings by their code.
    """

    source: str
    line: int
    uri: str
    code: str
    message: str


class OddLine(NamedTuple):
    """A line that a check reports, whether its row was used or not; a line of ``lint.jsonl``.

    Code and level are those of a check; the uri is empty unless the line's payload is concerned.
    """

    source: str
    line: int
    uri: str
    code: str
    message: str
    level: str = "warning"


class Counted(NamedTuple):
    """A number of changes that need no line of their own in ``findings.jsonl``.

    Attributes:
        code: ``rows.adjusted`` in ``dataset.json`` counts them by it.
        number: how many.
    """

    code: str
    number: int


#: The code of paths that are not exact, and whose files were found below the image root.
FOUND_BY_NAME = "found_by_name"


def place_of(source: str, line: int, uri: str) -> str:
    """Return a row as messages name it: ``labels.csv:3``; a row of a folder is its file.

    ``photos/``, 7, ``cat/1.jpg`` → ``photos/cat/1.jpg``
    """
    return f"{source}{uri}" if source.endswith("/") else f"{source}:{line}"


def to_lines(items: Iterable[Reject | Finding]) -> Iterator[str]:
    """Yield a line of JSON for each item, for ``rejects.jsonl`` or ``findings.jsonl``."""
    for item in items:
        yield json.dumps(item._asdict(), ensure_ascii=False) + "\n"


class Named(Protocol):
    """Any row that knows its import file and line."""

    @property
    def source(self) -> str:
        """The import file."""

    @property
    def line(self) -> int:
        """Its 1-based line in that file."""

    @property
    def uri(self) -> str:
        """The payload's address as written in the line."""


def reject(row: Named, code: RejectCode, message: str) -> Reject:
    """Return the reject of a row."""
    return Reject(row.source, row.line, row.uri, code.value, message)


# The code and the message of odd lines, for ``Adjustments.add_line``: they show that an import file
# was joined from several files.
_JOINED_FILES = "JOINED_FILES"

#: A line that repeats the header of its file.
REPEATED_HEADER = (
    _JOINED_FILES,
    "this line repeats the header, as if files had been joined; it was skipped",
)

#: A line that reads as the header of another file.
OTHER_HEADER = (
    _JOINED_FILES,
    "this line names columns like a header, but is not the header of this file: it was read as a "
    "row, and the lines below it were read with the same columns as the lines above",
)

#: A line that begins with a byte order mark, which every reader removes.
FIRST_MARK = (
    _JOINED_FILES,
    "this line begins with a byte order mark (U+FEFF), as if files had been joined; the mark was "
    "removed",
)

#: A line that contains a byte order mark, which stays part of a field.
INNER_MARK = (
    _JOINED_FILES,
    "this line contains a byte order mark (U+FEFF), as if files without a final line break had "
    "been joined; the mark is invisible, but it is part of a field",
)

#: The code of files in a folder of images that are no images.
SKIPPED = "SKIPPED"
