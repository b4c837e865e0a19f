"""The columns of a table, inferred or declared: their types, uses and features.

Inferred columns are passed on as one JSON text, ``ConvertOptions.table``, declared columns as
``ConvertOptions.schema``, so that workers, a resumed run and ``dataset.json`` use the same columns.

The same rules hold for both: a missing value is a missing feature, and a row without a class is an
example without a label. A target that is a number must be present: otherwise a reader would have to
read all rows to know the number of batches.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from recordgen import features
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.tables.types import (
    ColumnType,
    FloatInput,
    Ignored,
    IntegerInput,
    StringInput,
    Weight,
)

#: The value that readers return for a missing one, by dtype.
MISSING: dict[str, float | bytes] = {"int64": math.nan, "float32": math.nan, "bytes": b""}

#: The features of an image, by the last part of their name.
IMAGE_PARTS: Mapping[str, FeatureSpec] = {
    "encoded": FeatureSpec("bytes", None),
    "format": FeatureSpec("bytes", None),
    "height": FeatureSpec("int64", 0),
    "width": FeatureSpec("int64", 0),
    "source_id": FeatureSpec("bytes", None),
}

Prediction = Literal["classification", "regression"]

# Words in the names of masks: ``mask``, ``road_mask``, ``segmentationUri``, ``label_map``.
_MASK = re.compile(
    r"(?<![a-z])(masks?|seg|segmentations?|seg_?maps?|label_?maps?|trimaps?)(?![a-z])"
)

# Letters at which the key of a member of a WebDataset would end, or which name a folder.
_UNSAFE = re.compile(r"[./\\\s]+")

# The inferred types, by the dtype of their feature.
_INFERRED = {"int64": IntegerInput, "float32": FloatInput, "bytes": StringInput, "": Ignored}


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str  # as in the header
    type: ColumnType  # type of its values

    @classmethod
    def of(cls, name: str, dtype: str) -> Column:
        """Return a column with the inferred type of a dtype."""
        return cls(name, _INFERRED[dtype])

    @property
    def dtype(self) -> str:
        """The dtype of its feature; empty if it has no feature."""
        return self.type.dtype


def is_mask(name: str) -> bool:
    """Return whether a column of images has the name of masks, whose pixels are classes."""
    words = re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return _MASK.search(words) is not None


def image_suffix(column: str, suffix: str) -> str:
    """Return the suffix of one image of several with the same key of a WebDataset: ``day.png``."""
    return f"{_UNSAFE.sub('_', column)}.{suffix}".lower()


@dataclass(frozen=True)
class Table:
    """All columns of a table."""

    columns: tuple[Column, ...]  # in the order of the header or of their declaration
    split: str | None = None  # the column of ML_USE, or None
    target: str | None = None  # the column to predict, or None
    weight: str | None = None  # the column of weights, or None
    prediction: Prediction | None = None  # how to predict the target; None without a target
    notes: tuple[str, ...] = ()  # warnings about the columns
    has_gaps: bool = False  # rows may lack the target, which is one of several classes
    group: str | None = None  # the column of groups that share a split, or None
    # Why whole numbers of the target were taken for classes or not, if in doubt.
    target_kind: str = ""
    # For each column of numbers, which texts were read as missing, and how many.
    markers: tuple[str, ...] = ()
    # The import files have no header; the columns are named by number, from 1.
    is_bare: bool = False

    @property
    def names(self) -> list[str]:
        """The header."""
        return [column.name for column in self.columns]

    @property
    def stored(self) -> list[Column]:
        """The columns that become features: all except the split's and ignored ones."""
        return [column for column in self.columns if column.name != self.split and column.dtype]

    @property
    def inputs(self) -> list[Column]:
        """The columns that are inputs of a model."""
        return [c for c in self.stored if c.name not in (self.target, self.weight)]

    def inputs_of(self, *kinds: str) -> list[str]:
        """Return the names of the inputs of some kinds."""
        return [column.name for column in self.inputs if column.type.kind in kinds]

    @property
    def number_inputs(self) -> Sequence[Column]:
        """The inputs with one number in each row."""
        return [column for column in self.inputs if column.type.is_number]

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
        """The column of images, if it is the only one."""
        return self.images[0] if len(self.images) == 1 else None

    @property
    def is_labelled_image(self) -> bool:
        """Whether a row is read as an image and its label, unless columns are named."""
        return self.only_image is not None and self.label is not None

    @property
    def read_names(self) -> list[str]:
        """The columns that are read as inputs, unless others are named."""
        weight = [] if self.target is not None or self.weight is None else [self.weight]
        return [column.name for column in self.inputs] + weight

    @property
    def label(self) -> str | None:
        """The declared label, whose values the vocabulary numbers in two features."""
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
        """Return the feature of a part, such as ``encoded``, of a column of images."""
        return f"{'image' if name == self.only_image else name}/{part}"

    def features_of(self, column: Column) -> Mapping[str, FeatureSpec]:
        """Return the features of a column; any value except an image may be missing."""
        name = column.name
        if column.type.kind == "image":
            if name == self.only_image:
                return features.IMAGE
            return {self.image_feature(name, part): spec for part, spec in IMAGE_PARTS.items()}
        if column.type.is_label:
            text, label = self.label_features
            return {text: FeatureSpec("bytes", b""), label: FeatureSpec("int64", features.NO_LABEL)}
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
        for name in ("has_gaps", "group", "target_kind", "markers", "is_bare"):
            if not values[name]:
                del values[name]  # as earlier versions wrote tables
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Table:
        """Return the table of :meth:`to_json`. Raises: UsageError: the text is something else."""
        try:
            values = json.loads(text)
            weight = values["weight"]
            values["columns"] = tuple(
                Column(name, Weight) if name == weight else Column.of(name, dtype)
                for name, dtype in values["columns"]
            )
            for key in ("notes", "markers"):
                values[key] = tuple(values.get(key, ()))
            return cls(**values)
        except (KeyError, TypeError, ValueError) as exc:
            raise UsageError(
                f"the columns of a table are detected from its files and cannot be given ({exc})"
            ) from exc
