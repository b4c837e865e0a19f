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
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from recordgen import features
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.annotation import stored_features
from recordgen.errors import SourceError, UsageError
from recordgen.features import FeatureSpec
from recordgen.registry import TASKS
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


class Schema:
    """Declares the columns of a CSV or DataFrame, for tables in no format of AutoML.

        Schema({"split": "split", "photo": "image", "age": "int", "breed": "label"})

    The features of a column depend on its type:

        split, ignored      none
        image               <column>/encoded, /format, /height, /width, /source_id; the only image
                            of a schema has the usual names of images: image/encoded, …
        text                <column>, bytes
        int, float, bool    <column>, int64 or float32; 1 or 0
        floats, floats[N]   <column>, a list of float32 of any length, or of N
        label, int_label    <column>/text and <column>/label, the number in labels.txt; with only
                            one image, image/class/text and image/class/label
        float_label, weight <column>, float32

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
        self.columns: dict[str, ColumnType] = {}
        for name, given in columns.items():
            if not isinstance(name, str) or not name.strip() or not name.isprintable():
                raise UsageError(
                    f"a column of a schema must have a name, a printable text (got {name!r})"
                )
            try:
                self.columns[name] = ColumnType.of(given)
            except UsageError as exc:
                raise UsageError(f"column {name!r} of the schema: {exc}") from exc
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


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"column {name!r} is declared twice")
    return found


# --- what a dataset says of its table ------------------------------------------------------------


def table_of(dataset: Dataset) -> Table | None:
    """Return the columns of a table, inferred or declared; None for other datasets.

    Raises: SourceError: somebody changed them.
    """
    options = dataset.options
    name = "table" if options.get("table") else "schema"
    if not options.get(name):
        return None
    try:
        text = options[name]
        table = Table.from_json(text) if name == "table" else Schema.from_json(text).table
        for column in table.stored:
            for feature in table.features_of(column):
                _ = dataset.features[feature]
    except (AttributeError, LookupError, TypeError, ValueError) as exc:
        reason = f"{exc} is no feature" if isinstance(exc, KeyError) else exc
        raise SourceError(
            f"dataset.json: option {name} does not fit its features: {reason}; restore the file, "
            f"or convert again"
        ) from exc
    return table


def label_features(dataset: Dataset) -> tuple[str | None, str | None]:
    """Return the features with the text and the number of labels, each None if it is missing.

    ``("image/class/text", "image/class/label")``; for a table, the target if it is text.
    """
    if (table := table_of(dataset)) is not None:
        if table.label:
            return table.label_features
        is_text = table.has_labels and dataset.features[str(table.target)].dtype == "bytes"
        return (table.target, None) if is_text else (None, None)
    if dataset.task not in TASKS:  # written from Python: any feature may have any name
        return None, None
    names = stored_features(dataset)
    text = next((name for name in names if name.endswith("class/text")), None)
    number = next((name for name in names if name.endswith("class/label")), None)
    return text, number
