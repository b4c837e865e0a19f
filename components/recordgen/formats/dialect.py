r"""How a CSV file is written, if not as RFC 4180 says: signs that its first lines show.

"He said \"hi\".",praise   →  backslashes escape quotes
a.jpg;cat;0,25             →  numbers have decimal commas
images/1.jpg 0             →  blanks separate a path and its label
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recordgen.formats.field_kinds import IMAGE_SUFFIX, NUMBER, filled_at
from recordgen.tables.csv_fields import DELIMITERS, read_fields

# Quotes behind backslashes; an odd number of them escapes the quote.
_ESCAPED = re.compile(r'(?<!\\)(\\+)"')

#: Stands for an escaped quote while a line is divided into fields; texts have no such character.
QUOTE_MARK = "\uffff"

_COMMA_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", re.ASCII)
_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
# Commas may as well divide thousands: 1,234.
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)

# Fewer rows may be alike by chance.
_ROWS_ALIKE = 3
_COLUMNS_OF_A_TABLE = 3


class Dialect(NamedTuple):
    """How the records of a CSV file are written.

    Attributes:
        delimiter: the separator of fields; a blank means any number of them.
        has_backslashes: backslashes escape quotes.
        decimals: the columns whose numbers have decimal commas.
    """

    delimiter: str = ","
    has_backslashes: bool = False
    decimals: frozenset[int] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Whether lines are as :func:`recordgen.tables.csv_fields.csv_line` writes them."""
        return self == RFC_4180

    def marked(self, text: str) -> str:
        """Return lines in which marks stand for escaped quotes."""
        return _ESCAPED.sub(_marked, text) if self.has_backslashes and '\\"' in text else text

    def fields(self, fields: Sequence[str]) -> list[str]:
        """Return the fields of a record with quotes for marks, and decimal points."""
        found = list(fields)
        if self.has_backslashes:
            found = [field.replace(QUOTE_MARK, '"') for field in fields]
        for at in self.decimals:
            if at < len(found) and _COMMA_NUMBER.fullmatch(found[at].strip()):
                found[at] = found[at].replace(".", "").replace(",", ".")
        return found

    def __str__(self) -> str:
        """Return what is special besides the separator, as the preview shows it."""
        said = ["decimal commas"] if self.decimals else []
        said += ["quotes escaped by backslashes"] if self.has_backslashes else []
        return ", ".join(said)


#: Records that are separated by commas, with doubled quotes and decimal points.
RFC_4180 = Dialect()


def _marked(found: re.Match[str]) -> str:
    many, is_escaped = divmod(len(found[1]), 2)
    return "\\" * many + (QUOTE_MARK if is_escaped else '"')


def with_marks(texts: Sequence[str]) -> Sequence[str]:
    """Return lines in which marks stand for escaped quotes, if no separator divides them as is."""
    if not any('\\"' in text for text in texts):
        return texts
    if any(_are_readable(texts, delimiter) for delimiter in DELIMITERS):
        return texts
    return [_ESCAPED.sub(_marked, text) for text in texts]


def has_backslashes(texts: Sequence[str], delimiter: str) -> bool:
    """Return whether lines are only readable if backslashes escape quotes."""
    if not any('\\"' in text for text in texts) or _are_readable(texts, delimiter):
        return False
    return _are_readable([_ESCAPED.sub(_marked, text) for text in texts], delimiter)


def _are_readable(texts: Iterable[str], delimiter: str) -> bool:
    """Return whether all records follow RFC 4180; the last one may not end in the lines."""
    try:
        for _ in read_fields((f"{text}\n" for text in texts), delimiter):
            pass
    except csv.Error as exc:
        return "unexpected end of data" in str(exc)
    return True


def decimal_columns(records: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return the columns of numbers with decimal commas, in a file not separated by commas.

    All values of such a column, except a header, are numbers without a point. None if commas may
    divide thousands in all of them.
    """
    rows = [[field.strip() for field in row] for row in records]
    first, *others = rows or [[]]
    width = max(map(len, others), default=0)
    found = _with_commas(others, width) or _with_commas(rows, len(first))  # a single row
    commas = [value for values in found.values() for value in values if "," in value]
    is_sure = any(_MAYBE_THOUSANDS.fullmatch(value) is None for value in commas)
    return frozenset(found) if is_sure else frozenset()


def _with_commas(rows: Sequence[Sequence[str]], width: int) -> dict[int, list[str]]:
    """Return the values of the columns of numbers with decimal commas."""
    columns = {at: filled_at(rows, at) for at in range(width)}
    return {at: values for at, values in columns.items() if _have_commas(values)}


def _have_commas(values: Sequence[str]) -> bool:
    commas = [value for value in values if "," in value]
    others = [value for value in values if "," not in value]
    return (
        bool(commas)
        and all(map(_COMMA_NUMBER.fullmatch, commas))
        and all(map(_WHOLE_NUMBER.fullmatch, others))
    )


def are_between_blanks(texts: Sequence[str]) -> bool:
    """Return whether blanks separate a path and its label, or the columns of a table."""
    if any(sign in text for text in texts for sign in ',;"|'):
        return False
    rows = [text.split() for text in texts]
    width = len(rows[0]) if rows else 0
    if width < 2 or any(len(row) != width for row in rows):
        return False
    if width == 2 and all(IMAGE_SUFFIX.search(path) for path, _ in rows):
        return True
    columns = [*zip(*rows, strict=True)]
    numbers = [all(map(NUMBER.fullmatch, column)) for column in columns]
    is_table = width >= _COLUMNS_OF_A_TABLE and len(rows) >= _ROWS_ALIKE
    return is_table and sum(numbers) * 3 >= 2 * width
