"""Rows: what one line of an import file says, before any payload is touched."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple, Protocol


class RejectCode(str, Enum):
    """Why a row is not in the dataset. The values stand in ``rejects.jsonl``."""

    BAD_LINE = "bad_line"
    BAD_ENCODING = "bad_encoding"
    TOO_MANY_FIELDS = "too_many_fields"
    UNKNOWN_ML_USE = "unknown_ml_use"
    NO_PATH = "no_path"
    BAD_ANNOTATION = "bad_annotation"
    CONFLICTING_LABELS = "conflicting_labels"
    CONFLICTING_SPLITS = "conflicting_splits"
    AMBIGUOUS_PATH = "ambiguous_path"
    MISSING_FILE = "missing_file"
    PERMISSION_DENIED = "permission_denied"
    UNKNOWN_SCHEME = "unknown_scheme"
    NOT_ALLOWED = "not_allowed"
    NOT_A_FILE = "not_a_file"
    CHANGED = "changed"
    EMPTY_FILE = "empty_file"
    EMPTY_TEXT = "empty_text"
    TOO_MANY_BYTES = "too_many_bytes"
    TOO_MANY_PIXELS = "too_many_pixels"
    NOT_AN_IMAGE = "not_an_image"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    UNSUPPORTED_PIXELS = "unsupported_pixels"

    def __str__(self) -> str:
        return self.value


# Rows and rejects are NamedTuples, not dataclasses: a million of them cross Beam's coders, and
# tuples pickle in C.
class Row(NamedTuple):
    """One usable line of an import file.

    Attributes:
        source: the import file as it was named.
        line: 1-based physical line number in that file.
        split: ``train``, ``eval``, ``test``, or None when the line names none.
        uri: the payload's address as the line gives it; of a payload in the line itself
            :func:`content_uri`; empty: the line as a whole is an example, whatever others say.
        annotation: what the line says of the payload, as the task has it; None: nothing.
    """

    source: str
    line: int
    split: str | None
    uri: str
    annotation: str | None


class Lines(NamedTuple):
    """Usable lines of a table, column by column: each is an example of its own.

    Attributes:
        source: the import file as it was named.
        numbers: 1-based physical line numbers in that file.
        splits: those that the lines name, as :class:`Row` has them.
        texts: what stands in the lines.
    """

    source: str
    numbers: list[int]
    splits: list[str | None]
    texts: list[str]

    def with_split(self, split: str) -> Lines:
        """Return the lines with a split for those that name none."""
        return self._replace(splits=[named or split for named in self.splits])


class Reject(NamedTuple):
    """One line that is not in the dataset, and why.

    Attributes:
        source: the import file as it was named.
        line: 1-based physical line number in that file.
        uri: the payload's address, as far as the line gives one.
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


class Adjustments:
    """Collects what is changed to make a row usable, until the row is there."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, str]] = []

    def add(self, code: str, message: str) -> None:
        """Note one change; see :class:`Finding`."""
        self._notes.append((code, message))

    def taken_for(self, row: Row | Reject) -> list[Finding]:
        """Return what was noted since the last row, about this one; a reject has nothing."""
        notes, self._notes = self._notes, []
        if isinstance(row, Reject):
            return []
        return [Finding(row.source, row.line, row.uri, code, message) for code, message in notes]


def with_findings(
    rows: Iterable[Row | Reject], adjusted: Adjustments
) -> Iterator[Row | Reject | Finding]:
    """Yield rows, and behind each of them what was changed in it.

    Args:
        rows: makes each row when it is asked for, and notes in ``adjusted`` what it changes.
        adjusted: what ``rows`` notes in.
    """
    for row in rows:
        yield row
        yield from adjusted.taken_for(row)


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


_CONTENT = "sha256://"


def content_uri(text: str) -> str:
    """Return the uri of a payload that stands in the import file itself: ``sha256://9f86d0…``.

    Equal texts have equal uris, wherever they stand.
    """
    return _CONTENT + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_content_uri(uri: str) -> bool:
    """Say whether a uri is one that :func:`content_uri` gives."""
    return uri.startswith(_CONTENT)


def content_digest(uri: str) -> bytes:
    """Return the sha256 that a uri of :func:`content_uri` names: of the payload, as UTF-8."""
    return bytes.fromhex(uri.removeprefix(_CONTENT))


def row_name(uri: str, annotation: str | None) -> str:
    """Return what a row is placed by: its uri, or all that it says if it has none."""
    return uri or annotation or ""


class Place(NamedTuple):
    """Where a row falls: two independent 64-bit numbers.

    Attributes:
        order: position among all rows; decides the bucket, the shard, and the order inside it.
        draw: the ticket for the split lottery of rows that name no split.
    """

    order: int
    draw: int


_TWO_NUMBERS = struct.Struct(">QQ")


def seeded_hash(seed: int) -> hashlib.blake2b:
    """Return the hash whose copies, updated with a name, give the bytes of its place."""
    return hashlib.blake2b(digest_size=_TWO_NUMBERS.size, key=str(seed).encode())


def placing(seed: int) -> Callable[[str | bytes], Place]:
    """Return the function that hashes ``(seed, name)`` into a place.

    A place depends on nothing else: adding or removing other rows, the number of workers and the
    runner do not move a row.
    """
    seeded = seeded_hash(seed)

    def place(name: str | bytes) -> Place:
        hasher = seeded.copy()
        hasher.update(name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name)
        return Place._make(_TWO_NUMBERS.unpack(hasher.digest()))

    return place
