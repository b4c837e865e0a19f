"""The columns of a table: their names and types, and what they are for.

What was decided of a table travels as one JSON text, ``ConvertOptions.table``, so that workers, a
resumed run and ``dataset.json`` see the same.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Literal

from recordgen.errors import UsageError
from recordgen.features import FeatureSpec

#: Lines that are looked at together, at most; of the characters, one line more.
BLOCK_LINES = 20_000
BLOCK_CHARACTERS = 16 << 20

#: What a column holds: whole numbers of 64 bits, numbers, or text as UTF-8.
DTYPES = ("int64", "float32", "bytes")

#: AutoML's range of weights.
MAX_WEIGHT = 10_000.0

#: What a reader gets for a missing value.
MISSING: dict[str, int | float | bytes] = {"int64": -1, "float32": math.nan, "bytes": b""}

Prediction = Literal["classification", "regression"]

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_MAX_FLOAT32 = 3.4028234663852886e38
_EXPECTED = {"int64": "a whole number of 64 bits", "float32": "a finite number (of float32)"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: as the header has it; also the feature's.
        dtype: one of :data:`DTYPES`.
    """

    name: str
    dtype: str

    def number(self, text: str) -> int | float:
        """Return the number that a field holds; blanks around it do not count.

        Raises:
            ValueError: it holds none that fits.
        """
        stripped = text.strip()
        if self.dtype == "int64":
            if _WHOLE.fullmatch(stripped) and len(stripped) < 25:
                whole = int(stripped)
                if -(1 << 63) <= whole < 1 << 63:
                    return whole
        elif _DECIMAL.fullmatch(stripped):
            value = float(stripped)
            if abs(value) <= _MAX_FLOAT32:
                return value
        raise ValueError(
            f"column {self.name!r} holds {_EXPECTED[self.dtype]}, or nothing (got {text[:80]!r})"
        )


@dataclass(frozen=True, slots=True)
class Table:
    """All columns of a table.

    Attributes:
        columns: in the order of the header.
        split: the column of ML_USE; None: there is none.
        target: the column that is to be predicted; None: there is none.
        weight: the column of weights; None: there is none.
        prediction: what the target asks for; None: there is no target.
        notes: what the user should know of the columns.
    """

    columns: tuple[Column, ...]
    split: str | None = None
    target: str | None = None
    weight: str | None = None
    prediction: Prediction | None = None
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The header."""
        return [column.name for column in self.columns]

    @property
    def stored(self) -> list[Column]:
        """The columns that become features: all but the split's."""
        return [column for column in self.columns if column.name != self.split]

    @property
    def inputs(self) -> list[Column]:
        """The columns that a model predicts from."""
        return [c for c in self.stored if c.name not in (self.target, self.weight)]

    @property
    def has_labels(self) -> bool:
        """Whether the target is one of several classes."""
        return self.prediction == "classification"

    def column(self, name: str) -> Column:
        """Return a column by name. Raises: KeyError."""
        return {column.name: column for column in self.columns}[name]

    def features(self) -> dict[str, FeatureSpec]:
        """Return the features of an example; all but the target may be missing."""
        return {
            column.name: FeatureSpec(
                column.dtype, None if column.name == self.target else MISSING[column.dtype]
            )
            for column in self.stored
        }

    def to_json(self) -> str:
        """Return the table as one line of JSON."""
        values = asdict(self)
        values["columns"] = [[column.name, column.dtype] for column in self.columns]
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Table:
        """Return what :meth:`to_json` was given. Raises: UsageError: it is nothing of that."""
        try:
            values = json.loads(text)
            values["columns"] = tuple(Column(*item) for item in values["columns"])
            values["notes"] = tuple(values["notes"])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as exc:
            raise UsageError(
                f"the columns of a table are detected from its files and cannot be given ({exc})"
            ) from exc
