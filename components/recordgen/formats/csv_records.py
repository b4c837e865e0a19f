r"""The only reader of CSV files: physical lines → records with their line numbers.

The grammar is RFC 4180 and what spreadsheets write: fields separated by commas, semicolons or tabs
(:mod:`recordgen.formats.separators` detects which), lines that end with LF or CR LF, a byte order
mark, quoted fields that contain separators, doubled quotes and line breaks. Blanks before a field
are not part of it. Lines of empty fields are skipped.

    1  TRAIN; "Good, and cheap"; praise  →  'TRAIN,"Good, and cheap",praise'
    2  TEST; Bad; complaint              →  "TEST,Bad,complaint"

A quote that is never closed must not swallow the rest of the file, so the length of a record is
limited. An unreadable record is rejected at its first line, and reading continues with the next
line. Lines that may be the rest of a broken record are rejected one by one, up to the first line
that must begin a row: at most as many as a record can contain, and at most a hundred if no quote
closes the record, because the first quote may then be a mistake.

    1  TRAIN,"no end, praise          →  rejected: quotes
    2  a line without quotes          →  rejected: may belong to line 1
    3  TRAIN,"Good, and cheap",praise →  ["TRAIN", "Good, and cheap", "praise"]
"""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise
from typing import NamedTuple, TypeAlias

from recordgen.core.dataset.splits import ML_USE_WORDS
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import AnnotationError, bad_line
from recordgen.formats.field_kinds import FILE_SUFFIXES
from recordgen.formats.lines import not_utf8
from recordgen.formats.separators import BLANKS, read_separator
from recordgen.rejects import FIRST_MARK, INNER_MARK, Reject, RejectCode
from recordgen.tables.csv_fields import MAX_RECORD_BYTES, csv_line, read_fields

#: Most lines, and about how many bytes, that are read together.
BLOCK_LINES = 1000
_BLOCK_BYTES = 1 << 20

# Most lines of an endless record that are rejected: longer texts are usually in separate files.
_MAX_LINES = 100

# A line with as many fields as the first record begins a row if it has at least this many: with
# fewer, it may also be a line of a text that contains a comma.
_FIELDS_OF_A_ROW = 3

# Python's messages about an unclosed quote and about a carriage return outside quotes.
_NEVER_CLOSED = "unexpected end of data"
_INNER_RETURN = "new-line character"

#: Message of the reject of an overlong record.
TOO_LONG = (
    f"a row must be at most {MAX_RECORD_BYTES} bytes long: close its quotes, or put its text into "
    f"a file of its own"
)


_NAMES_FILE = re.compile(rf'[^\s",;]+\.({FILE_SUFFIXES})\s*[,;\t]', re.IGNORECASE)

_WHOLE_ROWS = "the lines between these quotes are rows; double each quote, and quote its field"


class Record(NamedTuple):
    """One record.

    Attributes:
        line: 1-based number of its first physical line.
        text: the record as written, but with commas between fields and without the last line end.
        fields: the fields, without leading blanks.
    """

    line: int
    text: str
    fields: list[str]


class Records(NamedTuple):
    """Records of a file, one or many; none of them has only empty fields without quotes.

    Attributes:
        lines: the 1-based number of the first physical line of each.
        texts: the records, written as in :class:`Record`.
        quoted: the fields of records by their place in ``texts``, of all with quotes; the others
            are divided at their commas.
    """

    lines: Sequence[int]
    texts: Sequence[str]
    quoted: Mapping[int, list[str]] = {}

    def rows(self, *, strip: bool = False) -> list[list[str]]:
        """Return the fields of each record, without leading blanks.

        ``strip`` removes blanks around fields, also inside quotes.
        """
        quoted, plain = self.quoted, self.texts
        if quoted:
            if strip:
                quoted = {at: [field.strip() for field in row] for at, row in quoted.items()}
            if len(quoted) == len(plain):
                return list(quoted.values())
            plain = [text for at, text in enumerate(plain) if at not in quoted]
        together = ",".join(["", *plain, ""])
        rows = [text.split(",") for text in plain]
        has_blanks = " " in together  # faster to see than those below
        if strip and ((has_blanks and " ," in together) or _has_other_blanks(together)):
            rows = [[field.strip() for field in row] for row in rows]
        elif has_blanks and ", " in together:
            rows = [[field.lstrip(" ") for field in row] for row in rows]
        if not quoted:
            return rows
        others = iter(rows)
        return [quoted[at] if at in quoted else next(others) for at in range(len(self.texts))]

    def each(self, *, strip: bool = False) -> Iterator[Record]:
        """Yield the records one by one; ``strip`` as for :meth:`rows`."""
        return map(Record._make, zip(self.lines, self.texts, self.rows(strip=strip), strict=True))

    def of_other_widths(self, width: int) -> dict[int, int]:
        """Return the number of fields of each record with more or fewer than ``width``.

        It is 0 if all fields are empty. The keys are the places of the records.
        """
        widths = [text.count(",") + 1 for text in self.texts]
        for at, fields in self.quoted.items():
            widths[at] = len(fields) if any(fields) else 0
        return {at: n for at, n in enumerate(widths) if n != width} if {*widths} != {width} else {}

    def without(self, places: Collection[int]) -> Records:
        """Return the records but those at some places."""
        if not places:
            return self
        kept = [at for at in range(len(self.texts)) if at not in places]
        texts = [self.texts[at] for at in kept]
        quoted = {new: self.quoted[at] for new, at in enumerate(kept) if at in self.quoted}
        return Records([self.lines[at] for at in kept], texts, quoted)


