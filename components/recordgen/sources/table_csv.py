r"""Tables as CSV, by RFC 4180: a header, then records, whose quoted fields may hold line breaks.

age,job           header
58,management  →  Lines("wines.csv", numbers=[2], splits=[None], texts=["58,management"])
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from recordgen.dataset.splits import parse_ml_use
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Lines
from recordgen.sources.layout import EMPTY
from recordgen.sources.lines import MAX_LINE_BYTES, open_lines, text_of_first
from recordgen.tables.columns import BLOCK_CHARACTERS, BLOCK_LINES, Table
from recordgen.tables.long_fields import is_long, split_long

# A quote that is never closed must not swallow the rest of the file.
_MAX_RECORD_LINES = 1000

_LINES_AT_ONCE = 1000

#: What lines are made of that are no rows; stripping it is quicker than :func:`is_empty`.
EMPTY_FIELDS = EMPTY.decode()


class Record(NamedTuple):
    """One record of a file.

    Attributes:
        line: 1-based number of its first physical line.
        text: as it stands there, without the line's end.
        fields: its fields; None: there are no quotes, so commas part them.
    """

    line: int
    text: str
    fields: Sequence[str] | None

    def split(self) -> Sequence[str]:
        """Return the fields."""
        return self.text.split(",") if self.fields is None else self.fields


class Plain(NamedTuple):
    """Lines without quotes that follow each other, each a record of its own, or empty.

    Attributes:
        line: 1-based number of the first.
        texts: what stands in them, without the lines' ends.
    """

    line: int
    texts: Sequence[str]


def read_records(lines: Iterable[bytes], source: str) -> Iterator[Record | Reject]:
    """Put physical lines together to records; lines of nothing but empty fields give nothing.

    Args and Raises: as :func:`read_blocks`.
    """
    for item in read_blocks(lines, source):
        if isinstance(item, Plain):
            for line, text in enumerate(item.texts, start=item.line):
                if not is_empty(text):
                    yield Record(line, text, None)
        else:
            yield item


def is_empty(text: str) -> bool:
    """Say whether a line has nothing but empty fields, as spreadsheets write them below a table."""
    return not text.strip(EMPTY_FIELDS)


def read_blocks(lines: Iterable[bytes], source: str) -> Iterator[Plain | Record | Reject]:
    r"""Put physical lines together to records, many at a time where nothing is special about them.

    Args:
        lines: lines with or without their ending; a first byte order mark of UTF-8 is skipped.
        source: the file's name, for rejects and messages.

    Raises:
        SourceError: the file is UTF-16, or no text at all.
    """
    stream = _Lines(iter(lines))
    number = 0
    while block := stream.some():
        if number == 0:
            block[0] = text_of_first(block[0], source, "CSV UTF-8")
        items = _whole_records(block, number + 1)
        if items is not None:
            yield from items
            number += len(block)
            continue
        stream.give_back(block)
        last = number + len(block)
        while number < last and (raw := next(stream, None)) is not None:
            number += 1
            if raw.strip(EMPTY):
                taken = [raw]
                item = _one_record(taken, stream, source, number)
                if isinstance(item, Reject):
                    stream.give_back(taken[1:])  # a quote had swallowed them
                else:
                    number += len(taken) - 1
                yield item


def _whole_records(block: Sequence[bytes], first: int) -> list[Plain | Record] | None:
    """Return lines that are records by themselves; None: each must be looked at on its own.

    Args:
        block: physical lines that follow each other.
        first: the number of the first.
    """
    texts = _texts_of(block)
    if texts is None:
        return None
    quoted = [at for at, text in enumerate(texts) if '"' in text]
    if any(is_long(texts[at]) for at in quoted):
        return None
    items: list[Plain | Record] = []
    start = 0
    reader = csv.reader((texts[at] for at in quoted), strict=True)
    try:
        for number, at in enumerate(quoted, start=1):
            fields = next(reader)
            if reader.line_num != number:
                return None  # its quotes are closed further down
            if at > start:
                items.append(Plain(first + start, texts[start:at]))
            items.append(Record(first + at, texts[at], fields))
            start = at + 1
    except csv.Error:
        return None
    if start < len(texts):
        items.append(Plain(first + start, texts[start:]))
    return items


def _texts_of(block: Sequence[bytes]) -> list[str] | None:
    """Return lines as texts; None: one of them is none, or needs a closer look."""
    joined = b"\n".join(block)
    if b"\0" in joined or max(map(len, block)) > MAX_LINE_BYTES:
        return None
    try:
        text = joined.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\r" in text:
        text = f"{text}\n".replace("\r\n", "\n").removesuffix("\n")
    texts = text.split("\n")
    return texts if len(texts) == len(block) and "\r" not in text else None


class _Lines:
    """An iterator over lines to which lines can be given back."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._again: deque[bytes] = deque()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return self._again.popleft() if self._again else next(self._lines)

    def some(self) -> list[bytes]:
        """Return the next lines, up to a thousand."""
        known = [self._again.popleft() for _ in range(min(_LINES_AT_ONCE, len(self._again)))]
        return known or list(islice(self._lines, _LINES_AT_ONCE))

    def give_back(self, lines: Sequence[bytes]) -> None:
        """Take back the lines that came last."""
        self._again.extendleft(reversed(lines))


