r"""The one reader of CSV files: physical lines → records with the numbers of their lines.

The grammar is RFC 4180 and what spreadsheets write: fields separated by commas, semicolons or tabs
(:mod:`recordgen.sources.layout` detects which), lines that end with LF or CR LF, a byte order mark,
quoted fields that hold separators, doubled quotes and line breaks. Blanks before a field do not
belong to it; lines of empty fields are skipped.

    1  TRAIN; "Good, and cheap"; praise  →  Record(1, 'TRAIN,"Good, and cheap",praise', […])
    2  TEST; Bad; complaint              →  Plain(2, ["TEST,Bad,complaint"])

A quote that is never closed must not swallow the rest of the file. So a record has bounded length;
one that cannot be read is rejected with its first line, and reading goes on with the next line.
Lines that may be the rest of a broken record are rejected one by one, up to the first that can only
begin a row: at most as many as a record can hold, and at most a hundred if no quote closes the
record, since the first quote may then be a mistake.

    1  TRAIN,"no end, praise          →  rejected: quotes
    2  a line without quotes          →  rejected: may belong to line 1
    3  TRAIN,"Good, and cheap",praise →  ["TRAIN", "Good, and cheap", "praise"]
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from recordgen.dataset.splits import ML_USE_WORDS
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Adjustments
from recordgen.sources.field_kinds import FILE_SUFFIXES
from recordgen.sources.layout import BLANKS, read_layout
from recordgen.sources.odd_lines import FIRST_MARK, INNER_MARK, MARK
from recordgen.tables.csv_fields import MAX_RECORD_BYTES, csv_line, read_fields, split_plain
from recordgen.tasks.task import AnnotationError

#: Lines that are read together: at most so many, and about so many bytes.
BLOCK_LINES = 1000
_BLOCK_BYTES = 1 << 20

# Longer texts are usually in files of their own.
_MOST_LINES = 100

# A line with as many fields as the first record begins a row; with fewer than these it may also be
# a line of a text that holds a comma.
_FIELDS_OF_A_ROW = 3

# Python's messages about a field that no quote closes, and a carriage return outside quotes.
_NEVER_CLOSED = "unexpected end of data"
_INNER_RETURN = "new-line character"

#: The signs of lines without content; stripping them is quicker than :func:`is_empty`.
EMPTY_FIELDS = f"{BLANKS},"

#: Why a record of more bytes is rejected.
TOO_LONG = (
    f"a row must be at most {MAX_RECORD_BYTES} bytes long: close its quotes, shorten its fields, "
    f"or put its text into a file of its own"
)


class Record(NamedTuple):
    """One record.

    Attributes:
        line: its first physical line, from 1.
        text: the record as written, without its last line's end, but with commas between fields.
        fields: without the blanks before them.
    """

    line: int
    text: str
    fields: list[str]


# Skips the argument handling of Record(…), which costs more than splitting a line.
_new_tuple = tuple.__new__


class Plain(NamedTuple):
    """Consecutive lines without quotes, each a record or empty.

    Attributes:
        line: 1-based number of the first.
        texts: the lines, as in :class:`Record`.
    """

    line: int
    texts: list[str]


Item: TypeAlias = "Plain | Record | Reject"


class _EndlessError(AnnotationError):
    """A record has no end: no quote closes it, or it is too long."""


def read_records(
    lines: Iterable[bytes],
    source: str,
    *,
    strip: bool = False,
    adjusted: Adjustments | None = None,
) -> Iterator[Record | Reject]:
    """Yield the records of physical lines, and a Reject for each that cannot be read.

    Args and Raises: as :func:`read_blocks`; ``strip`` removes the blanks around fields, also those
    in quotes.
    """
    for item in read_blocks(lines, source, adjusted):
        yield from records_of(item, strip=strip)


def records_of(item: Item, *, strip: bool) -> Iterator[Record | Reject]:
    """Yield the records of an item one by one; see :func:`read_records`."""
    if isinstance(item, Plain):
        split = _splitting(item.texts, strip=strip)
        for line, text in enumerate(item.texts, start=item.line):
            if text.strip(EMPTY_FIELDS):
                yield _new_tuple(Record, (line, text, split(text)))
    elif strip and isinstance(item, Record):
        yield item._replace(fields=[field.strip() for field in item.fields])
    else:
        yield item


def _splitting(texts: Sequence[str], *, strip: bool) -> Callable[[str], list[str]]:
    """Return the function that splits lines without quotes; most files have nothing to strip."""
    joined = ",".join(texts)
    # The space is the only blank that is printable.
    if " " not in joined and joined.isprintable():
        return _split
    return _split_stripped if strip else split_plain


def _split(text: str) -> list[str]:
    return text.split(",")


def _split_stripped(text: str) -> list[str]:
    return [field.strip() for field in text.split(",")]


def is_empty(text: str) -> bool:
    """Return whether a line has only empty fields, as spreadsheets write below a table."""
    return not text.strip(EMPTY_FIELDS)


def read_blocks(
    lines: Iterable[bytes], source: str, adjusted: Adjustments | None = None
) -> Iterator[Item]:
    r"""Yield the records of physical lines, many at a time where lines have no quotes.

    Args:
        lines: without their ``\n``; a byte order mark of UTF-8 at the start of a record is skipped.
        source: the file's name, for rejects and messages.
        adjusted: gets the lines behind the first that hold such a mark; None: nobody asks.

    Raises:
        SourceError: the file as a whole is no CSV, see :mod:`recordgen.sources.layout`.
    """
    delimiter, checked = read_layout(lines, source)
    return _Reader(checked, source, delimiter, adjusted or Adjustments()).read()


class _Reader:
    """Joins physical lines to records."""

    def __init__(
        self, lines: Iterable[bytes], source: str, delimiter: str, adjusted: Adjustments
    ) -> None:
        self._lines = iter(lines)
        self._again: deque[bytes] = deque()  # lines that come next
        self._number = 1  # of the next line
        self._width = 0  # fields of the first record; 0: there was none yet
        self._source = source
        self._delimiter = delimiter
        self._adjusted = adjusted
        self._signs = '"\r' if delimiter == "," else '"\r,'
        self._blank = f"{BLANKS}{delimiter}".encode()
        separator = re.escape(delimiter)
        begin = (
            rf'\s*("|({"|".join(ML_USE_WORDS)})\s*{separator}'
            rf"|([a-z][a-z0-9+.-]*://[^\s{separator}]+|[^\s{separator}]+\.({FILE_SUFFIXES}))"
            rf"\s*({separator}|$))"
        )
        self._begins_row = re.compile(begin.encode(), re.IGNORECASE)

    def read(self) -> Iterator[Item]:
        """Yield all records and rejects."""
        count = BLOCK_LINES
        while block := self._next_lines(count):
            last = self._number + len(block) - 1
            count = min(BLOCK_LINES, _BLOCK_BYTES * len(block) // (sum(map(len, block)) + 1) + 1)
            items, taken = self._whole_records(block)
            self._number += taken
            self._again.extendleft(reversed(block[taken:]))
            self._width = self._width or next(filter(None, map(_width, items)), 0)
            yield from items
            # A record that does not end in the block, or a broken one.
            while self._number <= last:
                for item in self._next_record():
                    self._width = self._width or _width(item)
                    yield item

    def _next_lines(self, count: int) -> list[bytes]:
        """Return up to ``count`` lines; none at the end of the file."""
        known = [self._again.popleft() for _ in range(min(count, len(self._again)))]
        return known or list(islice(self._lines, count))

    def _next_line(self) -> bytes | None:
        return self._again.popleft() if self._again else next(self._lines, None)

    def _whole_records(self, block: Sequence[bytes]) -> tuple[list[Plain | Record], int]:
        """Return the records at the beginning of a block, and how many lines they take.

        They end before the first record that does not end in the block, or that cannot be read.
        """
        joined = b"\n".join(block)
        if b"\0" in joined or MARK in joined or max(map(len, block)) > MAX_RECORD_BYTES:
            return [], 0
        try:
            text = joined.decode("utf-8")
        except UnicodeDecodeError:
            return [], 0
        lines = texts = text.split("\n")
        if "\r" in text:
            texts = [line.rstrip("\r") for line in lines]
            text = "\n".join(texts)
        items: list[Plain | Record] = []
        at = 0

        def following() -> Iterator[str]:
            nonlocal at
            while at < len(lines):
                at += 1
                yield f"{lines[at - 1]}\n"

        reader = read_fields(following(), self._delimiter)
        signs = [sign for sign in self._signs if sign in text]
        special = {n for sign in signs for n, line in enumerate(texts) if sign in line}
        for start in sorted(special):
            if start < at:
                continue  # a line inside of quotes
            if at < start:
                items.append(self._plain(at, texts[at:start]))
            at = start
            try:
                fields = next(reader)
            except csv.Error:
                return items, start
            if at - start > 1 and sum(map(len, block[start:at])) + at - start > MAX_RECORD_BYTES:
                return items, start
            items.append(self._record(self._number + start, lines[start:at], fields))
        if at < len(texts):
            items.append(self._plain(at, texts[at:]))
        return items, len(texts)

    def _plain(self, at: int, texts: list[str]) -> Plain:
        """Return lines without quotes; the first is line ``at`` of the block."""
        if self._delimiter != ",":
            texts = [text.replace(self._delimiter, ",") for text in texts]
        return Plain(self._number + at, texts)

    def _record(self, line: int, lines: Sequence[str], fields: list[str]) -> Record:
        is_written = self._delimiter == ","
        text = "\n".join(lines).rstrip("\r") if is_written else csv_line(fields)
        return Record(line, text, fields)

    def _next_record(self) -> Iterator[Record | Reject]:
        """Yield the record that begins with the next line, or its reject."""
        taken: list[bytes] = []
        self._skip_mark()
        try:
            fields = next(read_fields(self._lines_of_record(taken), self._delimiter))
        except AnnotationError as exc:
            broken = exc
        except csv.Error as exc:
            broken = _not_csv(exc, taken[0])
        else:
            if any(line.strip(self._blank) for line in taken):
                lines = [line.decode("utf-8") for line in taken]
                yield self._record(self._number, lines, fields)
            self._number += len(taken)
            return
        first, *rest = taken
        self._again.extendleft(reversed(rest))
        self._number += 1
        if first.strip(self._blank):
            yield broken.reject(self._source, self._number - 1)
            yield from self._rest_of_broken(first, is_endless=isinstance(broken, _EndlessError))

    def _skip_mark(self) -> None:
        """Take the byte order mark off the next line, which begins a record."""
        raw = self._next_line()
        if raw is None:
            return
        if raw.startswith(MARK):
            raw = raw.removeprefix(MARK)
            self._adjusted.add_line(self._source, self._number, *FIRST_MARK)
        elif MARK in raw and b'"' not in raw:  # quoted texts may hold what they like
            self._adjusted.add_line(self._source, self._number, *INNER_MARK)
        self._again.appendleft(raw)

    def _lines_of_record(self, taken: list[bytes]) -> Iterator[str]:
        """Yield the next lines as texts with their ends, and add them to ``taken``."""
        size = -1
        while (raw := self._next_line()) is not None:
            taken.append(raw)
            size += len(raw) + 1
            if size > MAX_RECORD_BYTES:
                raise _EndlessError(RejectCode.BAD_LINE, TOO_LONG)
            where = "the line" if len(taken) == 1 else f"line {self._number + len(taken) - 1}"
            if b"\0" in raw:
                message = f"{where} holds a NUL character; is this a CSV file?"
                raise AnnotationError(RejectCode.BAD_LINE, message)
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as exc:
                message = f"byte {exc.start + 1} of {where} is not UTF-8; save the file as UTF-8"
                raise AnnotationError(RejectCode.BAD_ENCODING, message) from exc
            yield f"{text}\n"

    def _rest_of_broken(self, first: bytes, *, is_endless: bool) -> Iterator[Reject]:
        """Yield the rejects of lines that may be the rest of a record."""
        begin, size = self._number - 1, len(first) + 1
        is_open = first.count(b'"') % 2 == 1
        message = f"this may belong to the row that begins in line {begin}, which is broken"
        while is_open and (line := self._next_line()) is not None:
            size += len(line) + 1
            is_over = size > MAX_RECORD_BYTES or (is_endless and self._number - begin > _MOST_LINES)
            if is_over or self._can_only_begin_row(line):
                self._again.appendleft(line)
                return
            is_open = line.count(b'"') % 2 == 0
            self._number += 1
            if line.strip():
                broken = AnnotationError(RejectCode.BAD_LINE, message)
                yield broken.reject(self._source, self._number - 1)

    def _can_only_begin_row(self, line: bytes) -> bool:
        if line.startswith(MARK) or self._begins_row.match(line):
            return True
        commas = line.count(self._delimiter.encode())
        return b'"' not in line and commas + 1 == self._width >= _FIELDS_OF_A_ROW


def _not_csv(exc: csv.Error, first: bytes) -> AnnotationError:
    """Return the error of a record that begins with line ``first``."""
    if _INNER_RETURN in str(exc):
        message = "a line must not hold a carriage return outside quotes; is this a CSV file?"
        return AnnotationError(RejectCode.BAD_LINE, message)
    shown = ascii(first[:80].decode("utf-8", "replace"))
    message = f"quotes must be balanced, a quote inside doubled ({exc}): {shown}"
    error = _EndlessError if _NEVER_CLOSED in str(exc) else AnnotationError
    return error(RejectCode.BAD_LINE, message)


def _width(item: Item) -> int:
    """Return the number of fields of the first record; 0: there is none."""
    if isinstance(item, Plain):
        return next((text.count(",") + 1 for text in item.texts if not is_empty(text)), 0)
    return len(item.fields) if isinstance(item, Record) else 0
