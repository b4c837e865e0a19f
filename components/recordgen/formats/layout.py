r"""The layout of a CSV file, detected from its first lines: its separator, or why it is not a CSV.

TRAIN;a.jpg;cat      →  fields are separated by semicolons
"TRAIN,a.jpg,cat"    →  SourceError: a.csv:1: each whole line is quoted as one field
"""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice

from recordgen.core.dataset.splits import ML_USE_WORDS
from recordgen.errors import SourceError
from recordgen.formats.column_names import KNOWN_COLUMNS, column_name
from recordgen.formats.dialect import (
    RFC_4180,
    Dialect,
    are_between_blanks,
    has_backslashes,
    with_decimal_commas,
    with_marks,
)
from recordgen.formats.field_kinds import FILE_SUFFIXES
from recordgen.tables.csv_fields import read_fields

_SAMPLE_LINES = 100
# A row with an escaped quote may come late.
_LINES_OF_QUOTES = 1000

#: Blanks that an empty line may contain, as well as separators.
BLANKS = " \t\r\n\v\f"

_EMPTY = f"{BLANKS},;".encode()

# First fields that show the separator after them: ML_USE, or the name of a column or a file.
_FIRST_FIELD = re.compile(
    rf"{'|'.join(ML_USE_WORDS)}|split|ml_use|label|image_uri|image|filename|text"
    rf"|[^,]+\.({FILE_SUFFIXES})",
    re.IGNORECASE,
)

# A whole line that is one address, including its semicolons: "gs://bucket/a;b.jpg".
_ADDRESS = re.compile(rf"([a-z][a-z0-9+.-]*:/|\.{{0,2}})/.*\.({FILE_SUFFIXES})", re.IGNORECASE)

# Excel's special first line, which names the separator.
_EXCEL_HINT = re.compile(rb'\s*"?sep=([^\w"])(?:\s*")?[,;\s]*', re.IGNORECASE)

# A name that says the separator: commas are then parts of texts.
_TAB_SUFFIXES = (".tsv", ".tab")

# The separators that it may name.
_HINTED = (",", ";", "\t", "|")

_JSON = re.compile(rb'\s*(\[\s*)?\{\s*"')

# A token and its tag: "York I-city". In tokens, commas occur only alone or in numbers.
_TAGGED = re.compile(r"(?!.*([^\s\d,],|,[^\s\d,]))\S+\s(.*\s)?(O|[BIESLU]-[^\s,]+)")
_INSIDE = re.compile(r"[BIESLU]-\S+")


def read_layout(lines: Iterable[bytes], source: str) -> tuple[Dialect, Iterator[bytes]]:
    r"""Return how a CSV file is written, and its physical lines.

    Lines may have their ending (``\n`` or ``\r\n``). The first is returned without its byte order
    mark; Excel's ``sep=;`` is returned as an empty line, so other lines keep their numbers.

    Raises:
        SourceError: its lines end with only ``\r``, are quoted
            as a whole, are JSON, or are tokens with their tags.
    """
    rest = iter(lines)
    head = list(islice(rest, _SAMPLE_LINES))
    more = list(islice(rest, _LINES_OF_QUOTES - _SAMPLE_LINES))
    dialect = RFC_4180
    if head:
        head[0] = head[0].removeprefix(BOM_UTF8)
        dialect = _dialect_of(head, more, source)
    return dialect, chain(head, more, rest)


def _dialect_of(head: list[bytes], more: Sequence[bytes], source: str) -> Dialect:
    """Return how lines are written, and empty Excel's special first line. Raises: SourceError."""
    delimiter = _delimiter_of(head, source)
    escapes = any(b'\\"' in raw for raw in (*head, *more))
    escapes = escapes and has_backslashes(_texts([*head, *more]), delimiter)
    dialect = Dialect(delimiter, escapes)
    if delimiter == ",":
        return dialect
    return with_decimal_commas(dialect, _records(with_marks(_texts(head)), delimiter))


def _texts(lines: Sequence[bytes]) -> list[str]:
    return [raw.decode("utf-8", "replace").rstrip("\r\n") for raw in lines if raw.strip(_EMPTY)]