def _one_record(
    taken: list[bytes], stream: Iterator[bytes], source: str, line: int
) -> Record | Reject:
    """Return the record that begins with a line; ``taken`` gets the others that belong to it."""
    raw = taken[0]
    if len(raw) > MAX_LINE_BYTES:
        return too_long(source, line)
    start = raw.decode("utf-8", "replace").rstrip("\r\n")
    if "\0" in start or ("\r" in start and '"' not in start):
        message = "a line must not hold a NUL or a carriage return; is this a CSV file?"
        return Reject(source, line, "", RejectCode.BAD_LINE.value, message)
    try:
        fields = _fields(taken, stream)
    except UnicodeDecodeError as exc:
        return _not_utf8(exc, source, line)
    except _TooLong:
        return too_long(source, line)
    except (csv.Error, ValueError) as exc:
        message = f"quotes must be balanced, and a quote inside doubled ({exc}): {start[:80]}"
        return Reject(source, line, "", RejectCode.BAD_LINE.value, message)
    text = b"\n".join(part.removesuffix(b"\n") for part in taken).decode("utf-8")
    return Record(line, text.rstrip("\r"), fields if '"' in text else None)


class _TooLong(Exception):
    """A record has more bytes than a row may have."""


def _fields(taken: list[bytes], stream: Iterator[bytes]) -> list[str]:
    """Return the fields of the record that begins with a line.

    Raises:
        csv.Error: it is none.
        UnicodeDecodeError: it is not UTF-8.
        _TooLong: it is, or its quotes are not closed.
    """
    try:
        return next(csv.reader(_texts(taken, stream), strict=True))
    except csv.Error:
        if not is_long("".join(_texts(taken, iter(())))):
            raise
        return split_long(_texts(taken, stream))


def _texts(taken: list[bytes], stream: Iterator[bytes]) -> Iterator[str]:
    """Yield lines of a record, first those that are taken."""
    size = 0
    for number in range(_MAX_RECORD_LINES):
        if number == len(taken):
            following = next(stream, None)
            if following is None:
                return
            taken.append(following)
        size += len(taken[number])
        if size + number > MAX_LINE_BYTES:
            raise _TooLong
        yield taken[number].decode("utf-8").removesuffix("\n") + "\n"


def too_long(source: str, line: int) -> Reject:
    """Return the reject of a record of more than ``MAX_LINE_BYTES``."""
    message = (
        f"a row must be at most {MAX_LINE_BYTES} bytes long: close its quotes, or shorten its "
        f"fields"
    )
    return Reject(source, line, "", RejectCode.BAD_LINE.value, message)


def _not_utf8(exc: UnicodeDecodeError, source: str, line: int) -> Reject:
    message = f"byte {exc.start + 1} of the line is not UTF-8; save the file as UTF-8"
    return Reject(source, line, "", RejectCode.BAD_ENCODING.value, message)


