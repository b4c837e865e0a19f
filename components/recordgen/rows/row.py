"""Rows: what lines of an import file say, before any payload is touched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, TypeVar

from recordgen.rejects import Finding, OddLine, Reject

_Other = TypeVar("_Other", bound="Reject | Finding")

#: Rows that are handed on together.
BATCH_ROWS = 2000


class Row(NamedTuple):
    """One usable line of an import file.

    Attributes:
        source: the import file as it was named.
        line: 1-based physical line number in that file.
        split: ``train``, ``eval``, ``test``, or None when the line names none.
        uri: the payload's address as the line gives it; of a payload in the line itself
            :func:`content_uri`; empty: the line as a whole is an example, whatever others say.
        annotation: what the line says of the payload, as the task has it; None: nothing.
        group: what the column of groups holds, which shares a split; None: nothing.
        addresses: the URLs to request for its payloads, as a list in JSON, null where the uri is
            enough; None: all uris are. They may hold secrets: nothing but requests reads them.
    """

    source: str
    line: int
    split: str | None
    uri: str
    annotation: str | None
    group: str | None = None
    addresses: str | None = None

    def with_split(self, split: str) -> Row:
        """Return the row with a split if it names none."""
        return self._replace(split=self.split or split)


class RowBatch(NamedTuple):
    """Usable lines of one import file, column by column.

    Attributes:
        source: the import file, as :class:`Row` has it.
        lines: see :class:`Row`, as all that follow.
        splits: those that the lines name.
        uris: of their payloads.
        annotations: what they say of them.
        groups: what their column of groups holds; None: there is no such column.
        addresses: the URLs to request for their payloads; None: no row has any.
    """

    source: str
    lines: Sequence[int]
    splits: Sequence[str | None]
    uris: Sequence[str]
    annotations: Sequence[str | None]
    groups: Sequence[str | None] | None = None
    addresses: Sequence[str | None] | None = None

    @classmethod
    def of(cls, rows: Sequence[Row]) -> RowBatch:
        """Return rows of one import file, at least one, as a batch."""
        sources, *columns, groups, addresses = zip(*rows, strict=True)
        more = (column if any(column) else None for column in (groups, addresses))
        return cls(sources[0], *columns, *more)

    @property
    def rows(self) -> Iterator[Row]:
        """The rows one by one."""
        source, *columns, groups, addresses = self
        more = (repeat(None) if column is None else column for column in (groups, addresses))
        return map(Row._make, zip(repeat(source), *columns, *more))

    def with_split(self, split: str) -> RowBatch:
        """Return the rows with a split for those that name none."""
        return self._replace(splits=[named or split for named in self.splits])


def batched(items: Iterable[Row | RowBatch | _Other]) -> Iterator[RowBatch | _Other]:
    """Put rows that follow each other into batches of :data:`BATCH_ROWS`; all else passes by."""
    rows: list[Row] = []
    for item in items:
        if not isinstance(item, Row):
            yield item
            continue
        if rows and (len(rows) == BATCH_ROWS or rows[0].source != item.source):
            yield RowBatch.of(rows)
            rows = []
        rows.append(item)
    if rows:
        yield RowBatch.of(rows)


def one_by_one(items: Iterable[Row | RowBatch | _Other]) -> Iterator[Row | _Other]:
    """Yield the rows of batches one by one; all else passes by."""
    for item in items:
        if isinstance(item, RowBatch):
            yield from item.rows
        else:
            yield item


class Adjustments:
    """Collects what is changed to make a row usable, until the row is there; and odd lines."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, str]] = []
        self._odd_lines: list[OddLine] = []

    def add(self, code: str, message: str) -> None:
        """Note one change; see :class:`Finding`."""
        self._notes.append((code, message))

    def add_line(self, source: str, line: int, code: str, message: str) -> None:
        """Note an odd line, whatever becomes of its row; see :class:`OddLine`."""
        self._odd_lines.append(OddLine(source, line, "", code, message))

    def taken_lines(self) -> Sequence[OddLine]:
        """Return the odd lines that were noted since they were last taken."""
        if not self._odd_lines:
            return ()
        found, self._odd_lines = self._odd_lines, []
        return found

    def taken_for(self, row: Row | RowBatch | Reject) -> list[Finding]:
        """Return what was noted since the last row, about this one; a reject has nothing."""
        notes, self._notes = self._notes, []
        if not isinstance(row, Row):  # in rows that come in batches, nothing was changed
            return []
        return [Finding(row.source, row.line, row.uri, code, message) for code, message in notes]


def with_findings(
    rows: Iterable[Row | RowBatch | Reject], adjusted: Adjustments
) -> Iterator[Row | RowBatch | Reject | Finding]:
    """Yield rows, and behind each of them what was changed in it, and odd lines.

    Making a row notes in ``adjusted`` what it changes, so rows are made when they are asked for.
    """
    for row in rows:
        yield row
        yield from adjusted.taken_for(row)
        yield from adjusted.taken_lines()
    yield from adjusted.taken_lines()


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
