"""Rows: the contents of lines of an import file, before any payload is read."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, TypeVar

from recordgen.messages.masking import without_secrets
from recordgen.rejects import Counted, Finding, OddLine, Reject

_Other = TypeVar("_Other", bound="Reject | Finding | Counted")

#: Most rows in a batch, and in the first one of a file, so that a preview reads few documents.
BATCH_ROWS, FIRST_ROWS = 1000, 100

#: Assumed size of a row that is not read from an import file.
ROW_BYTES = 100


class Row(NamedTuple):
    """One usable line of an import file."""

    source: str  # the import file as the user named it
    line: int  # 1-based physical line number in that file
    split: str | None  # `train`, `eval`, `test`, or None if the line names none
    # Address of the payload as in the line; for a payload in the line itself content_uri; empty if
    # the whole line is an example, even if it equals another.
    uri: str
    annotation: str | None  # the annotation in the task's form, or None
    group: str | None = None  # the group, whose rows share a split, or None
    # The URLs to request for its payloads, or their places in containers (see Range), as a JSON
    # list with null where the uri is enough; None if all uris are. They may contain secrets, so
    # only requests read them.
    addresses: str | None = None


class RowBatch(NamedTuple):
    """Usable lines of one import file: the fields of :class:`Row` as columns.

    ``groups`` and ``addresses`` are None if no row has any.
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
        """Return one or more rows of one import file as a batch."""
        sources, *columns, groups, addresses = zip(*rows, strict=True)
        more = (column if any(column) else None for column in (groups, addresses))
        return cls(sources[0], *columns, *more)

    @property
    def rows(self) -> Iterator[Row]:
        """The rows one by one."""
        source, *columns, groups, addresses = self
        more = (repeat(None) if column is None else column for column in (groups, addresses))
        return map(Row._make, zip(repeat(source), *columns, *more))

    def with_split(self, split: str | None) -> RowBatch:
        """Return the rows with a split for those that name none."""
        if split is None:
            return self
        return self._replace(splits=[named or split for named in self.splits])


#: What reading an import file yields.
ReadItem: TypeAlias = "RowBatch | Reject | Finding | OddLine | Counted"


