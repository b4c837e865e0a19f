"""Columns that options make of others, or of nothing: each record gets their fields.

    image_id,bbox                image_id,bbox,train/{image_id}.jpg,xmin,ymin,xmax,ymax,'wheat'
    7,"[10, 20, 30, 40]"    →    7,"[10, 20, 30, 40]",train/7.jpg,10,20,40,60,wheat

with ``--columns "path=train/{image_id}.jpg,xywh=bbox,label='wheat'"``. So whatever reads columns
finds the path, the corners and the label in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from recordgen.formats.box_lists import BoxList
from recordgen.formats.by_header import too_many_fields
from recordgen.formats.csv_records import Item, Record, Records
from recordgen.formats.header import Given
from recordgen.formats.path_template import PathTemplate
from recordgen.rejects import Reject, RejectCode


class Made(Protocol):
    """Columns that are made."""

    @property
    def columns(self) -> Sequence[str]:
        """Their names."""

    def places_in(self, header: Sequence[str], where: str) -> Sequence[int] | None:
        """Return the indices of the columns that they need; None if they are there already.

        Raises: UsageError: the header lacks a column that is needed.
        """

    def fill(self, values: Sequence[str]) -> Sequence[str]:
        """Return a field for each, made of the stripped fields of the columns that they need."""


@dataclass(frozen=True, slots=True)
class _OneLabel:
    """The label of all rows, in single quotes: ``'wheat'``."""

    text: str

    @property
    def columns(self) -> Sequence[str]:
        return (self.text,)

    def places_in(self, header: Sequence[str], where: str) -> Sequence[int] | None:
        return None if self.text in header else ()

    def fill(self, values: Sequence[str]) -> Sequence[str]:
        return (self.text[1:-1].strip(),)


def made_by(given: Given) -> Iterator[Made]:
    """Yield the columns that options make."""
    if (template := PathTemplate.of(given)) is not None:
        yield template
    if given.boxes:
        yield BoxList(*given.boxes)
    for name in given.roles.get("label", ()):
        if is_constant(name):
            yield _OneLabel(name)


def is_constant(name: str) -> bool:
    """Return whether the value of a role is a label in single quotes, and no column."""
    return len(name) > 2 and name[0] + name[-1] == "''"


def with_made_columns(items: Iterable[Item], given: Given, source: str) -> Iterable[Item]:
    """Return the records of a file with the fields of made columns.

    Reading them raises UsageError if the header lacks a column that is needed.
    """
    if given.header != "no":  # then columns have numbers
        for made in made_by(given):
            items = _filled(items, made, source)
    return items


def _filled(items: Iterable[Item], made: Made, source: str) -> Iterator[Item]:
    filler: _Filler | None = None
    for item in items:
        if isinstance(item, Reject):
            yield item
            continue
        first = next((record for record in item.each(strip=True) if any(record.fields)), None)
        if filler is None and first is not None:
            filler = _Filler.below(first, made, source)
        yield from filler.filled(item) if filler is not None else [item]


@dataclass(frozen=True, slots=True)
class _Filler:
    """Adds made columns to the records of one file.

    Attributes:
        header: the names of its columns.
        places: the indices of those that are needed; None if the file has the columns already.
    """

    made: Made
    source: str
    header: Sequence[str]
    places: Sequence[int] | None

    @classmethod
    def below(cls, record: Record, made: Made, source: str) -> _Filler:
        """Return what fills the records below a header. Raises: UsageError."""
        places = made.places_in(record.fields, f"{source}:{record.line}")
        return cls(made, source, record.fields, places)

    def filled(self, records: Records) -> Iterator[Item]:
        """Yield records with made fields, and rejects of those with fields beyond the header."""
        if self.places is None:
            yield records
            return
        count = len(self.header)
        rows = records.rows()
        long = {at for at, fields in enumerate(rows) if any(map(str.strip, fields[count:]))}
        for at in sorted(long):
            message = too_many_fields(count, len(rows[at]))
            code = RejectCode.TOO_MANY_FIELDS.value
            yield Reject(self.source, records.lines[at], "", code, message)
        whole = [fields[:count] + [""] * (count - len(fields)) for fields in rows]
        filled = {
            at: [*fields, *self._made_of(fields, self.places)]
            for at, fields in enumerate(whole)
            if any(fields)
        }
        yield records._replace(quoted={**records.quoted, **filled}).without(long)

    def _made_of(self, row: Sequence[str], places: Sequence[int]) -> Sequence[str]:
        """Return the made fields of a complete row; their names in a line like the header."""
        if row[0].strip() == self.header[0] and [field.strip() for field in row] == self.header:
            return self.made.columns
        return self.made.fill([row[at].strip() for at in places])
