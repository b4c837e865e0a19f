r"""Tables as CSV, by RFC 4180: a header, then records, of which a quoted field may hold line breaks.

age,job           header
58,management  →  Row(line=2, split=None, uri="", annotation="58,management")
"""

from __future__ import annotations

import codecs
import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recordgen.columns import Table
from recordgen.errors import SourceError
from recordgen.rows import Reject, RejectCode, Row
from recordgen.sources.lines import MAX_LINE_BYTES, UTF16_MARKS
from recordgen.splits import parse_ml_use

# A quote that is never closed must not swallow the rest of the file.
_MAX_RECORD_LINES = 1000


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


def read_records(lines: Iterable[bytes], source: str) -> Iterator[Record | Reject]:
    r"""Put physical lines together to records; blank lines give nothing.

    Args:
        lines: lines with or without their ending; a first byte order mark of UTF-8 is skipped.
        source: the file's name, for rejects and messages.

    Raises:
        SourceError: the file is UTF-16.
    """
    again: deque[bytes] = deque()  # lines that a quote had swallowed
    stream = _with_returned(iter(lines), again)
    number = 0
    for raw in stream:
        number += 1
        if number == 1:
            if raw.startswith(UTF16_MARKS):
                raise SourceError(f"{source}: this file is UTF-16; save it as CSV UTF-8")
            raw = raw.removeprefix(codecs.BOM_UTF8)
        if b'"' in raw:
            taken = [raw]
            item = _quoted(taken, stream, source, number)
            if isinstance(item, Reject):
                again.extendleft(reversed(taken[1:]))
            yield item
            if not isinstance(item, Reject):
                number += len(taken) - 1
            continue
        if raw.isspace() or not raw:
            continue
        if len(raw) > MAX_LINE_BYTES:
            message = f"a line must be at most {MAX_LINE_BYTES} bytes long; is this a CSV file?"
            yield Reject(source, number, "", RejectCode.BAD_LINE.value, message)
            continue
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as exc:
            yield _not_utf8(exc, source, number)
            continue
        if "\r" in text or "\0" in text:
            message = "a line must not hold a carriage return or NUL; is this a CSV file?"
            yield Reject(source, number, "", RejectCode.BAD_LINE.value, message)
            continue
        yield Record(number, text, None)


def _with_returned(lines: Iterator[bytes], again: deque[bytes]) -> Iterator[bytes]:
    """Yield lines, those that were given back first."""
    while True:
        if again:
            yield again.popleft()
        elif (raw := next(lines, None)) is not None:
            yield raw
        else:
            return


def _quoted(taken: list[bytes], stream: Iterator[bytes], source: str, line: int) -> Record | Reject:
    """Return the record that begins with a line that has quotes; ``taken`` gets its other lines."""

    def texts() -> Iterator[str]:
        size = len(taken[0])
        yield taken[0].decode("utf-8").removesuffix("\n") + "\n"
        while size <= MAX_LINE_BYTES and len(taken) < _MAX_RECORD_LINES:
            raw = next(stream, None)
            if raw is None:
                return
            taken.append(raw)
            size += len(raw)
            yield raw.decode("utf-8").removesuffix("\n") + "\n"

    try:
        fields = next(csv.reader(texts(), strict=True))
    except UnicodeDecodeError as exc:
        return _not_utf8(exc, source, line)
    except (csv.Error, ValueError) as exc:
        start = taken[0].decode("utf-8", "replace").rstrip("\r\n")
        message = f"quotes must be balanced, and a quote inside doubled ({exc}): {start[:80]}"
        return Reject(source, line, "", RejectCode.BAD_LINE.value, message)
    text = b"\n".join(raw.removesuffix(b"\n") for raw in taken).decode("utf-8")
    return Record(line, text.removesuffix("\r"), fields)


def _not_utf8(exc: UnicodeDecodeError, source: str, line: int) -> Reject:
    message = f"byte {exc.start + 1} of the line is not UTF-8; save the file as UTF-8"
    return Reject(source, line, "", RejectCode.BAD_ENCODING.value, message)


def parse_lines(lines: Iterable[bytes], *, source: str, table: Table) -> Iterator[Row | Reject]:
    """Yield a row for each record of a file that has a field for every column.

    Args and Raises: as :func:`read_records`; ``table`` says which columns there are. The first
    record may be the header, which gives nothing.
    """
    records = read_records(lines, source)
    first = next(records, None)
    if first is None:
        return
    if not isinstance(first, Record) or list(first.split()) != table.names:
        yield from rows_of([first], source, table)
    yield from rows_of(records, source, table)


def rows_of(
    records: Iterable[Record | Reject], source: str, table: Table
) -> Iterator[Row | Reject]:
    """Yield a row for each record that has a field for every column.

    What the fields hold is looked at when examples are made of them, many at a time.
    """
    commas = len(table.columns) - 1
    split_at = None if table.split is None else table.names.index(table.split)
    splits: dict[str, str | None] = {}
    for record in records:
        if isinstance(record, Reject):
            yield record
            continue
        line, text, fields = record
        # What nearly every line looks like; all others are looked at more closely.
        if fields is None and text.count(",") == commas and len(text) > commas:
            if split_at is None:
                yield Row(source, line, None, "", text)
                continue
            named = text.split(",", split_at + 1)[split_at]
            if named in splits:
                yield Row(source, line, splits[named], "", text)
                continue
        row = _row(record, source, table)
        if isinstance(row, Row) and split_at is not None:
            splits.setdefault(record.split()[split_at], row.split)
        yield row


def _row(record: Record, source: str, table: Table) -> Row | Reject:
    """Return a record as a row, or why it is none."""
    line, text, _ = record
    fields = record.split()
    names = table.names
    if len(fields) != len(names):
        code = RejectCode.TOO_MANY_FIELDS if len(fields) > len(names) else RejectCode.BAD_LINE
        message = (
            f"expected {len(names)} fields as in the header (got {len(fields)}); quote a field "
            f"that holds a comma: {text[:80]!r}"
        )
        return Reject(source, line, "", code.value, message)
    if not any(fields):
        return Reject(source, line, "", RejectCode.BAD_LINE.value, "no field has a value")
    split = None
    if table.split is not None:
        try:
            split = parse_ml_use(fields[names.index(table.split)].strip())
        except ValueError as exc:
            message = f"column {table.split!r}: {exc}"
            return Reject(source, line, "", RejectCode.UNKNOWN_ML_USE.value, message)
    return Row(source, line, split, "", text)
