r"""The separator of a CSV file, from its first lines, or why the file is not a CSV.

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
from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.formats.field_kinds import FILE_SUFFIXES, names_media
from recordgen.formats.header import KNOWN_COLUMNS, column_name
from recordgen.tables.csv_fields import read_fields

_SAMPLE_LINES = 100

#: Blanks that an empty line may contain, as well as separators.
BLANKS = " \t\r\n\v\f"

_EMPTY = f"{BLANKS},;".encode()

# First fields that show the separator after them: ML_USE, or the name of a column or a file.
_FIRST_FIELD = re.compile(
    rf"{'|'.join(ML_USE_WORDS)}|split|ml_use|label|image_uri|image|filename|text"
    rf"|[^,]+\.({FILE_SUFFIXES})",
    re.IGNORECASE,
)

# A whole line that is one address, including its semicolons: "gs://bucket/a;b.jpg"; or one name.
_ADDRESS = re.compile(
    rf"(([a-z][a-z0-9+.-]*:/|\.{{0,2}})/.*|[^,;|\t]+)\.({FILE_SUFFIXES})", re.IGNORECASE
)

# A line of a list, as Caffe and UCF-101 have them: "images/1.jpg 0".
_LISTED = re.compile(r'([^\s,;|"]+) [^\s,;|"]+\s*')

# Excel's special first line, which names the separator.
_EXCEL_HINT = re.compile(rb'\s*"?sep=([^\w"])(?:\s*")?[,;\s]*', re.IGNORECASE)

# A name that says the separator: commas are then parts of texts.
_TAB_SUFFIXES = (".tsv", ".tab")

# The separators; if two of them divide the lines alike, it is the first of these.
_SIGNS = ",\t;|"

_JSON = re.compile(rb'\s*(\[\s*)?\{\s*"')

# A token and its tag: "York I-city". In tokens, commas occur only alone or in numbers.
_TAGGED = re.compile(r"(?!.*([^\s\d,],|,[^\s\d,]))\S+\s(.*\s)?(O|[BIESLU]-[^\s,]+)")
_INSIDE = re.compile(r"[BIESLU]-\S+")


def read_separator(lines: Iterable[bytes], source: str) -> tuple[str, Iterator[bytes]]:
    r"""Return the separator of a CSV file, and its physical lines.

    Lines may have their ending (``\n`` or ``\r\n``). The first is returned without its byte order
    mark; Excel's ``sep=;`` is returned as an empty line, so other lines keep their numbers.

    Raises:
        SourceError: its lines end with only ``\r``, or are quoted as a whole.
        NotUnderstoodError: its lines are JSON, or tokens with their tags.
    """
    rest = iter(lines)
    head = list(islice(rest, _SAMPLE_LINES))
    separator = ","
    if head:
        head[0] = head[0].removeprefix(BOM_UTF8)
        separator = _separator_of(head, source)
    return separator, chain(head, rest)


def _separator_of(head: list[bytes], source: str) -> str:
    """Return the separator, and empty Excel's special first line. Raises: SourceError."""
    filled = [(at, raw) for at, raw in enumerate(head) if raw.strip(_EMPTY)]
    if not filled:
        return ","
    at, first = filled[0]
    where = f"{source}:{at + 1}"
    if (hint := _EXCEL_HINT.fullmatch(first)) is not None:
        head[at], separator = b"", hint[1].decode("latin-1")
        if separator not in _SIGNS:
            raise SourceError(f"{where}: sep={separator} is none of {_SIGNS!r}; save as CSV UTF-8")
        return separator
    _check_bytes(first, where)
    texts = [raw.decode("utf-8", "replace").rstrip("\r\n") for _, raw in filled]
    _check_lines(texts, where)
    if source.lower().endswith(_TAB_SUFFIXES) and any("\t" in text for text in texts):
        return "\t"
    return _separator(texts)


def _check_bytes(first: bytes, where: str) -> None:
    """Check that the first line is one of a CSV. Raises: SourceError."""
    before, ends, _ = first.rstrip(b"\r\n").partition(b"\r")
    if ends and before.count(b'"') % 2 == 0:  # outside of quotes
        raise SourceError(f"{where}: lines end with CR, not LF or CR LF; save it as CSV UTF-8")
    if _JSON.match(first):
        raise NotUnderstoodError(f"{where}: this line is JSON, no CSV", options={"format": "jsonl"})