class Adjustments:
    """Collects the changes that make the next row usable, and odd lines."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, str]] = []
        self._odd_lines: list[OddLine] = []

    def add(self, code: str, message: str) -> None:
        """Note one change; see :class:`Finding`."""
        self._notes.append((code, message))

    def add_line(
        self, source: str, line: int, code: str, message: str, level: str = "warning"
    ) -> None:
        """Note an odd line, which is reported even if its row is rejected; see :class:`OddLine`."""
        self._odd_lines.append(OddLine(source, line, "", code, message, level))

    def taken_lines(self) -> Sequence[OddLine]:
        """Return the odd lines that were noted since the last call."""
        if not self._odd_lines:
            return ()
        found, self._odd_lines = self._odd_lines, []
        return found

    def taken_for(self, row: Row) -> list[Finding]:
        """Return the changes since the last row as findings about this row."""
        notes, self._notes = self._notes, []
        return [Finding(row.source, row.line, row.uri, code, message) for code, message in notes]

    def forget(self) -> None:
        """Forget the changes since the last row: the line became a reject."""
        self._notes = []


def batched(
    items: Iterable[Row | RowBatch | _Other], adjusted: Adjustments | None = None
) -> Iterator[RowBatch | _Other | Finding | OddLine]:
    """Yield consecutive rows in batches of up to :data:`BATCH_ROWS`, and other items unchanged.

    Findings about changes in rows, and odd lines, come before the batch of their row. ``items`` are
    lazy: making one adds its changes to ``adjusted``.
    """
    rows, most = list[Row](), FIRST_ROWS
    adjusted = adjusted or Adjustments()
    for item in items:
        yield from adjusted.taken_lines()
        if not isinstance(item, Row):
            adjusted.forget()
            if rows and isinstance(item, RowBatch):  # rows keep the order of their file
                yield RowBatch.of(rows)
                rows, most = [], BATCH_ROWS
            yield item
        else:
            if rows and (len(rows) == most or rows[0].source != item.source):
                yield RowBatch.of(rows)
                rows, most = [], BATCH_ROWS
            rows.append(item)
            yield from adjusted.taken_for(item)
    yield from adjusted.taken_lines()
    if rows:
        yield RowBatch.of(rows)


#: The beginning of all uris of :func:`content_uri`.
CONTENT = "sha256://"


def content_uri(text: str) -> str:
    """Return the uri of a text in the import file itself: ``sha256://9f86d0…``.

    Equal texts have equal uris.
    """
    return CONTENT + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_content_uri(uri: str) -> bool:
    """Return whether a uri comes from :func:`content_uri`."""
    return uri.startswith(CONTENT)


def is_worth_naming(item: Any) -> bool:
    """Return whether the uri of a reject or a finding adds to its message and its line."""
    is_named = item.source.endswith("/") or item.uri in item.message
    return not is_named and not is_content_uri(item.uri)


def content_digest(uri: str) -> bytes:
    """Return the sha256 of the payload in UTF-8 from a uri of :func:`content_uri`."""
    return bytes.fromhex(uri.removeprefix(CONTENT))


_AnyRow = TypeVar("_AnyRow", "PlacedRow", "PlannedRow")


class PlacedRow(NamedTuple):
    """A row and its place."""

    sort_key: int  # see Place, also for `split_hash`
    split_hash: int
    source: str  # see Row, also for the following fields
    line: int
    split: str | None
    uri: str
    annotation: str | None
    addresses: str | None = None


class KnownRow(NamedTuple):
    """An example of the existing dataset to which a run appends."""

    sort_key: int  # see Place
    shard: str
    split: str
    source: str  # see Row, also for the following fields
    uri: str
    annotation: str | None


class PlannedRow(NamedTuple):
    """A row that will become an example unless its payload is refused.

    See :class:`recordgen.core.rows.row.Place` and :class:`recordgen.core.rows.row.Row` for
    other fields.
    """

    sort_key: int
    source: str
    line: int
    uri: str
    annotation: str | None
    bytes: int  # the payload's size
    version: str  # changes when the payload does
    assigned: bool  # its split was assigned, not named
    addresses: str | None = None


class Group(NamedTuple):
    """A group of planned rows with their own shards."""

    split: str
    label: str | None  # the label of all rows, "" for rows without one; None if labels are mixed


def requested_uris(uris: Sequence[str], addresses: str | None) -> Sequence[str]:
    """Return the uris of a row's payloads, or the URLs to request instead."""
    if addresses is None:
        return uris
    return [url or uri for url, uri in zip(json.loads(addresses), uris, strict=False)]


def with_uri(row: _AnyRow, uri: str) -> _AnyRow:
    """Return the row with another uri."""
    return row if row.uri == uri else row._replace(uri=uri)


def row_name(uri: str, annotation: str | None) -> str:
    """Return the name that decides the place of a row: its uri, or its annotation without one."""
    return uri or annotation or ""


class Place(NamedTuple):
    """The place of a row: two independent 64-bit numbers."""

    sort_key: int  # position among all rows; decides the bucket, the shard, and the order within it
    split_hash: int  # decides the split of rows that name none


_TWO_NUMBERS = struct.Struct(">QQ")


def seeded_hash(seed: int) -> hashlib.blake2b:
    """Return a hash object; a copy that is updated with a name has the name's place as digest."""
    return hashlib.blake2b(digest_size=_TWO_NUMBERS.size, key=str(seed).encode())


def placing(seed: int) -> Callable[[str | bytes], Place]:
    """Return the function that hashes ``(seed, name)`` into a place.

    A place depends only on these: other rows, the number of workers and the runner do not move a
    row.
    """
    seeded = seeded_hash(seed)

    def place(name: str | bytes) -> Place:
        hasher = seeded.copy()
        hasher.update(name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name)
        return Place._make(_TWO_NUMBERS.unpack(hasher.digest()))

    return place


