"""Columns that options make of others, or of nothing: each record gets their fields.

    image_id,bbox                image_id,bbox,train/{image_id}.jpg,xmin,ymin,xmax,ymax,'wheat'
    7,"[10, 20, 30, 40]"    →    7,"[10, 20, 30, 40]",train/7.jpg,10,20,40,60,wheat

with ``--columns "path=train/{image_id}.jpg,xywh=bbox,label='wheat'"``. So whatever reads columns
finds the path, the corners and the label in them. Braces in a path are written ``{{`` and ``}}``;
a column that has the template for its name anyway is that column.

The numbers of a box are two corners (``xyxy=bbox``), or one and the width and height
(``xywh=bbox``, or ``xywh=x|y|w|h`` for four columns), or the center and these (``center_xywh``),
which only the user can tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from recordgen.errors import UsageError
from recordgen.formats.column_names import find_columns
from recordgen.formats.csv_records import Item, Records
from recordgen.formats.header import Given, column_place, too_many_fields
from recordgen.rejects import Reject
from recordgen.tables.roles import BOX_ROLES

_Numbers = tuple[float, float, float, float]

# The columns of a list of images, whose labels may hold blanks: ``1000002 Boeing 707``.
_LIST = {"path": ("1",), "label": ("2",)}

_BRACKETS = re.compile(r"\[.*\]|\(.*\)", re.DOTALL)
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")


class Made(NamedTuple):
    """Columns that are made.

    Attributes:
        columns: their names.
        places: the indices of the columns that they are made of.
        fill: the stripped fields of these → a field for each made column.
    """

    columns: Sequence[str]
    places: Sequence[int]
    fill: Callable[[Sequence[str]], Sequence[str]]


def made_below(header: Sequence[str], given: Given, where: str) -> list[Made]:
    """Return the columns that options make below a header, without those that it names itself.

    Raises: UsageError: the header lacks a column that is needed.
    """
    made = []
    names, text = names_in_path(given), given.roles.get("path", ("",))[0]
    if names and text not in header:
        places = [column_place(name, header, f"columns: path={text}", where) for name in names]
        form = _PLACE.sub(lambda place: "%s" if place[1] else place[0][0], text.replace("%", "%%"))
        made.append(Made((text,), places, partial(_path, form)))
    if given.boxes:
        made.append(_boxes(header, given, where))
    labels = [name for name in _constants(given) if name not in header]
    return [*made, *(Made((name,), (), partial(_label, name)) for name in labels)]


def names_in_path(given: Given) -> Sequence[str]:
    """Return the columns in the template that is given for the path; none if it is a column."""
    text = given.roles.get("path", ("",))[0]
    return [place[1].strip() for place in _PLACE.finditer(text) if place[1]]


def is_constant(name: str) -> bool:
    """Return whether the value of a role is a label in single quotes, and no column."""
    return len(name) > 2 and name[0] + name[-1] == "''"


def _constants(given: Given) -> Sequence[str]:
    return [*filter(is_constant, given.roles.get("label", ()))]


def _label(name: str, _: Sequence[str]) -> Sequence[str]:
    return (name[1:-1].strip(),)


def _path(form: str, values: Sequence[str]) -> Sequence[str]:
    """Return the path for values of the columns in it; "" if one is missing."""
    return (form % tuple(values) if all(values) else "",)


def _boxes(header: Sequence[str], given: Given, where: str) -> Made:
    """Return the columns of corners. Raises: UsageError: their column is missing, or not alone."""
    form, name = given.boxes
    others = [header[at] for at in find_columns(header, BOX_ROLES)]
    if others and len(given.box_columns(header)) == 1:
        problem = f"{', '.join(others)} hold boxes, too; omit one"
        raise UsageError(f"{where}: columns: {form}={name}: {problem}")
    places = given.box_places(header, where)
    return Made(BOX_ROLES, places, partial(_corners, form))


def _corners(form: str, values: Sequence[str]) -> Sequence[str]:
    """Return the corners of a box; of four numbers are none, the text, which is rejected."""
    text = values[0] if len(values) == 1 else ",".join(values)
    numbers = _numbers_in(text)
    return list(map(repr, corners_of(form, *numbers))) if numbers else [text, *"   "]


def _numbers_in(text: str) -> _Numbers | None:
    """Return the four numbers of a list: ``[1, 2, 3, 4]``, ``(1 2 3 4)``, ``1,2,3,4``."""
    inner = text[1:-1] if _BRACKETS.fullmatch(text) else text
    try:
        x, y, right, down = map(float, inner.split("," if "," in inner else None))
    except ValueError:
        return None
    return (x, y, right, down) if math.isfinite(x + y + right + down) else None


def corners_of(form: str, x: float, y: float, width: float, height: float) -> _Numbers:
    """Return two corners of a box in one of :data:`BOX_LISTS`."""
    if form == "xyxy":
        return x, y, width, height
    if form == "center_xywh":
        x, y = x - width / 2, y - height / 2
    return x, y, x + width, y + height


def with_made_columns(items: Iterable[Item], given: Given, source: str) -> Iterable[Item]:
    """Return the records of a file with the fields of made columns.

    Reading them raises UsageError if the header lacks a column that is needed.
    """
    if given.roles == _LIST:
        items = _divided(items)
    is_made = given.header != "no" and (names_in_path(given) or _constants(given))
    return _filled(items, given, source) if is_made or given.boxes else items


def _divided(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the records of a list, divided at their first blanks if nothing else divides them."""
    is_list: bool | None = None  # until the first records show it
    for item in items:
        if isinstance(item, Records):
            if is_list is None:
                is_list = all(len(row) == 1 and " " in row[0].strip() for row in item.rows())
            if is_list:
                fields = (text.split(maxsplit=1) for text in item.texts)
                item = item._replace(quoted=dict(enumerate(fields)))
        yield item


def _filled(items: Iterable[Item], given: Given, source: str) -> Iterator[Item]:
    header: Sequence[str] = ()
    made: Sequence[Made] = ()
    for item in items:
        if isinstance(item, Reject):
            yield item
            continue
        first = next((record for record in item.each(strip=True) if any(record.fields)), None)
        if not header and first is not None:
            header = first.fields
            if given.header == "no":
                header = [str(at) for at, _ in enumerate(header, start=1)]
            made = made_below(header, given, f"{source}:{first.line}")
        yield from _with_fields(item, header, made, source) if made else [item]


def _with_fields(
    records: Records, header: Sequence[str], made: Sequence[Made], source: str
) -> Iterator[Item]:
    """Yield records with made fields, and rejects of those with fields beyond the header."""
    count = len(header)
    rows = records.rows()
    long = {at for at, fields in enumerate(rows) if any(map(str.strip, fields[count:]))}
    for at in sorted(long):
        yield too_many_fields(count, len(rows[at])).reject(source, records.lines[at])
    whole = [fields[:count] + [""] * (count - len(fields)) for fields in rows]
    filled = {at: [*row, *_made_of(row, header, made)] for at, row in enumerate(whole) if any(row)}
    yield records._replace(quoted={**records.quoted, **filled}).without(long)


def _made_of(row: Sequence[str], header: Sequence[str], made: Sequence[Made]) -> list[str]:
    """Return the made fields of a complete row; their names in a line like the header."""
    if row[0].strip() == header[0] and [field.strip() for field in row] == header:
        return [name for each in made for name in each.columns]
    return [text for each in made for text in each.fill([row[at].strip() for at in each.places])]