def read_table(path: str, table: Table) -> Iterator[Lines | Reject]:
    """Yield the lines of an import file that have a field for every column, and rejects of others.

    Args:
        path: the file.
        table: which columns there are.

    Raises:
        SourceError: the file is missing or unreadable, UTF-16, or no text at all.
        StorageError: storage failed.
    """
    with open_lines(path) as lines:
        yield from lines_of(without_headers(read_blocks(lines, path), table.names), path, table)


def without_headers(
    items: Iterable[Plain | Record | Reject], names: Sequence[str]
) -> Iterator[Plain | Record | Reject]:
    """Yield what is no header: files that were put together have one wherever another begins."""
    header = ",".join(names)
    for item in items:
        if isinstance(item, Plain):
            if header in item.texts:
                item = item._replace(
                    texts=["" if text.split(",") == names else text for text in item.texts]
                )
            yield item
        elif isinstance(item, Reject) or list(item.split()) != names:
            yield item


def lines_of(
    items: Iterable[Plain | Record | Reject], source: str, table: Table
) -> Iterator[Lines | Reject]:
    """Yield the records that have a field for every column, many at a time.

    What the fields hold is looked at when examples are made of them.
    """
    taking = _Taking(source, table)
    for item in items:
        if isinstance(item, Reject):
            yield item
        elif isinstance(item, Record):
            yield from taking.take(item)
        else:
            yield from taking.take_plain(item)
        if taking.is_full:
            yield taking.hand_over()
    if taking.found.texts:
        yield taking.hand_over()


class _Taking:
    """Takes records that have a field for every column; others are rejects."""

    def __init__(self, source: str, table: Table) -> None:
        self._source = source
        self._names = table.names
        self._split = table.split
        self._split_at = None if table.split is None else self._names.index(table.split)
        # What lines name as their split, by what stands in them.
        self._splits: dict[str, str | None] = {"": None}
        self.found = Lines(source, [], [], [])
        self._size = 0  # characters of what was found

    @property
    def is_full(self) -> bool:
        return len(self.found.texts) >= BLOCK_LINES or self._size >= BLOCK_CHARACTERS

    def hand_over(self) -> Lines:
        found, self.found, self._size = self.found, Lines(self._source, [], [], []), 0
        return found

    def take(self, record: Record) -> Iterator[Reject]:
        split = self._checked(record)
        if isinstance(split, Reject):
            yield split
            return
        _, numbers, splits, texts = self.found
        numbers.append(record.line)
        splits.append(split)
        texts.append(record.text)
        self._size += len(record.text)

    def take_plain(self, lines: Plain) -> Iterator[Reject]:
        commas, at, known = len(self._names) - 1, self._split_at, self._splits
        _, numbers, splits, texts = self.found
        for line, text in enumerate(lines.texts, start=lines.line):
            # What nearly every line looks like; all others are looked at more closely.
            if text.count(",") == commas and text.strip(EMPTY_FIELDS):
                named = "" if at is None else text.split(",", at + 1)[at]
                if named in known:
                    numbers.append(line)
                    splits.append(known[named])
                    texts.append(text)
                    self._size += len(text)
                    continue
            if not is_empty(text):
                yield from self.take(Record(line, text, None))

    def _checked(self, record: Record) -> str | Reject | None:
        """Return the split that a record names, or why it is not taken."""
        line, text, _ = record
        fields = record.split()
        if len(fields) != len(self._names):
            many = len(fields) > len(self._names)
            message = (
                f"expected {len(self._names)} fields as in the header (got {len(fields)}); quote "
                f"a field that holds a comma: {text[:80]!r}"
            )
            return self._reject(
                line, RejectCode.TOO_MANY_FIELDS if many else RejectCode.BAD_LINE, message
            )
        if not any(fields):
            return self._reject(line, RejectCode.BAD_LINE, "no field has a value")
        if self._split_at is None:
            return None
        named = fields[self._split_at]
        try:
            split = self._splits[named] = parse_ml_use(named.strip())
        except ValueError as exc:
            message = f"column {self._split!r}: {exc}"
            return self._reject(line, RejectCode.UNKNOWN_ML_USE, message)
        return split

    def _reject(self, line: int, code: RejectCode, message: str) -> Reject:
        return Reject(self._source, line, "", code.value, message)
