"""Rows: what one line of an import file says, before any payload is touched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recordgen.rejects import Finding, Reject


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


# Rows cross Beam in blocks: one pickle for many rows is what makes a million of them cheap. Many
# buckets share the rows that are read, so more must be read for blocks worth it.
BLOCK_ROWS = 2000
