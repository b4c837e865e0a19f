"""Paths made of columns: ``--columns path=train/{image_id}.jpg``.

    id,breed                 id,breed,train/{id}.jpg
    7,dingo            →     7,dingo,train/7.jpg

Each record gets one more field, whose column has the template for its name. So whatever reads
columns finds the path in it. ``{{`` and ``}}`` are braces; a column that has the template for its
name anyway is that column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recordgen.formats.by_header import too_many_fields
from recordgen.formats.csv_records import Item, Record, Records
from recordgen.formats.header import Given, column_place
from recordgen.rejects import Reject, RejectCode

if TYPE_CHECKING:
    import pandas as pd

_TOKEN = re.compile(r"(\{\{|\}\}|\{[^{}]+\})")


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """A path with the names of columns in it.

    Attributes:
        text: as the user wrote it.
        format: for :meth:`str.format`, with a place for each name.
        names: of the columns, in the order of the places.
    """

    text: str
    format: str
    names: Sequence[str]

    @classmethod
    def of(cls, given: Given) -> PathTemplate | None:
        """Return the template that is given for the path; None if it is a column."""
        text = given.roles.get("path", ("",))[0]
        tokens = _TOKEN.split(text)
        names = [token[1:-1].strip() for token in tokens[1::2] if token not in ("{{", "}}")]
        if not names:
            return None
        literals = [token.replace("{", "{{").replace("}", "}}") for token in tokens[::2]]
        places = [token if token in ("{{", "}}") else "{}" for token in tokens[1::2]]
        parts = [part for pair in zip(literals, [*places, ""], strict=True) for part in pair]
        return cls(text, "".join(parts), names)

    def places_in(self, header: Sequence[str], where: str) -> Sequence[int]:
        """Return the indices of the columns. Raises: UsageError: one is missing."""
        return [
            column_place(name, header, f"columns: path={self.text}", where) for name in self.names
        ]

    def fill(self, values: Sequence[str]) -> str:
        """Return the path for values of the columns; "" if one is missing."""
        stripped = [value.strip() for value in values]
        return self.format.format(*stripped) if all(stripped) else ""


def with_paths(items: Iterable[Item], given: Given, source: str) -> Iterator[Item]:
    """Yield the records of a file with the path as one more field, if a template is given.

    Raises: UsageError: the header has no column of a name in the template.
    """
    template = PathTemplate.of(given)
    if template is None or given.header == "no":  # then columns have numbers
        yield from items
        return
    filler: _Filler | None = None
    for item in items:
        if isinstance(item, Reject):
            yield item
            continue
        first = next((record for record in item.each(strip=True) if any(record.fields)), None)
        if filler is None and first is not None:
            filler = _Filler.below(first, template, source)
        yield from filler.filled(item) if filler is not None else [item]


def with_path_column(frame: pd.DataFrame, given: Given, where: str) -> pd.DataFrame:
    """Return a frame with the path as one more column, if a template is given.

    Raises: UsageError: it has no column of a name in the template.
    """
    template, names = PathTemplate.of(given), [str(name) for name in frame.columns]
    if template is None or template.text in names:
        return frame
    from recordgen.formats.frame_cells import as_before_gaps, frame_cells

    places = [*template.places_in(names, where)]
    cells = frame_cells(frame.iloc[:, places])
    paths = [template.fill([str(as_before_gaps(cell)) for cell in row]) for row in cells]
    return frame.assign(**{template.text: paths})


def with_path_key(record: Mapping[str, Any], template: PathTemplate | None) -> Mapping[str, Any]:
    """Return a JSON object with the path under one more key, if a template is given."""
    if template is None or template.text in record:
        return record
    from recordgen.formats.frame_cells import as_before_gaps

    values = [record.get(name) for name in template.names]
    texts = ["" if value is None else str(as_before_gaps(value)) for value in values]
    return {**record, template.text: template.fill(texts)}


@dataclass(frozen=True, slots=True)
class _Filler:
    """Adds the path to the records of one file.

    Attributes:
        header: the names of its columns.
        places: the indices of those in the template; empty if the file has the column already.
    """

    template: PathTemplate
    source: str
    header: Sequence[str]
    places: Sequence[int]

    @classmethod
    def below(cls, record: Record, template: PathTemplate, source: str) -> _Filler:
        """Return what fills the records below a header. Raises: UsageError."""
        header = record.fields
        if template.text in header:
            return cls(template, source, header, ())
        places = template.places_in(header, f"{source}:{record.line}")
        return cls(template, source, header, places)

    def filled(self, records: Records) -> Iterator[Item]:
        """Yield records with their paths, and rejects of those with fields beyond the header."""
        if not self.places:
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
            at: [*fields, self._path(fields)] for at, fields in enumerate(whole) if any(fields)
        }
        yield records._replace(quoted={**records.quoted, **filled}).without(long)

    def _path(self, row: Sequence[str]) -> str:
        """Return the path of a complete row; the template itself in a line like the header."""
        if row[self.places[0]].strip() == self.header[self.places[0]] and (
            [field.strip() for field in row] == self.header
        ):
            return self.template.text
        return self.template.fill([row[at] for at in self.places])
