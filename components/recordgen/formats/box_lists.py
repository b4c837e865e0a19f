"""Boxes in one column, each as a list of four numbers, as Kaggle's tables have them; or in four.

    image_id,width,height,bbox,source
    b6ab77fd7,1024,1024,"[834.0, 222.0, 56.0, 36.0]",usask_1

The numbers are two corners (``--columns xyxy=bbox``), or one and the width and height
(``xywh=bbox``, or ``xywh=x|y|w|h`` for four columns). Without the option, only boxes decide that
fit their images in one of the two ways, and in the other way are inverted or far outside; else the
run stops.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recordgen import tasks
from recordgen.errors import UsageError
from recordgen.formats.by_header import field_at
from recordgen.formats.column_names import column_name, find_columns
from recordgen.formats.header import Given, column_place
from recordgen.formats.label_fields import BETWEEN
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.csv_fields import is_number
from recordgen.tables.roles import BOX_LISTS, BOX_ROLES, SIZE_ROLES, Columns
from recordgen.tasks import TASKS

if TYPE_CHECKING:
    from recordgen.formats.head import Head

_Numbers = tuple[float, float, float, float]

_NAMES = frozenset({"bbox", "box", "bounding_box", "boundingbox", "bndbox", "rect"})

_BRACKETS = re.compile(r"\[.*\]|\(.*\)", re.DOTALL)

# As shares of the side of an image: boxes reach so far over its edge, and not so far.
_NEAR, _FAR = 0.01, 0.1


@dataclass(frozen=True, slots=True)
class BoxList:
    """A column of boxes, of which the columns of corners are made.

    Attributes:
        form: one of :data:`BOX_LISTS`.
        name: the column, by name or number.
    """

    form: str
    name: str

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns of corners."""
        return BOX_ROLES

    def places_in(self, header: Sequence[str], where: str) -> Sequence[int]:
        """Return the indices of the column, or of the four columns.

        Raises: UsageError: one is missing, or not alone.
        """
        given = f"columns: {self.form}={self.name}"
        sides = box_columns(self.name, header)
        if len(sides) > 1:
            return [
                column_place(side, header, given, where, f"--columns {self.form}=")
                for side in sides
            ]
        if others := [header[at] for at in find_columns(header, BOX_ROLES)]:
            raise UsageError(f"{where}: {given}: {', '.join(others)} hold boxes, too; omit one")
        return (column_place(self.name, header, given, where, f"--columns {self.form}="),)

    def fill(self, values: Sequence[str]) -> Sequence[str]:
        """Return the corners of a box; of four numbers are none, the text, which is rejected."""
        text = values[0] if len(values) == 1 else ",".join(values)
        numbers = _numbers_in(text)
        return [repr(side) for side in _corners(self.form, numbers)] if numbers else [text, *"   "]


def box_columns(name: str, known: Sequence[str]) -> Sequence[str]:
    """Return the columns of boxes that an option names: ``x|y|w|h`` are four."""
    sides = [name] if name in known else [side.strip() for side in name.split(BETWEEN)]
    if len(sides) not in (1, 4):
        raise UsageError(f"columns: boxes are a column or four, such as x|y|w|h (got {name})")
    return sides


def _numbers_in(text: str) -> _Numbers | None:
    """Return the four numbers of a list: ``[1, 2, 3, 4]``, ``(1 2 3 4)``, ``1,2,3,4``."""
    inner = text[1:-1] if _BRACKETS.fullmatch(text) else text
    try:
        x, y, right, down = map(float, inner.split("," if "," in inner else None))
    except ValueError:
        return None
    return (x, y, right, down) if math.isfinite(x + y + right + down) else None


def _corners(form: str, numbers: _Numbers) -> _Numbers:
    x, y, right, down = numbers
    return numbers if form == "xyxy" else (x, y, x + right, y + down)


def with_box_lists(heads: Sequence[Head], options: ConvertOptions) -> ConvertOptions:
    """Return the options with the column of boxes of files that have no other ones.

    Raises: UsageError: its boxes can be read in two ways, or differ between files.
    """
    given = Given.of(options)
    may_have_boxes = options.task == AUTO or BOX_ROLES[0] in TASKS[options.task].columns
    is_open = may_have_boxes and given.header != "no"
    if not is_open or given.boxes:
        return options
    found = {each for head in heads if (each := _box_list(head)) is not None}
    if not found:
        return options
    if len(found) > 1:
        raise UsageError(f"{heads[0].path}: the boxes of the files differ; convert them separately")
    by_role = options.columns.roles
    columns = Columns.of({**by_role, **{each.form: each.name for each in found}})
    return replace(options, columns=replace(options.columns, by_role=columns.by_role))


def _box_list(head: Head) -> BoxList | None:
    """Return the column of boxes; None without one. Raises: UsageError: it is unclear."""
    header = head.header or ()
    rows = [line.fields for line in head.lines]
    at = next((n for n, name in enumerate(header) if column_name(name) in _NAMES), len(header))
    texts = [text for row in rows if (text := field_at(row, at))]
    if not texts or None in map(_numbers_in, texts) or tasks.ObjectDetection.has_header(header):
        return None
    excess = [[_excess(form, box, size) for form in BOX_LISTS] for box, size in _sized(head, at)]
    if not excess:
        return None
    most = dict(zip(BOX_LISTS, map(max, zip(*excess, strict=True)), strict=True))
    best, worst = sorted(most, key=most.__getitem__)
    name = head.names[at]
    if most[best] <= _NEAR and most[worst] > _FAR:
        return BoxList(best, name)
    raise UsageError(
        f"{head.where}: the column {name!r} holds boxes such as {texts[0]:.60}, which may be "
        f"two corners or a corner, the width and the height; use --columns xyxy={name} or "
        f"--columns xywh={name}, or --task image_classification, which ignores them"
    )


def _sized(head: Head, at: int) -> Iterator[tuple[_Numbers, tuple[float, float]]]:
    """Yield the boxes of a column, except pixels without a size, with the sizes; shares have 1."""
    rows = [line.fields for line in head.lines]
    boxes = [(box, row) for row in rows if (box := _numbers_in(field_at(row, at)))]
    if max(max(box) for box, _ in boxes) <= 1:
        yield from ((box, (1.0, 1.0)) for box, _ in boxes)
        return
    header, roles = head.header or (), tasks.ObjectDetection.columns
    sides = [find_columns(header, roles[role])[:1] for role in SIZE_ROLES]
    for box, row in boxes if all(sides) else ():
        width, height = (field_at(row, side) for [side] in sides)
        if is_number(width) and is_number(height) and min(float(width), float(height)) > 0:
            yield box, (float(width), float(height))


def _excess(form: str, numbers: _Numbers, size: tuple[float, float]) -> float:
    """Return how far a box reaches over an edge, as a share of that side of the image.

    It is infinite for a box that is inverted.
    """
    xmin, ymin, xmax, ymax = _corners(form, numbers)
    if xmax < xmin or ymax < ymin:
        return math.inf
    width, height = size
    return max(-xmin / width, -ymin / height, xmax / width - 1, ymax / height - 1)
