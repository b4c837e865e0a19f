"""``Schema``: a declaration of the columns of a table, for tables in no format of AutoML.

    Schema({"split": "split", "photo": "image", "age": "int", "breed": "label"})

It declares the columns of a CSV or DataFrame. The features of a column depend on its type:

    split, ignored      none
    image               <column>/encoded, /format, /height, /width, /source_id; the only image of a
                        schema has the usual names of images: image/encoded, …
    text                <column>, bytes
    int, float, bool    <column>, int64 or float32; 1 or 0
    floats, floats[N]   <column>, a list of float32 of any length, or of N
    label, int_label    <column>/text and <column>/label, the number in labels.txt; with only one
                        image, image/class/text and image/class/label
    float_label, weight <column>, float32
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from recordgen.errors import UsageError
from recordgen.tables.columns import Column, Table
from recordgen.tables.types import ColumnType


class Schema:
    """Declares the columns of a table.

    Attributes:
        columns: types by name, in the order of a CSV without a header.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        """Declare columns.

        Args:
            columns: types by name: types of :mod:`recordgen.tables.types`, their names as text
                (``"IntegerInput"``), the short names that the module shows, or ``int``, ``float``
                and ``str``.

        Raises:
            UsageError: a type is unknown, there are too many columns of a type, or two columns
                become one feature.
        """
        if not isinstance(columns, Mapping) or not columns:
            raise UsageError(
                f"a schema must be a dict of types by column, such as "
                f'{{"photo": "image", "age": "int"}} (got {columns!r:.80})'
            )
        self.columns: Mapping[str, ColumnType] = {
            _checked_name(name): _type(name, given) for name, given in columns.items()
        }
        self._need_one_at_most("split")
        self._need_one_at_most("weight")
        self._need_one_at_most("label", "int_label", "float_label")
        table = self.table
        names = [name for column in table.stored for name in table.features_of(column)]
        if not names:
            raise UsageError("no column of the schema becomes a feature; declare more than split")
        feature, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise UsageError(
                f"two columns of the schema become the feature {feature!r}; rename one of them"
            )

    def _need_one_at_most(self, *kinds: str) -> None:
        found = self._of_kind(*kinds)
        if len(found) > 1:
            remedy = "text, int or float" if kinds[0] == "label" else "ignored"
            raise UsageError(
                f"columns {found[0]!r} and {found[1]!r} of the schema are both {kinds[0]}, but "
                f"only one may be; declare the other as {remedy}"
            )

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Build a schema from JSON: ``{"photo": "image", "age": "int"}``. Raises: UsageError."""
        try:
            pairs = json.loads(text, object_pairs_hook=_without_repeats)
        except ValueError as exc:
            raise UsageError(f"a schema must be a JSON object of types by column: {exc}") from exc
        return cls(pairs)

    def to_json(self) -> dict[str, str]:
        """Return the short names of the types, by column."""
        return {name: str(kind) for name, kind in self.columns.items()}

    def __repr__(self) -> str:
        return f"Schema({self.to_json()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and list(self.columns.items()) == list(
            other.columns.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self.columns.items()))

    def _of_kind(self, *kinds: str) -> Sequence[str]:
        return [name for name, kind in self.columns.items() if kind.kind in kinds]

    @property
    def table(self) -> Table:
        """The columns with their uses: the label is the target."""
        classes, numbers = self._of_kind("label", "int_label"), self._of_kind("float_label")
        return Table(
            tuple(Column(name, kind) for name, kind in self.columns.items()),
            split=next(iter(self._of_kind("split")), None),
            target=next(iter([*classes, *numbers]), None),
            weight=next(iter(self._of_kind("weight")), None),
            prediction="classification" if classes else "regression" if numbers else None,
            has_gaps=bool(classes),
        )


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise UsageError(f"a column of a schema must have a name, a printable text (got {name!r})")
    return name


def _type(name: str, given: Any) -> ColumnType:
    try:
        return ColumnType.of(given)
    except UsageError as exc:
        raise UsageError(f"column {name!r} of the schema: {exc}") from exc


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"column {name!r} is declared twice")
    return found
