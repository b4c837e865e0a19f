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

from recordgen.core.task.annotation import AnnotationError
from recordgen.formats.field_kinds import IMAGE_SUFFIX, NUMBER, filled_at
from recordgen.rejects import RejectCode
from recordgen.tables.csv_fields import DELIMITERS, read_fields

# Quotes behind backslashes; an odd number of them escapes the quote.
_ESCAPED = re.compile(r'(?<!\\)(\\+)"')

#: Stands for an escaped quote while a line is divided into fields; texts have no such character.
QUOTE_MARK = "\uffff"

_COMMA_NUMBER = re.compile(r"[+-]?(\d+|(\d+|\d{1,3}(\.\d{3})+),\d+)", re.ASCII)
# Commas may as well divide thousands: 1,234. So may points beside decimal commas: 1.234.
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)
_POINT = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
_MAYBE_WHOLE = re.compile(rf"[+-]?\d+|{_POINT.pattern}", re.ASCII)

# Fewer rows may be alike by chance.
_ROWS_ALIKE = 3
_COLUMNS_OF_A_TABLE = 3


class Dialect(NamedTuple):
    """How the records of a CSV file are written.

    Attributes:
        delimiter: the separator of fields; a blank means any number of them.
        has_backslashes: backslashes escape quotes.
        decimals: the columns whose numbers have decimal commas.
        numbers: these, and the other columns whose numbers may be whole.
    """

    delimiter: str = ","
    has_backslashes: bool = False
    decimals: frozenset[int] = frozenset()
    numbers: frozenset[int] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Whether lines are as :func:`recordgen.tables.csv_fields.csv_line` writes them."""
        return self == RFC_4180

    def marked(self, text: str) -> str:
        """Return lines in which marks stand for escaped quotes."""
        return _ESCAPED.sub(_marked, text) if self.has_backslashes and '\\"' in text else text

    def fields(self, fields: Sequence[str]) -> list[str]:
        """Return the fields with quotes for marks, and decimal points. Raises: AnnotationError."""
        found = list(fields)
        if self.has_backslashes:
            found = [field.replace(QUOTE_MARK, '"') for field in fields]
        for at in self.numbers:
            number = found[at].strip() if at < len(found) else ""
            if _POINT.fullmatch(number):
                message = (
                    f"field {at + 1} must have no point (got {number!r}), since this file has "
                    f"decimal commas; write {number.replace('.', '')} or {number.replace('.', ',')}"
                )
                raise AnnotationError(RejectCode.BAD_LINE, message)
            if at in self.decimals and _COMMA_NUMBER.fullmatch(number):
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


def with_decimal_commas(dialect: Dialect, records: Sequence[Sequence[str]]) -> Dialect:
    """Return a dialect with the columns of numbers, if some have decimal commas.

    All values of such a column, except a header, are numbers without a point. None if commas may
    divide thousands in all of them.
    """
    rows = [[field.strip() for field in row] for row in records]
    for among in (rows[1:], rows):  # a single row has no header
        width = max(map(len, among), default=0)
        columns = {at: values for at in range(width) if (values := filled_at(among, at))}
        found = {at for at, values in columns.items() if all(map(_COMMA_NUMBER.fullmatch, values))}
        wholes = {at for at, values in columns.items() if all(map(_MAYBE_WHOLE.fullmatch, values))}
        commas = [value for at in found for value in columns[at] if "," in value]
        if any(_MAYBE_THOUSANDS.fullmatch(value) is None for value in commas):
            return dialect._replace(
                decimals=frozenset(found - wholes), numbers=frozenset(found | wholes)
            )
    return dialect


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
