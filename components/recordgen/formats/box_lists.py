"""Boxes in one column, each as a list of four numbers, as Kaggle's tables have them; or in four.

    image_id,width,height,bbox,source
    b6ab77fd7,1024,1024,"[834.0, 222.0, 56.0, 36.0]",usask_1

The numbers are two corners (``--columns xyxy=bbox``), or one and the width and height
(``xywh=bbox``, or ``xywh=x|y|w|h`` for four columns), or the center and these (``center_xywh``),
which only the user can tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from recordgen.errors import UsageError
from recordgen.formats.column_names import find_columns
from recordgen.formats.header import column_place
from recordgen.formats.label_fields import BETWEEN
from recordgen.tables.roles import BOX_ROLES

_Numbers = tuple[float, float, float, float]

_BRACKETS = re.compile(r"\[.*\]|\(.*\)", re.DOTALL)


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
        return (
            [repr(side) for side in corners_of(self.form, *numbers)] if numbers else [text, *"   "]
        )


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


def corners_of(form: str, x: float, y: float, width: float, height: float) -> _Numbers:
    """Return two corners of a box in one of :data:`BOX_LISTS`."""
    if form == "xyxy":
        return x, y, width, height
    if form == "center_xywh":
        x, y = x - width / 2, y - height / 2
    return x, y, x + width, y + height
