"""Rejected rows, and findings: parts of rows that were dropped or changed."""

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
    NOT_AN_IMAGE = "not_an_image"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    UNSUPPORTED_PIXELS = "unsupported_pixels"

    def __str__(self) -> str:
        return self.value


class Reject(NamedTuple):
    """One line that is not in the dataset, and why.

    Attributes:
        source: the import file as it was named.
        line: 1-based physical line number in that file.
        uri: the payload's address, if the line gives one.
        code: a :class:`RejectCode` value.
        message: what was found, what was expected, and the remedy.
    """

    source: str
    line: int
    uri: str
    code: str
    message: str


class Finding(NamedTuple):
    """One thing that was changed in a row to make it usable: a box that was left out, say.

    A line of ``findings.jsonl`` has these fields; those of :class:`Reject` have the same names.

    Attributes:
        source: the import file as it was named.
        line: 1-based physical line number in that file.
        uri: the payload's address as the line gives it.
        code: the kind, by which ``rows.adjusted`` in ``dataset.json`` counts findings.
        message: what was found, and what was done.
    """

    source: str
    line: int
    uri: str
    code: str
    message: str


class OddLine(Finding):
    """A line that a check names, whatever became of its row; the uri is empty.

    ``lint.jsonl`` has it, not ``findings.jsonl``: the code is one of
    :data:`recordgen.lint.codes.CHECKS`.
    """

    __slots__ = ()


def to_lines(items: Iterable[Reject | Finding]) -> Iterator[str]:
    """Yield the line of JSON that ``rejects.jsonl`` or ``findings.jsonl`` has for each item."""
    for item in items:
        yield json.dumps(item._asdict(), ensure_ascii=False) + "\n"


class Named(Protocol):
    """Any row that says which line names its payload."""

    @property
    def source(self) -> str:
        """The import file."""

    @property
    def line(self) -> int:
        """Its 1-based line in that file."""

    @property
    def uri(self) -> str:
        """The payload's address as the line gives it."""


def reject(row: Named, code: RejectCode, message: str) -> Reject:
    """Return the reject that says why ``row`` is left out."""
    return Reject(row.source, row.line, row.uri, code.value, message)