Item: TypeAlias = "Records | Reject"


_NONE = Records((), ())

_OTHER_BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f"


def _has_other_blanks(text: str) -> bool:
    """Return whether a text may contain blanks, apart from U+0020, that ``str.strip`` removes."""
    if not text.isascii():
        return not text.isprintable()
    return any(sign in text for sign in _OTHER_BLANKS)  # faster than isprintable


class _EndlessError(AnnotationError):
    """The record has no end: a quote is not closed, or it is too long."""


def each_record(items: Iterable[Item]) -> Iterator[Record | Reject]:
    """Yield records one by one, and rejects."""
    for item in items:
        yield from [item] if isinstance(item, Reject) else item.each()


#: Returns the uri for the reject of an unreadable line, given its fields, in which U+FFFD stands
#: for what is unreadable.
UriIn: TypeAlias = Callable[[Sequence[str]], str]


def read_blocks(
    lines: Iterable[bytes],
    source: str,
    adjusted: Adjustments | None = None,
    uri_in: UriIn | None = None,
) -> Iterator[Item]:
    r"""Yield the records of physical lines, many at a time, and a Reject for each unreadable one.

    Args:
        lines: without their ``\n``; a UTF-8 byte order mark at the start of a record is skipped.
        source: the file's name, for rejects and messages.
        adjusted: collects the later lines that contain a byte order mark; None if not needed.
        uri_in: returns the uri of an unreadable line; None: it has none.

    Raises: SourceError: the file as a whole is not a CSV: :mod:`recordgen.formats.separators`.
    """
    return _Reader(lines, source, adjusted or Adjustments(), uri_in).read()


