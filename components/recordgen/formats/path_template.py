"""Paths made of columns: ``--columns path=train/{image_id}.jpg``.

    id,breed                 id,breed,train/{id}.jpg
    7,dingo            →     7,dingo,train/7.jpg

The column has the template for its name, see :mod:`recordgen.formats.made_columns`. ``{{`` and
``}}`` are braces; a column that has the template for its name anyway is that column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recordgen.formats.header import Given, column_place

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

    @property
    def columns(self) -> Sequence[str]:
        """The name of the column that is made."""
        return (self.text,)

    def places_in(self, header: Sequence[str], where: str) -> Sequence[int] | None:
        """Return the indices of the columns; None if a column has the template for its name.

        Raises: UsageError: one is missing.
        """
        if self.text in header:
            return None
        return [
            column_place(name, header, f"columns: path={self.text}", where) for name in self.names
        ]

    def fill(self, values: Sequence[str]) -> Sequence[str]:
        """Return the path for values of the columns; "" if one is missing."""
        return (self.format.format(*values) if all(values) else "",)
