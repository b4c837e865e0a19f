"""What can be wrong with a CSV file as a whole, told by its first lines before any is a row.

TRAIN;a.jpg;cat    →  SourceError: a.csv:1: fields must be separated by commas (got semicolons)
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from recordgen.dataset.splits import ML_USE_WORDS
from recordgen.errors import SourceError
from recordgen.sources.lines import text_of_first

_LINES_LOOKED_AT = 100

#: What lines of nothing but empty fields are made of, as spreadsheets write them below a table.
EMPTY = b", \t\r\n\v\f"

_SEPARATORS = {";": "semicolons", "\t": "tabs"}

# An ML_USE, the name of a column or of a file: what else a spreadsheet separates stands behind it.
_FIRST_FIELD = re.compile(
    rf"{'|'.join(ML_USE_WORDS)}|split|ml_use|label|image_uri|image|filename|text"
    r"|[^,]+\.(jpe?g|png|gif|bmp|ico|webp|tiff?|mp4|mov|avi|mkv|webm|txt)",
    re.IGNORECASE,
)

# A whole line that is an address, whatever signs are in it: "gs://bucket/a;b.jpg".
_ADDRESS = re.compile(
    r"([a-z][a-z0-9+.-]*:/|\.{0,2})/.*\.(jpe?g|png|gif|bmp|ico|webp|tiff?|mp4|mov|avi|mkv|webm|txt)",
    re.IGNORECASE,
)

# Excel's own first line, which says what separates fields.
_EXCEL_HINT = re.compile(rb'\s*"?sep=[^\w"]\s*"?[,;\s]*', re.IGNORECASE)

_JSON = re.compile(rb'\s*(\[\s*)?\{\s*"')

# A token and its tag: "York I-city". Among tokens, commas stand alone or in numbers.
_TAGGED = re.compile(r"(?!.*([^\s\d,],|,[^\s\d,]))\S+\s(.*\s)?(O|[BIESLU]-[^\s,]+)")
_INSIDE = re.compile(r"[BIESLU]-\S+")


def checked(lines: Iterable[bytes], source: str) -> Iterator[bytes]:
    r"""Yield the physical lines of a CSV file, the first one without its byte order mark.

    Args:
        lines: with or without their ending (``\n`` or ``\r\n``).
        source: the file's name.

    Raises:
        SourceError: the file is UTF-16 or no text, its lines end with ``\r`` alone or are quoted as
            a whole, its fields are separated by something else than commas, or its lines are tokens
            with their tags.
    """
    rest = iter(lines)
    head = list(islice(rest, _LINES_LOOKED_AT))
    if head:
        head[0] = text_of_first(head[0], source, "CSV UTF-8")
        _check_layout(head, source)
    yield from chain(head, rest)


def _check_layout(head: Sequence[bytes], source: str) -> None:
    """Check first lines. Raises: SourceError."""
    filled = [(line, raw) for line, raw in enumerate(head, start=1) if raw.strip(EMPTY)]
    if not filled:
        return
    number, first = filled[0]
    if b"\r" in (before := first.rstrip(b"\r\n")) and _ends_outside_quotes(before):
        raise SourceError(
            f"{source}:{number}: lines must end with LF or CR LF (got CR alone, as old "
            f"spreadsheets write it); save the file as CSV UTF-8"
        )
    if _EXCEL_HINT.fullmatch(first):
        raise SourceError(
            f"{source}:{number}: fields must be separated by commas, and this line is a note to "
            f"Excel ({first[:20].decode('utf-8', 'replace').strip()}); leave it out"
        )
    if _JSON.match(first):
        raise SourceError(
            f"{source}:{number}: this line is JSON, and the file is read as CSV; name it .jsonl, "
            f"or say --input-format jsonl"
        )
    texts = [raw.decode("utf-8", "replace").rstrip("\r\n") for _, raw in filled]
    if _are_tagged(texts):
        raise SourceError(
            f"{source}:{number}: this line is a token and its tag; write the tokens of a sentence "
            f"in one line of a file sentences.txt, and their tags in the same line of labels.txt"
        )
    if _are_quoted(texts):
        raise SourceError(
            f"{source}:{number}: each line is one field in quotes, commas and all; leave out the "
            f"quotes around the lines"
        )
    if (separator := _other_separator(texts)) is not None:
        raise SourceError(
            f"{source}:{number}: fields must be separated by commas (got "
            f"{_SEPARATORS[separator]}); save the file as CSV with commas, and quote fields that "
            f"hold one"
        )


def _ends_outside_quotes(line: bytes) -> bool:
    return line[: line.index(b"\r")].count(b'"') % 2 == 0


def _are_tagged(texts: Sequence[str]) -> bool:
    tagged = [text.split()[-1] for text in texts if _TAGGED.fullmatch(text.strip())]
    return len(tagged) == len(texts) > 1 and any(map(_INSIDE.fullmatch, tagged))


def _are_quoted(texts: Sequence[str]) -> bool:
    """Say whether lines are whole rows in quotes, as of a sheet that was pasted into one column."""
    records = _records(texts, ",")
    return bool(records) and all(map(_is_row, records))


def _is_row(fields: Sequence[str]) -> bool:
    begin, comma, _ = fields[0].partition(",")
    return len(fields) == 1 and comma != "" and _FIRST_FIELD.fullmatch(begin.strip()) is not None


def _other_separator(texts: Sequence[str]) -> str | None:
    """Return what separates fields in place of commas; None: commas may.

    A sign separates if it cuts all lines into as many fields, and commas do not: these stand inside
    fields then, or begin none that is known.
    """
    by_comma = _records(texts, ",")
    if by_comma and all(map(_is_read_by_comma, by_comma)):
        return None
    for separator in _SEPARATORS:
        records = _records(texts, separator)
        if not records or len(records[0]) < 2 or not _are_alike(records):
            continue
        is_known = all(_FIRST_FIELD.fullmatch(fields[0].strip()) for fields in records)
        has_no_comma = not by_comma or len(by_comma[0]) == 1
        if is_known and (len(records) > 1 or has_no_comma):
            return separator
        # Else the sign may end statements, or stand in a text before its label.
        ends = [fields[-1] for fields in records]
        may_hold_commas = separator == "\t" or not any("," in end for end in ends)
        is_alone = has_no_comma or (may_hold_commas and not _are_alike(by_comma))
        if len(records) > 1 and any(end.strip() for end in ends) and is_alone:
            return separator
    return None


def _is_read_by_comma(fields: Sequence[str]) -> bool:
    """Say whether a line begins with a field that a comma ends, or is one address."""
    begin = _FIRST_FIELD if len(fields) > 1 else _ADDRESS
    return begin.fullmatch(fields[0].strip()) is not None


def _records(texts: Sequence[str], separator: str) -> list[list[str]]:
    """Return the records that lines hold; none if they cannot be read so."""
    try:
        return [fields for fields in csv.reader(texts, delimiter=separator) if fields]
    except csv.Error:
        return []


def _are_alike(records: Sequence[Sequence[str]]) -> bool:
    return len({len(fields) for fields in records}) == 1