# No row can name a part of a file: the mark is a line break, which no uri may contain. Only formats
# that read containers write it, into the addresses of a row.
_MARK = "\x1e"
_RANGE = re.compile(
    rf"(.+){_MARK}(?:(\d{{1,9}}\.\d{{1,9}}):)?(\d{{1,18}})\+(\d{{1,18}})(?:>(\d{{1,18}}))?"
    r"(?:#([0-9a-f]{8}))?",
    re.DOTALL,
)

#: zlib's code for a stream without a header, as ZIP archives hold them.
PLAIN_DEFLATE = -15


class Range(NamedTuple):
    """The bytes of a payload within a larger file."""

    file: str  # path or URL of the file
    offset: int  # its first byte in the file
    stored: int  # bytes in the file
    # Bytes of the payload if it is packed in the file; None if it is stored as it is.
    inflated: int | None = None
    # The row group and the column of a Parquet file, `3.0`, if the offset counts the bytes of their
    # values, and not of the file; else "".
    values: str = ""
    # The CRC-32 of the payload; None if its container has none.
    crc: int | None = None

    @property
    def length(self) -> int:
        """The bytes of the payload."""
        return self.stored if self.inflated is None else self.inflated

    @property
    def address(self) -> str:
        """The spelling of the range, which :meth:`of` understands."""
        packed = "" if self.inflated is None else f">{self.inflated}"
        crc = "" if self.crc is None else f"#{self.crc:08x}"
        return f"{self.file}{_MARK}{self.place}+{self.stored}{packed}{crc}"

    @property
    def place(self) -> str:
        """Where the payload begins in the file."""
        return f"{self.values}:{self.offset}" if self.values else str(self.offset)

    @classmethod
    def of(cls, path: str) -> Range | None:
        """Return the range that a path spells, or None if it is the path of a whole file."""
        if _MARK not in path or (found := _RANGE.fullmatch(path)) is None:
            return None
        file, values, offset, stored, inflated, crc = found.groups()
        size = int(inflated) if inflated else None
        checksum = int(crc, 16) if crc else None
        return cls(file, int(offset), int(stored), size, values or "", checksum)

    def payload(self, data: bytes) -> bytes:
        """Return the payload, given the bytes in the file.

        Memory is bounded by :attr:`length`, whatever the bytes are.

        Raises: ValueError: they do not inflate to a payload of this length, or of this checksum.
        """
        if self.inflated is not None:
            stream = zlib.decompressobj(PLAIN_DEFLATE)
            try:
                data = stream.decompress(data, self.inflated + 1)
            except zlib.error as exc:
                raise ValueError(f"its deflated bytes are damaged: {exc}") from exc
            if len(data) != self.inflated or not stream.eof:
                raise ValueError(f"it inflates to another size than {self.inflated:,} bytes")
        if self.crc is not None and len(data) == self.length and zlib.crc32(data) != self.crc:
            raise ValueError("its checksum is not the one in the archive; copy the archive again")
        return data


def name_within(container: str, number: int, written: str) -> str:
    """Return the uri of a payload in a container that has no files: its row and its file name.

    The file name is the last name in the path or URL that a tool has written there:
    ``a.parquet``, 3, ``https://me:pw@host/rex.jpg?token=8f`` → ``a.parquet/3/rex.jpg``
    """
    base = posixpath.basename(without_secrets(written).replace("\\", "/"))
    return f"{container}/{number}/{base}" if base else f"{container}/{number}"


def file_of(path: str) -> str:
    """Return the file that holds a payload: the container of a range, or the path itself."""
    found = Range.of(path)
    return path if found is None else found.file


def stored_bytes(address: str, payload: bytes) -> int:
    """Return the bytes that a payload takes in the file that holds it."""
    part = Range.of(address)
    return len(payload) if part is None else part.stored
