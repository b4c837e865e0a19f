"""The columns of a table: what each holds, and what it is for; inferred or declared.

Columns that were inferred travel as one JSON text, ``ConvertOptions.table``, declared ones as
``ConvertOptions.schema``, so that workers, a resumed run and ``dataset.json`` see the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from recordgen import features
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.types import ColumnType, FloatInput, IntegerInput, StringInput, Weight

#: What a reader gets for a missing value.
MISSING: dict[str, int | float | bytes] = {"int64": -1, "float32": math.nan, "bytes": b""}

#: What an image becomes, by the end of the feature's name.
IMAGE_PARTS: Mapping[str, FeatureSpec] = {
    "encoded": FeatureSpec("bytes", None),
    "format": FeatureSpec("bytes", None),
    "height": FeatureSpec("int64", 0),
    "width": FeatureSpec("int64", 0),
    "source_id": FeatureSpec("bytes", None),
}

Prediction = Literal["classification", "regression"]

# The types that are inferred, by their features' dtypes.
_INFERRED = {"int64": IntegerInput, "float32": FloatInput, "bytes": StringInput}


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: as the header has it.
        type: what it holds.
    """

    name: str
    type: ColumnType

    @classmethod
    def of(cls, name: str, dtype: str) -> Column:
        """Return a column of the type that is inferred for features of a dtype."""
        return cls(name, _INFERRED[dtype])

    @property
    def dtype(self) -> str:
        """Of its feature; empty: it becomes none."""
        return self.type.dtype


@dataclass(frozen=True)
class Table:
    """All columns of a table.

    Attributes:
        columns: in the order of the header, or of their declaration.
        split: the column of ML_USE; None: there is none.
        target: the column that is to be predicted; None: there is none.
        weight: the column of weights; None: there is none.
        prediction: what the target asks for; None: there is no target.
        notes: what the user should know of the columns.
        has_gaps: rows may lack the target, which then is one of several classes.
        group: the column of groups that share a split; None: there is none.
        target_kind: what whole numbers of the target were taken for, if that was a near thing.
    """

    columns: tuple[Column, ...]
    split: str | None = None
    target: str | None = None
    weight: str | None = None
    prediction: Prediction | None = None
    notes: tuple[str, ...] = ()
    has_gaps: bool = False
    group: str | None = None
    target_kind: str = ""

    @property
    def names(self) -> list[str]:
        """The header."""
        return [column.name for column in self.columns]

    @property
    def stored(self) -> list[Column]:
        """The columns that become features: not the split's, nor those that are ignored."""
        return [column for column in self.columns if column.name != self.split and column.dtype]

    @property
    def inputs(self) -> list[Column]:
        """The columns that a model predicts from."""
        return [c for c in self.stored if c.name not in (self.target, self.weight)]

    def inputs_of(self, *kinds: str) -> list[str]:
        """Return the names of those that hold values of some kinds."""
        return [column.name for column in self.inputs if column.type.kind in kinds]

    @property
    def has_labels(self) -> bool:
        """Whether the target is one of several classes."""
        return self.prediction == "classification"

    @property
    def images(self) -> list[str]:
        """The columns of images."""
        return [column.name for column in self.columns if column.type.kind == "image"]

    @property
    def only_image(self) -> str | None:
        """The column of images, if there is one and no other."""
        return self.images[0] if len(self.images) == 1 else None

    @property
    def label(self) -> str | None:
        """The column whose values a vocabulary numbers in features of its own."""
        return next((column.name for column in self.columns if column.type.is_label), None)

    @property
    def label_features(self) -> tuple[str, str]:
        """The features of the label's text and number."""
        if self.only_image is not None:
            return features.IMAGE_CLASS_TEXT, features.IMAGE_CLASS_LABEL
        return f"{self.label}/text", f"{self.label}/label"

    def column(self, name: str) -> Column:
        """Return a column by name. Raises: KeyError."""
        return {column.name: column for column in self.columns}[name]

    def image_feature(self, name: str, part: str) -> str:
        """Return the feature of a column of images that holds a part, such as ``encoded``."""
        return f"{'image' if name == self.only_image else name}/{part}"

    def features_of(self, column: Column) -> Mapping[str, FeatureSpec]:
        """Return the features that a column becomes; any value may be missing, but images."""
        name = column.name
        if column.type.kind == "image":
            if name == self.only_image:
                return features.IMAGE
            return {self.image_feature(name, part): spec for part, spec in IMAGE_PARTS.items()}
        if column.type.is_label:
            text, label = self.label_features
            return {
                text: FeatureSpec("bytes", b""),
                label: FeatureSpec("int64", features.NO_LABEL),
            }
        if column.type.kind == "floats":
            if column.type.length is None:
                return {name: FeatureSpec(column.dtype, shape=None)}
            return {name: FeatureSpec(column.dtype, math.nan, (column.type.length,))}
        is_there = name == self.target and not self.has_gaps
        return {name: FeatureSpec(column.dtype, None if is_there else MISSING[column.dtype])}

    def features(self) -> dict[str, FeatureSpec]:
        """Return the features of an example."""
        return {
            name: spec for column in self.stored for name, spec in self.features_of(column).items()
        }

    def to_json(self) -> str:
        """Return inferred columns as one line of JSON."""
        values = asdict(self)
        values["columns"] = [[column.name, column.dtype] for column in self.columns]
        for name in ("has_gaps", "group", "target_kind"):
            if not values[name]:
                del values[name]  # as tables without it always said it
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Table:
        """Return what :meth:`to_json` was given. Raises: UsageError: it is nothing of that."""
        try:
            values = json.loads(text)
            weight = values["weight"]
            values["columns"] = tuple(
                Column(name, Weight) if name == weight else Column.of(name, dtype)
                for name, dtype in values["columns"]
            )
            values["notes"] = tuple(values["notes"])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as exc:
            raise UsageError(
                f"the columns of a table are detected from its files and cannot be given ({exc})"
            ) from exc
