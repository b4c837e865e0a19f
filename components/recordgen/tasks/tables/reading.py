"""Rows of tables: records → columns by name, with decoded images; the target; and weights.

Inferred and declared columns are read alike. A schema with one column of images and one of labels
is read like image classification, unless ``columns`` names columns.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import tensorflow as tf

from recordgen.access.shards import ShardSet
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.messages import listed
from recordgen.reading.decoding import ImageDecoder, as_written, stored_sizes
from recordgen.reading.images import ImageReading
from recordgen.reading.kinds import Kind
from recordgen.reading.levels import typed
from recordgen.reading.options import AUTO, RAGGED, ReadOptions, TableOptions
from recordgen.reading.parsing import as_floats, to_parsing_spec, with_gaps
from recordgen.reading.plan import ClassPlan, ReadPlan, plan_labelled, plan_reading, plan_records
from recordgen.reading.records import BatchReading, keeping
from recordgen.reading.targets import Targets
from recordgen.tables.columns import Column, Table, table_of
from recordgen.tasks import ImageClassification
from recordgen.tasks.pairing import DEFAULT_WEIGHT, check_masks

# Options that need a target of classes, and options that need images.
_LABEL_OPTIONS = ("label_mode", "vocabulary", "weights")
_IMAGE_OPTIONS = ("image_size", "scale", "resize")


# The function that TensorFlow calls with the inputs by name has parameters of its own.
_TAKEN = frozenset({"self", "args", "kwargs"})

_KINDS: Mapping[str, tuple[type[Any], ...]] = {
    "int64": (Integral,),
    "float32": (Real,),
    "bytes": (str, bytes),
}


def plan_table(shards: ShardSet, options: TableOptions) -> ReadPlan:
    """Plan how rows are read. Raises: as :func:`recordgen.reading.plan.plan_reading`."""
    table = stored_table(shards)
    assert shards.dataset is not None  # noqa: S101 -- stored_table needs it
    task = shards.dataset.task
    default = {field.name: field.default for field in fields(options)}
    given = [name for name in default if getattr(options, name) != default[name]]
    for name in () if table.images else _IMAGE_OPTIONS:
        if name in given:
            raise UsageError(f"{name} does not apply to these examples ({task}); remove it")
    images = [name for name in wanted_columns(table, options) if name in table.images]
    check_masks(images)
    if not table.has_labels:
        labels = ["only"] if options.labels is not None else []
        for name in (*_LABEL_OPTIONS, *labels):
            if name in given and not (name == "label_mode" and options.label_mode is None):
                what = f"the target {table.target!r} is a number" if table.target else "has none"
                raise UsageError(
                    f"{name} is for a target of classes, and this table {what}; remove it"
                )
        return plan_records(shards, options)
    if options.weights is not None and table.weight is not None:
        raise UsageError(
            f"weights: the column {table.weight!r} has the weight of each row; remove weights"
        )
    is_checked = shards.dataset.options.get("check") == "decode"
    plan = plan_labelled(shards, options, task, is_checked)
    if table.label is not None or plan.classes is None:
        return plan
    # Inferred targets are stored as in the row, without a number.
    return replace(plan, classes=replace(plan.classes, numbers=None, by_text=True))


@dataclass(frozen=True)
class TableReader:
    """A reader of records into columns: for training, evaluation and serving.

    Attributes:
        defaults: values of rows that have none, by column; they replace the features' defaults.
        pixels, is_ragged: see ``scale`` and ``padding`` of :class:`TableOptions`.
        are_checked, has_raw: see :func:`recordgen.reading.decoding.stored_sizes`.
    """

    table: Table
    known: Mapping[str, FeatureSpec]
    names: Sequence[str]
    defaults: Mapping[str, Any]
    decoder: ImageDecoder
    pixels: tuple[str, str] = (AUTO, "float32")
    is_ragged: bool = False
    are_checked: bool = False
    has_raw: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of the needed features for ``tf.io.parse_example``."""
        wanted: set[str] = set(self.names)
        parts = ["encoded"]
        if self.are_checked or self.has_raw:
            parts += ["height", "width"]
        if self.has_raw:
            parts.append("format")
        for name in wanted.intersection(self.table.images):
            wanted |= {self.table.image_feature(name, part) for part in parts}
        return {name: spec for name, spec in self.specs.items() if name in wanted}

    @property
    def specs(self) -> dict[str, Any]:
        """The spec of all features for ``tf.io.parse_example``."""
        return to_parsing_spec(self._with_defaults)

    @cached_property
    def _with_defaults(self) -> Mapping[str, FeatureSpec]:
        given = self.defaults.items()
        return {**self.known, **{name: replace(self.known[name], default=v) for name, v in given}}

    @property
    def floats(self) -> frozenset[str]:
        """The columns of whole numbers that become floats, because rows may lack them."""
        return with_gaps(self._with_defaults)

    def columns(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        """Return columns by name from a batch that was parsed with :attr:`spec`."""
        found, parsed = {}, as_floats(parsed, self.floats)
        for name in self.names:
            values = self._images(name, parsed) if name in self.table.images else parsed[name]
            is_padded = isinstance(values, tf.RaggedTensor) and not self.is_ragged
            found[name] = values.to_tensor() if is_padded else values
        return found

    def _images(self, name: str, parsed: Mapping[str, Any]) -> tf.Tensor:
        encoded, sizes, is_raw = self.stored_images(name, parsed)
        return typed(self.decoder.decode(encoded, sizes, is_raw=is_raw), *self.pixels)

    def stored_images(
        self, name: str, parsed: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor | None, tf.Tensor | None]:
        """Return a column's encoded images, and their sizes and ``is_raw`` for the decoder."""

        def part(of: str) -> tf.Tensor:
            return parsed[self.table.image_feature(name, of)]

        sizes, is_raw = stored_sizes(part, are_checked=self.are_checked, has_raw=self.has_raw)
        return part("encoded"), sizes, is_raw


def read_table(shards: ShardSet, plan: ReadPlan, options: TableOptions) -> BatchReading:
    """Prepare a planned reading. Raises: UsageError: an option does not fit the table."""
    table = stored_table(shards)
    # The statistics describe the images of one column only.
    images = shards.images if table.only_image is not None else None
    decoder = ImageDecoder(options.image_size, options.resize, options.tuning.decoder, images)
    known = stored_features_of(table, shards)
    reader = TableReader(
        table,
        known,
        wanted_columns(table, options),
        defaults_of(table, options.defaults),
        decoder,
        options.pixels,
        options.padding == RAGGED,
        plan.is_checked,
        shards.may_be_raw,
    )
    _check_exact(shards, reader, options)
    specs, weight = reader.specs, table.weight
    targets = None if plan.classes is None else _targets(table, plan.classes, options)
    is_wanted = (
        targets.is_wanted if targets is not None and targets.numbers.classes.filters else None
    )
    is_number = targets is None and options.label_mode is not None
    number = table.target if is_number else None

    @as_written
    def to_batch(records: tf.Tensor) -> Any:
        own = {name: specs[name] for name in (number, weight) if name is not None}
        parsed = tf.io.parse_example(records, reader.spec | own)
        columns = reader.columns(parsed)
        if number is not None:
            parts = [tf.cast(parsed[number], tf.float32)]
        elif targets is not None and targets.mode is not None:
            # Parse the target again: it may also be one of the columns, with another spec.
            labels = targets.labels(tf.io.parse_example(records, targets.spec))
            parts = targets.parts(labels, records.shape[0])
        else:
            return columns
        if weight is not None:
            parts.append(parsed[weight])
        return (columns, *parts)

    def predicate_spec() -> dict[str, Any]:
        payloads = {table.image_feature(name, "encoded") for name in table.images}
        return {name: spec for name, spec in specs.items() if name not in payloads}

    keep = keeping(options.predicate, predicate_spec, is_wanted, lambda: reader.floats)
    return BatchReading(plan, options, keep, to_batch)


def _check_exact(shards: ShardSet, reader: TableReader, options: TableOptions) -> None:
    """Check that floats can hold the whole numbers that become floats. Raises: UsageError."""
    inexact = () if shards.dataset is None else shards.dataset.inexact
    used = reader.floats if options.predicate else reader.floats.intersection(reader.names)
    if lost := sorted(used.intersection(inexact)):
        raise UsageError(
            f"column {lost[0]!r} is missing in some rows and has whole numbers that float32 cannot "
            f"hold, so it is not read as float with NaN; give columns={{{lost[0]!r}: …}} with a "
            f"whole number for such rows, or leave the column out with columns=[…]"
        )


def _targets(table: Table, classes: ClassPlan, options: TableOptions) -> Targets:
    if table.label is not None:
        text, label = table.label_features
        return Targets(classes, options, text=text, label=label)
    text = str(table.target)
    dtype = tf.int64 if table.column(text).dtype == "int64" else tf.string
    return Targets(classes, options, text=text, label="", text_dtype=dtype)


TABLES = Kind(options=TableOptions, plan=plan_table, reading=read_table, has_target=True)


def stored_table(shards: ShardSet) -> Table:
    """Return the columns that shards hold. Raises: UsageError: no ``dataset.json`` lists them."""
    table = None if shards.dataset is None else table_of(shards.dataset)
    if table is None:
        raise UsageError(
            f"{shards.files[0].path}: no dataset.json lists the columns of the examples; read "
            f"them with recordgen.read(…, feature_spec=…)"
        )
    return table


def stored_features_of(table: Table, shards: ShardSet) -> Mapping[str, FeatureSpec]:
    """Return the features of the columns, as ``dataset.json`` describes them.

    Earlier versions did not write whether rows lack a whole number: then it must not be missing.
    """
    described = {} if shards.dataset is None else shards.dataset.features
    found = {name: described.get(name, spec) for name, spec in table.features().items()}
    columns = [c.name for c in table.stored if c.dtype == "int64"]
    unknown = [name for name in columns if not found[name].has_gaps]
    return {**found, **{name: replace(found[name], default=None) for name in unknown}}


def wanted_columns(table: Table, options: TableOptions) -> Sequence[str]:
    """Return the names of the columns to return. Raises: UsageError: one does not exist."""
    known = [c.name for c in table.stored if not c.type.is_label and c.type.kind != "float_label"]
    if options.columns is None:
        return table.read_names
    _check_known("columns", options.columns, known)
    return list(options.columns)


def defaults_of(table: Table, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the defaults of columns. Raises: UsageError: one does not fit its column."""
    others = ("text", "floats", "weight")
    known = [c for c in table.stored if c.type.is_number or c.type.kind in others]
    fixed = [c.name for c in known if c.type.kind != "floats" or c.type.length is not None]
    _check_known("columns: a default", given, fixed)
    for name, value in given.items():
        dtype = table.column(name).dtype
        if not isinstance(value, _KINDS[dtype]) or isinstance(value, bool):
            raise UsageError(f"columns: {name!r} holds {dtype} (got {value!r})")
    return ({} if table.weight is None else {table.weight: DEFAULT_WEIGHT}) | dict(given)


def _check_known(option: str, names: Any, known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: there is no column {name!r}; there are {listed(known)}")


def input_names(columns: Iterable[str]) -> dict[str, str]:
    """Return the name of each column's input: TensorFlow allows Python's names only.

    ``["fixed acidity", "2nd", "class", "a-b", "a_b"]`` → ``fixed_acidity``, ``column_2nd``,
    ``class_``, ``a_b``, ``a_b_``
    """
    found: dict[str, str] = {}
    for column in columns:
        name = "".join(each if f"a{each}".isidentifier() else "_" for each in column)
        if not name[:1].isalpha():
            name = f"column_{name}"
        while name in found.values() or name in _TAKEN or keyword.iskeyword(name):
            name += "_"
        found[column] = name
    return found


def column_specs(table: Table) -> dict[str, tf.TensorSpec]:
    """Return the inputs of the signature ``columns``, by column.

    Texts and image files are string. All numbers are float64, in which NaN is a missing one:
    Serving's JSON has no missing int64, and refuses a whole number above 2^24 for a float32.
    """
    names = input_names(column.name for column in table.inputs)
    return {column.name: _spec(column, names[column.name]) for column in table.inputs}


def _spec(column: Column, name: str) -> tf.TensorSpec:
    if column.type.kind == "floats":
        return tf.TensorSpec([None, column.type.length], tf.float64, name)
    return tf.TensorSpec([None], tf.float64 if column.type.is_number else tf.string, name)


def given_columns(table: Table, values: Mapping[str, tf.Tensor]) -> dict[str, Any]:
    """Return columns as a reader returns them; NaN pads lists of any length."""
    columns = {column.name: column.type for column in table.inputs}
    found: dict[str, Any] = {}
    for name, given in values.items():
        found[name] = tf.cast(given, tf.float32) if given.dtype == tf.float64 else given
        if columns[name].kind == "floats" and columns[name].length is None:
            found[name] = tf.ragged.boolean_mask(found[name], ~tf.math.is_nan(given))
    return found


def are_labelled_images(shards: ShardSet) -> bool:
    """Return whether shards hold one column of images and one of labels, or no declared columns."""
    if shards.dataset is None or not shards.dataset.options.get("schema"):
        return True
    return stored_table(shards).is_labelled_image


def plan_images(shards: ShardSet, options: ReadOptions) -> ReadPlan:
    """Plan how a table of one column of images and one of labels is read, as labelled images."""
    if shards.dataset is not None and shards.dataset.options.get("schema"):
        check_masks([name for name in [stored_table(shards).only_image] if name is not None])
    return plan_reading(_as_images(shards), options)


def read_images(shards: ShardSet, plan: ReadPlan, options: ReadOptions) -> ImageReading:
    """Prepare a planned reading. Raises: as :func:`plan_images`."""
    described = None if shards.dataset is None else shards.dataset.features
    return ImageReading(_as_images(shards), plan, options, described)


def _as_images(shards: ShardSet) -> ShardSet:
    """Return shards under the task of image classification, which has the same feature names."""
    dataset = shards.dataset
    if dataset is None:
        return shards
    return replace(shards, dataset=replace(dataset, task=ImageClassification.name, features={}))


def _declared(shards: ShardSet, options: Mapping[str, Any]) -> Kind:
    """Return images for one column of images and one of labels, unless ``columns`` is given."""
    return TABLES if "columns" in options or not are_labelled_images(shards) else DECLARED


DECLARED = Kind(
    options=ReadOptions, plan=plan_images, reading=read_images, has_target=True, chosen=_declared
)