def _check_lines(texts: Sequence[str], where: str) -> None:
    """Check that lines have fields, and are not tokens. Raises: SourceError."""
    lines = [text.split() for text in texts if _TAGGED.fullmatch(text.strip())]
    are_tagged = len(lines) == len(texts) > 1 and any(_INSIDE.fullmatch(it[-1]) for it in lines)
    if are_tagged and not all(it[0] == "O" or _INSIDE.fullmatch(it[0]) for it in lines):
        raise NotUnderstoodError(f"{where}: this is a token and a tag", options={"format": "conll"})
    records = _records(texts, ",")
    if records and all(map(_is_quoted_row, records)):
        raise SourceError(f"{where}: each line is quoted as one field; remove these quotes")


def _is_quoted_row(fields: Sequence[str]) -> bool:
    """Return whether a row is one field, as if pasted into one column of a sheet."""
    begin, comma, _ = fields[0].partition(",")
    is_one_line = len(fields) == 1 and "\n" not in fields[0]
    return is_one_line and comma != "" and _FIRST_FIELD.fullmatch(begin.strip()) is not None


def _separator(texts: Sequence[str]) -> str:
    """Return the sign that separates the fields of lines.

    1. The sign that divides the first line into names of columns, at least two of them.
    2. A single blank, if every line is a path of an image or a video, and one word.
    3. The sign behind the first field of every line, if these are words of ML_USE or paths.
    4. A tab that divides all lines, at least two: no text holds one.
    5. The comma, semicolon or bar that divides them into most; commas may differ between lines.
    6. A sign behind which nothing follows, as spreadsheets pad rows.
    7. The comma.
    """
    rows = {sign: records for sign in _SIGNS if (records := _records(texts, sign))}
    names = {sign: sum(column_name(it) in KNOWN_COLUMNS for it in rows[sign][0]) for sign in rows}
    if max(names.values(), default=0) > 1:
        return max(names, key=names.__getitem__)
    if all(map(_is_listed, texts)):
        return " "
    for sign, records in rows.items():
        is_used = sign == "," or max(map(len, records)) > 1
        if is_used and all(map(_shows_separator, records)):
            return sign
    widths = {sign: width for sign in rows if (width := _width(rows[sign], sign)) > 1}
    if "\t" in widths:
        return "\t"
    padding = (sign for sign in _SIGNS[1:] if _pads(texts, sign))
    return max(widths, key=widths.__getitem__, default=next(padding, ","))


def _pads(texts: Sequence[str], sign: str) -> bool:
    """Return whether a sign only ends lines: a tab, two of it, or one behind a path."""
    ends = [text for text in texts if text.endswith(sign)]
    is_inside = any(sign in text.rstrip(sign) for text in texts)
    pads = (sign == "\t" or text.endswith(sign * 2) or names_media(text[:-1]) for text in ends)
    return not is_inside and any(pads)


def _shows_separator(fields: Sequence[str]) -> bool:
    """Return whether a line has a known first field before a separator, or is one address."""
    begin = _FIRST_FIELD if len(fields) > 1 else _ADDRESS
    return begin.fullmatch(fields[0].strip()) is not None


def _width(records: Sequence[Sequence[str]], sign: str) -> int:
    """Return the number of fields, of tabs and commas the largest; 0 if it does not divide all.

    Signs that only end lines, such as ``SELECT a;``, divide nothing.
    """
    widths = {len(fields) for fields in records}
    is_alike = len(widths) == 1 or (sign in ",\t" and min(widths) > 1)
    is_divided = any(field.strip() for fields in records for field in fields[1:])
    return max(widths) if len(records) > 1 and is_alike and is_divided else 0


def _is_listed(text: str) -> bool:
    line = _LISTED.fullmatch(text)
    return line is not None and names_media(line[1])


def _records(texts: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return the records of lines, up to the first broken or unfinished one."""
    records = []
    with suppress(csv.Error):
        for fields in read_fields((f"{text}\n" for text in texts), delimiter):
            if fields:
                records.append(fields)
    return records
