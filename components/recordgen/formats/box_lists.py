"""Boxes in one column, each as a list of four numbers, as Kaggle's tables have them.

    image_id,width,height,bbox,source
    b6ab77fd7,1024,1024,"[834.0, 222.0, 56.0, 36.0]",usask_1

The numbers are two corners (``--columns xyxy=bbox``), or one and the width and height
(``xywh=bbox``), which only the user can tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from recordgen.errors import UsageError
from recordgen.formats.column_names import find_columns
from recordgen.formats.header import column_place
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
        """Return the index of the column. Raises: UsageError: it is missing, or not alone."""
        given = f"columns: {self.form}={self.name}"
        if others := [header[at] for at in find_columns(header, BOX_ROLES)]:
            raise UsageError(f"{where}: {given}: {', '.join(others)} hold boxes, too; omit one")
        return (column_place(self.name, header, given, where, f"--columns {self.form}="),)

    def fill(self, values: Sequence[str]) -> Sequence[str]:
        """Return the corners of a box; of four numbers are none, the text, which is rejected."""
        [text] = values
        numbers = _numbers_in(text)
        return [repr(side) for side in _corners(self.form, numbers)] if numbers else [text, *"   "]


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