def _delimiter_of(head: list[bytes], source: str) -> str:
    """Return the separator, and empty Excel's special first line. Raises: SourceError."""
    filled = [(at, raw) for at, raw in enumerate(head) if raw.strip(_EMPTY)]
    if not filled:
        return ","
    at, first = filled[0]
    where = f"{source}:{at + 1}"
    before, ends, _ = first.rstrip(b"\r\n").partition(b"\r")
    if ends and before.count(b'"') % 2 == 0:  # outside of quotes
        raise SourceError(
            f"{where}: lines must end with LF or CR LF (got only CR, as old spreadsheets write "
            f"it); save the file as CSV UTF-8"
        )
    if (hint := _EXCEL_HINT.fullmatch(first)) is not None:
        if (delimiter := hint[1].decode("latin-1")) not in _HINTED:
            raise SourceError(
                f"{where}: fields must be separated by commas, semicolons or tabs (got "
                f"{delimiter!r} in Excel's sep= line); save the file as CSV UTF-8"
            )
        head[at] = b""
        return delimiter
    if _JSON.match(first):
        raise SourceError(
            f"{where}: this line is JSON, but the file is read as CSV; name it .jsonl, or use "
            f"--format jsonl"
        )
    texts = with_marks([raw.decode("utf-8", "replace").rstrip("\r\n") for _, raw in filled])
    if _are_tagged(texts):
        raise SourceError(
            f"{where}: this line is a token and its tag, as in CoNLL's files; use --format conll"
        )
    if _are_quoted(texts):
        raise SourceError(
            f"{where}: each whole line is quoted as one field; remove the quotes around the lines"
        )
    if source.lower().endswith(_TAB_SUFFIXES) and any("\t" in text for text in texts):
        return "\t"
    return _delimiter(texts)


def _are_tagged(texts: Sequence[str]) -> bool:
    tagged = [text.split()[-1] for text in texts if _TAGGED.fullmatch(text.strip())]
    return len(tagged) == len(texts) > 1 and any(map(_INSIDE.fullmatch, tagged))


def _are_quoted(texts: Sequence[str]) -> bool:
    """Return whether lines are whole rows in quotes, as if pasted into one column of a sheet."""
    records = _records(texts, ",")
    return bool(records) and all(map(_is_row, records))


def _is_row(fields: Sequence[str]) -> bool:
    begin, comma, _ = fields[0].partition(",")
    is_one_line = len(fields) == 1 and "\n" not in fields[0]
    return is_one_line and comma != "" and _FIRST_FIELD.fullmatch(begin.strip()) is not None


def _delimiter(texts: Sequence[str]) -> str:
    """Return the separator.

    It is a semicolon or tab if it divides the first line into names of columns and commas do not;
    or if it divides all lines into the same number of fields, and commas do not or are in fields.
    """
    by_comma = _records(texts, ",")
    if by_comma and all(map(_is_read_by_comma, by_comma)):
        return ","
    has_no_comma = not by_comma or len(by_comma[0]) == 1
    for delimiter in (";", "\t", "|"):
        records = _records(texts, delimiter)
        if not records or len(records[0]) < 2:
            continue
        named = sum(column_name(field) in KNOWN_COLUMNS for field in records[0])
        if has_no_comma and named > 1:
            return delimiter
        if not _are_alike(records):
            continue
        is_known = all(_FIRST_FIELD.fullmatch(fields[0].strip()) for fields in records)
        if is_known and (len(records) > 1 or has_no_comma):
            return delimiter
        # Otherwise it may end statements, or belong to a text before its label.
        ends = [fields[-1] for fields in records]
        may_hold_commas = delimiter == "\t" or not any("," in end for end in ends)
        is_alone = has_no_comma or (may_hold_commas and not _are_alike(by_comma))
        filled = [sum(map(bool, map(str.strip, fields))) for fields in records]
        is_filled = any(end.strip() for end in ends) or min(filled) > 2
        # Texts contain commas, but hardly ever as many tabs as all others.
        if len(records) > 1 and is_filled and (is_alone or delimiter == "\t"):
            return delimiter
    return " " if are_between_blanks(texts) else ","


def _is_read_by_comma(fields: Sequence[str]) -> bool:
    """Return whether a line has a known first field before a comma, or is one address."""
    begin = _FIRST_FIELD if len(fields) > 1 else _ADDRESS
    return begin.fullmatch(fields[0].strip()) is not None


def _records(texts: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return the records of lines, up to the first broken or unfinished one."""
    found = []
    with suppress(csv.Error):
        for fields in read_fields((f"{text}\n" for text in texts), delimiter):
            if fields:
                found.append(fields)
    return found


def _are_alike(records: Sequence[Sequence[str]]) -> bool:
    return len({len(fields) for fields in records}) == 1
