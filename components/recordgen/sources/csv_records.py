r"""The records of a CSV file whose fields may hold line breaks, as RFC 4180 has them.

A quote that is never closed would take in the rest of the file. So a record has bounded length; one
that cannot be read is rejected with its first line, and reading goes on with the line behind that.
Lines that may be the rest of a broken record are no rows: they are rejected one by one, up to the
first that can only begin a row: with a quote, or with ML_USE and a comma. There are no more of them
than a record can hold; and if no quote closes the first, so that perhaps it should not be there, no
more than a hundred.

    1  TRAIN,"no end, praise          →  rejected: quotes
    2  a line without quotes          →  rejected: may belong to line 1
    3  TRAIN,"Good, and cheap",praise →  ["TRAIN", "Good, and cheap", "praise"]
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recordgen.dataset.splits import ML_USE_WORDS
from recordgen.rejects import Reject, RejectCode
from recordgen.sources.layout import EMPTY
from recordgen.sources.lines import MAX_LINE_BYTES

# A line that begins a row beyond doubt.
_BEGINS_ROW = re.compile(rf'\s*("|({"|".join(ML_USE_WORDS)})\s*,)'.encode(), re.IGNORECASE)

# Longer texts are rather in files of their own.
_MOST_LINES = 100

# What csv says of a field that no quote closes.
_NEVER_CLOSED = ("unexpected end of data", "field limit")


class Record(NamedTuple):
    """One record.

    Attributes:
        line: its first physical line, from 1.
        fields: as they are written, without the blanks before them.
    """

    line: int
    fields: list[str]


class _Broken(Exception):
    """A line cannot belong to any record."""

    def __init__(self, code: RejectCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _TooLong(_Broken):
    """A record goes on and on."""


def read_records(lines: Iterable[bytes], source: str) -> Iterator[Record | Reject]:
    r"""Yield the records of physical lines, and a Reject for each that cannot be read.

    Args:
        lines: without their ``\n``; lines of blanks and commas alone are skipped.
        source: the file's name.
    """
    feed = _Feed(lines)
    reader = _reader(feed)
    while True:
        feed.begin()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except (csv.Error, _Broken) as exc:
            reader = _reader(feed)
            yield from _rejected(feed, exc, source)
        else:
            if not feed.is_blank:
                yield Record(feed.first, fields)


def _reader(feed: _Feed) -> Iterator[list[str]]:
    return csv.reader(feed, strict=True, skipinitialspace=True)


class _Feed:
    """Gives a reader of records its lines, and takes back those of a broken one."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._again: deque[bytes] = deque()
        self._taken: list[bytes] = []
        self._bytes = 0
        self.first = 1

    def begin(self) -> None:
        """Begin a record with the next line."""
        self.first += len(self._taken)
        self._taken.clear()
        self._bytes = 0

    @property
    def is_blank(self) -> bool:
        """Whether this record is a blank line, or one of empty fields alone."""
        return not any(line.strip(EMPTY) for line in self._taken)

    def restart(self) -> bytes:
        """Take back all lines of this record but the first, and return that."""
        self._again.extendleft(reversed(self._taken[1:]))
        del self._taken[1:]
        return self._taken[0]

    def peek(self) -> bytes | None:
        """Return the next line, which stays the next; None: there is none."""
        if not self._again:
            self._again.extend(line for line in [next(self._lines, None)] if line is not None)
        return self._again[0] if self._again else None

    def skip(self) -> None:
        """Leave out the line that :meth:`peek` gave."""
        self.begin()
        self._taken.append(self._again.popleft())

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        raw = self._again.popleft() if self._again else next(self._lines)
        self._taken.append(raw)
        self._bytes += len(raw) + 1
        if self._bytes > MAX_LINE_BYTES:
            raise _TooLong(
                RejectCode.BAD_LINE,
                f"a row must be at most {MAX_LINE_BYTES} bytes long: close its quotes, or put its "
                f"text into a file of its own",
            )
        if b"\0" in raw:
            raise _Broken(
                RejectCode.BAD_LINE, "the line holds a NUL character; is this a CSV file?"
            )
        try:
            return raw.decode("utf-8") + "\n"
        except UnicodeDecodeError as exc:
            raise _Broken(
                RejectCode.BAD_ENCODING,
                f"byte {exc.start + 1} of the line is not UTF-8; save the file as UTF-8",
            ) from exc


def _rejected(feed: _Feed, exc: csv.Error | _Broken, source: str) -> Iterator[Reject]:
    """Yield the reject of a broken record, and those of lines that may be the rest of it."""
    first = feed.restart()
    if "field limit" in str(exc):
        code = RejectCode.BAD_LINE
        message = (
            f"a field must be at most {csv.field_size_limit():,} characters long: close its "
            f"quotes, or put the text into a file of its own"
        )
    elif isinstance(exc, _Broken):
        code, message = exc.code, exc.message
    else:
        shown = ascii(first[:80].decode("utf-8", "replace"))
        code = RejectCode.BAD_LINE
        message = f"quotes must be balanced, a quote inside doubled ({exc}): {shown}"
    yield Reject(source, feed.first, "", code.value, message)
    number, is_open = feed.first, first.count(b'"') % 2 == 1
    goes_on = isinstance(exc, _TooLong) or any(end in str(exc) for end in _NEVER_CLOSED)
    taken = len(first) + 1
    while is_open:
        line = feed.peek()
        if line is None or _BEGINS_ROW.match(line):
            return
        taken += len(line) + 1
        if taken > MAX_LINE_BYTES or (goes_on and feed.first - number >= _MOST_LINES):
            return
        feed.skip()
        is_open = line.count(b'"') % 2 == 0
        if line.strip():
            message = f"this may belong to the row that begins in line {number}, which is broken"
            yield Reject(source, feed.first, "", RejectCode.BAD_LINE.value, message)