class _Reader:
    """Joins physical lines into records."""

    def __init__(
        self, lines: Iterable[bytes], source: str, adjusted: Adjustments, uri_in: UriIn | None
    ) -> None:
        delimiter, self._lines = read_separator(lines, source)
        self._pushed_back: deque[bytes] = deque()  # lines to read again
        self._number = 1  # of the next line
        self._width = 0  # number of fields of the first record; 0 before it
        self._source = source
        self._delimiter = delimiter
        self._adjusted = adjusted
        self._uri_in = uri_in
        self._signs = '"\r' if delimiter == "," else '"\r,'
        # The characters of lines without content, like the lines below a table in spreadsheets.
        self._empty = f"{BLANKS}{delimiter}"
        self._blank_line = re.compile(rf"\n[{re.escape(self._empty.replace(chr(10), ''))}]*\n")
        separator = re.escape(delimiter)
        begin = (
            rf'\s*("|({"|".join(ML_USE_WORDS)})\s*{separator}'
            rf"|([a-z][a-z0-9+.-]*://[^\s{separator}]+|[^\s{separator}]+\.({FILE_SUFFIXES}))"
            rf"\s*({separator}|$))"
        )
        self._begins_row = re.compile(begin.encode(), re.IGNORECASE)

    def read(self) -> Iterator[Item]:
        """Yield all records and rejects.

        Lines behind an odd one are read again; that few are, the blocks behind it begin small.
        """
        count = most = BLOCK_LINES
        while block := self._next_lines(count):
            records, taken = self._whole_records(block)
            self._number += taken
            self._pushed_back.extendleft(reversed(block[taken:]))
            size = sum(map(len, block)) + 1
            count = min(most, 2 * count, _BLOCK_BYTES * len(block) // size + 1) if taken else 1
            for item in chain([records], self._next_record() if taken < len(block) else ()):
                if isinstance(item, Reject):
                    count = 1
                elif item.texts:
                    self._width = self._width or len(next(item.each()).fields)
                else:
                    continue
                yield item

    def _next_lines(self, count: int) -> list[bytes]:
        """Return up to ``count`` lines, or none at the end of the file."""
        known = [self._pushed_back.popleft() for _ in range(min(count, len(self._pushed_back)))]
        return known or list(islice(self._lines, count))

    def _next_line(self) -> bytes | None:
        return self._pushed_back.popleft() if self._pushed_back else next(self._lines, None)

    def _whole_records(self, block: Sequence[bytes]) -> tuple[Records, int]:
        """Return the records at the beginning of a block, and their number of lines.

        They end before the first record that is unreadable or does not end in the block.
        """
        joined = b"\n".join(block)
        if b"\0" in joined or BOM_UTF8 in joined or max(map(len, block)) > MAX_RECORD_BYTES:
            return _NONE, 0
        try:
            text = f"\n{joined.decode('utf-8')}\n"
        except UnicodeDecodeError:
            return _NONE, 0
        plain = text.replace("\r\n", "\n") if "\r" in text else text  # most have none
        if any(sign in plain for sign in self._signs):
            firsts, records, taken = self._divided(text[1:])
        else:
            firsts, taken = plain[1:-1].split("\n"), len(block)
            texts = firsts
            if self._delimiter != ",":
                texts = [line.replace(self._delimiter, ",") for line in texts]
            records = Records(range(self._number, self._number + taken), texts)
        if self._blank_line.search(plain) is not None:
            empty = {at for at, line in enumerate(firsts) if not line.strip(self._empty)}
            records = records.without(empty)
        return records, taken

    def _divided(self, text: str) -> tuple[Sequence[str], Records, int]:
        """Return the first lines of records with quotes, the records, and their number of lines."""
        lines, starts, rows = text.split("\n"), [0], list[list[str]]()
        reader = read_fields(io.StringIO(text, newline="\n"), self._delimiter)
        with suppress(csv.Error):  # the broken record is read alone
            for fields in reader:
                end = reader.line_num
                if end - starts[-1] > 1 and self._is_doubtful(lines[starts[-1] : end]):
                    break
                starts.append(end)
                rows.append(fields)
        texts = firsts = [lines[start] for start in starts[:-1]]
        if self._delimiter != ",":
            texts = list(map(csv_line, rows))
        elif starts[-1] > len(rows):
            texts = ["\n".join(lines[start:end]) for start, end in pairwise(starts)]
        texts = [text.rstrip("\r") for text in texts]
        numbers = [self._number + start for start in starts[:-1]]
        return firsts, Records(numbers, texts, dict(enumerate(rows))), starts[-1]

    def _is_doubtful(self, lines: Sequence[str]) -> bool:
        """Return whether lines are too long for a record, or whole rows between quotes."""
        size = sum(len(line.encode()) for line in lines) + len(lines) - 1
        return size > MAX_RECORD_BYTES or self._are_rows(lines)

    def _next_record(self) -> Iterator[Item]:
        """Yield the record that begins at the next line, or rejects; nothing if it is empty."""
        taken: list[bytes] = []
        self._skip_mark()
        try:
            fields = next(read_fields(self._lines_of_record(taken), self._delimiter))
            lines = [line.decode("utf-8") for line in taken]
            if self._are_rows(lines):
                raise bad_line(_WHOLE_ROWS)
            text = "\n".join(lines).rstrip("\r") if self._delimiter == "," else csv_line(fields)
            record = Records([self._number], [text], {0: fields})
        except AnnotationError as exc:
            broken = exc
        except csv.Error as exc:
            broken = _not_csv(exc, taken[0])
        else:
            if any(line.strip(self._empty) for line in lines):
                yield record
            self._number += len(taken)
            return
        first, *rest = taken
        self._pushed_back.extendleft(reversed(rest))
        self._number += 1
        if first.strip(self._empty.encode()):
            yield self._reject(broken, first)
            yield from self._rest_of_broken(first, is_endless=isinstance(broken, _EndlessError))

    def _are_rows(self, lines: Sequence[str]) -> bool:
        """Return whether lines between quotes are whole rows, as files without quoting have them.

        Tabs tell, if there are more than two lines, which may have as many by chance. Commas do
        not, as texts of several lines may have one in each, unless each line names a file.
        """
        is_table = self._delimiter == "\t" and len(lines) > 2
        if not is_table and not all(map(_NAMES_FILE.match, lines[1:])):
            return False
        widths = {line.count(self._delimiter) + 1 for line in lines[not is_table :]}
        return len(widths) == 1 and min(widths) > 1 and widths <= {self._width or min(widths)}

    def _skip_mark(self) -> None:
        """Remove the byte order mark from the next line, which begins a record."""
        raw = self._next_line()
        if raw is None:
            return
        if raw.startswith(BOM_UTF8):
            raw = raw.removeprefix(BOM_UTF8)
            self._adjusted.add_line(self._source, self._number, *FIRST_MARK)
        elif BOM_UTF8 in raw and b'"' not in raw:  # quoted texts may contain anything
            self._adjusted.add_line(self._source, self._number, *INNER_MARK)
        self._pushed_back.appendleft(raw)

    def _lines_of_record(self, taken: list[bytes]) -> Iterator[str]:
        """Yield the next lines as text with their ends, and add them to ``taken``."""
        size = -1
        while (raw := self._next_line()) is not None:
            taken.append(raw)
            size += len(raw) + 1
            if size > MAX_RECORD_BYTES:
                raise _EndlessError(RejectCode.BAD_LINE, TOO_LONG)
            where = "the line" if len(taken) == 1 else f"line {self._number + len(taken) - 1}"
            if b"\0" in raw:
                raise bad_line(f"{where} contains a NUL character; is this a CSV file?")
            try:
                yield f"{raw.decode('utf-8')}\n"
            except UnicodeDecodeError as exc:
                raise AnnotationError(RejectCode.BAD_ENCODING, not_utf8(exc, where)) from exc

    def _rest_of_broken(self, first: bytes, *, is_endless: bool) -> Iterator[Reject]:
        """Yield the rejects of lines that may be the rest of a broken record."""
        begin, size = self._number - 1, len(first) + 1
        is_open = first.count(b'"') % 2 == 1
        message = f"this may belong to the broken row that begins at line {begin}"
        while is_open and (line := self._next_line()) is not None:
            size += len(line) + 1
            is_over = size > MAX_RECORD_BYTES or (is_endless and self._number - begin > _MAX_LINES)
            if is_over or self._can_only_begin_row(line):
                self._pushed_back.appendleft(line)
                return
            is_open = line.count(b'"') % 2 == 0
            self._number += 1
            if line.strip():
                yield self._reject(bad_line(message), line)

    def _reject(self, broken: AnnotationError, raw: bytes) -> Reject:
        uri = self._uri_in(_readable(raw, self._delimiter)) if self._uri_in is not None else ""
        return broken.reject(self._source, self._number - 1, uri)

    def _can_only_begin_row(self, line: bytes) -> bool:
        if line.startswith(BOM_UTF8) or self._begins_row.match(line):
            return True
        commas = line.count(self._delimiter.encode())
        return b'"' not in line and commas + 1 == self._width >= _FIELDS_OF_A_ROW


def _readable(raw: bytes, delimiter: str) -> list[str]:
    """Return the fields of an unreadable line, with U+FFFD for what is unreadable."""
    text = raw[:MAX_RECORD_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")
    with suppress(csv.Error):
        return next(csv.reader([text.replace("\r", " ")], delimiter=delimiter), [])
    return []


def _not_csv(exc: csv.Error, first: bytes) -> AnnotationError:
    """Return the error for a broken record whose first line is ``first``."""
    if _INNER_RETURN in str(exc):
        return bad_line("a line has a carriage return outside quotes; is this a CSV file?")
    shown = ascii(first[:80].decode("utf-8", "replace"))
    message = f"quotes must be balanced, a quote inside doubled ({exc}): {shown}"
    if b'\\"' in first:
        message += '; a backslash does not escape a quote: write "" for \\"'
    error = _EndlessError if _NEVER_CLOSED in str(exc) else AnnotationError
    return error(RejectCode.BAD_LINE, message)
