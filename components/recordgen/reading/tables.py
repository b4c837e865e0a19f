"""Rows of tables: records → columns by name, the target, and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.reading.checks import check_one_of
from recordgen.reading.classes import check_mode
from recordgen.reading.options import RecordOptions
from recordgen.reading.plan import ReadPlan
from recordgen.reading.records import (
    Keep,
    cached,
    finished,
    keeping,
    ordered,
    parallel_calls,
    read_records,
)
from recordgen.reading.shards import ShardSet
from recordgen.reading.targets import encoded_labels
from recordgen.reading.tuning import AUTO
from recordgen.tables.columns import MISSING, Column, Table

_DTYPES = {"int64": tf.int64, "float32": tf.float32, "bytes": tf.string}

# A row has one target, so there is no ``multi_hot``.
_LABEL_MODES = (AUTO, "int", "binary", "categorical", None)

# What a row without a weight weighs.
_PLAIN_WEIGHT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions(RecordOptions):
    """How rows of tables are read; what :class:`RecordOptions` has, and the following.

    Attributes:
        task: ``tabular``; ``auto``: as ``dataset.json`` says.
        label_mode: Keras's words for a target of classes: ``int`` (int64 [batch]), ``categorical``
            (float32 [batch, classes]) or, for two classes, ``binary`` (float32 [batch, 1]); None:
            no target and no weights. ``auto``: ``int``, or a target of numbers as it is.
        columns: the columns that are features; None: all but the target and the weights.
        defaults: by column, what stands where a value is missing; of columns that are not named
            NaN for numbers, -1 for whole numbers, and empty text.
    """

    task: str = AUTO
    label_mode: str | None = AUTO
    columns: Sequence[str] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is another class than the one that is named here.
        RecordOptions.__post_init__(self)
        check_one_of("label_mode", self.label_mode, _LABEL_MODES)
        if isinstance(self.columns, str) or (self.columns is not None and not self.columns):
            raise UsageError(f"columns must be a list of names, or None (got {self.columns!r})")
        if not isinstance(self.defaults, Mapping):
            raise UsageError(f"defaults must be a dict by column (got {self.defaults!r})")


def stored_table(shards: ShardSet) -> Table:
    """Return the columns that shards hold. Raises: UsageError: nobody says."""
    if shards.dataset is None or not shards.dataset.options.get("table"):
        raise UsageError(
            f"{shards.files[0].path}: no dataset.json says which columns the examples have; read "
            f"them with recordgen.read(…, feature_spec=…)"
        )
    return Table.from_json(shards.dataset.options["table"])


@dataclass(frozen=True)
class TableReading:
    """A reading of rows.

    Attributes:
        plan: which files, and in which order.
        options: what was asked for.
        table: all columns.
        inputs: the columns that are features.
        spec: how all of the columns are parsed.
        labels: the classes, in the order of their numbers.
    """

    plan: ReadPlan
    options: TableOptions
    table: Table
    inputs: Sequence[Column]
    spec: Mapping[str, tf.io.FixedLenFeature]
    labels: Sequence[str]

    @classmethod
    def of(cls, shards: ShardSet, plan: ReadPlan, options: TableOptions) -> TableReading:
        """Prepare a planned reading. Raises: UsageError: an option does not go with the table."""
        table = stored_table(shards)
        inputs = table.inputs
        if table.target is None and table.weight is not None:
            inputs = [*inputs, table.column(table.weight)]
        if options.columns is not None:
            known = {column.name: column for column in table.stored}
            _check_known("columns", options.columns, known)
            inputs = [known[name] for name in options.columns]
        _check_known("defaults", options.defaults, [column.name for column in table.stored])
        spec = {column.name: _parsed(column, table, options) for column in table.stored}
        labels = shards.dataset.labels if shards.dataset is not None else ()
        _check_label_mode(options.label_mode, table, labels)
        return cls(plan, options, table, inputs, spec, labels)

    @property
    def keep(self) -> Keep | None:
        """What says (bool []) whether a serialised record (string []) is wanted; None: all are."""
        return keeping(self.options.predicate, lambda: self.spec)

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order."""
        plan, options = self.plan, self.options
        records = read_records(plan, options, self.keep)
        records = ordered(cached(records, plan, options), plan, options)
        # Batch before parse: one vectorised call for all records.
        records = records.batch(options.batch_size, drop_remainder=options.has_full_batches)
        rows = records.map(self._elements(), **parallel_calls(options))
        return finished(rows, plan, options)

    def _elements(self) -> Any:
        """Return what turns a batch of records (string [batch]) into what is handed out."""
        table, mode = self.table, self.options.label_mode
        has_target = table.target is not None and mode is not None
        used: set[str | None] = {column.name for column in self.inputs}
        if has_target:
            used |= {table.target, table.weight}
        spec = {name: item for name, item in self.spec.items() if name in used}
        to_target = target_reader(table, self.labels) if has_target else None

        def elements(records: tf.Tensor) -> Any:
            parsed = tf.io.parse_example(records, spec)
            features = {column.name: parsed[column.name] for column in self.inputs}
            if to_target is None:
                return features
            target = to_target(parsed[table.target])
            target = encoded_labels(target, mode, len(self.labels))
            if table.weight is None:
                return features, target
            return features, target, parsed[table.weight]

        return elements


def target_reader(table: Table, labels: Sequence[str]) -> Any:
    """Return what turns targets as they are stored into what a model learns.

    Of classes, their numbers (int64 [batch]), -1 for one that is not among ``labels``; of numbers,
    float32 [batch].
    """
    if table.prediction == "regression" or table.target is None:
        return lambda values: tf.cast(values, tf.float32)
    numbers = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(labels, tf.string), tf.range(len(labels), dtype=tf.int64)
        ),
        default_value=-1,
    )
    if table.column(table.target).dtype == "bytes":
        return numbers.lookup
    return lambda values: numbers.lookup(tf.strings.as_string(values))


def feature_spec(table: Table) -> dict[str, tf.io.FixedLenFeature]:
    """Return how the columns that a model predicts from are parsed, missing values included."""
    return {
        column.name: tf.io.FixedLenFeature((), _DTYPES[column.dtype], MISSING[column.dtype])
        for column in table.inputs
    }


def _parsed(column: Column, table: Table, options: TableOptions) -> tf.io.FixedLenFeature:
    default: Any = MISSING[column.dtype]
    if column.name == table.weight:
        default = _PLAIN_WEIGHT
    if column.name in options.defaults:
        default = _default(column, options.defaults[column.name])
    elif column.name == table.target:
        default = None  # each row has one
    return tf.io.FixedLenFeature((), _DTYPES[column.dtype], default)


def _default(column: Column, value: Any) -> Any:
    kinds: dict[str, tuple[type[Any], ...]] = {
        "int64": (Integral,),
        "float32": (Real,),
        "bytes": (str, bytes),
    }
    if not isinstance(value, kinds[column.dtype]) or isinstance(value, bool):
        raise UsageError(
            f"defaults: column {column.name!r} is {column.dtype}, and {value!r} is not of it"
        )
    return value


def _check_label_mode(mode: str | None, table: Table, labels: Sequence[str]) -> None:
    if mode in (AUTO, None):
        return
    if table.target is None or table.prediction == "regression":
        what = "no target" if table.target is None else f"numbers in its target {table.target!r}"
        raise UsageError(
            f"label_mode={mode!r} is for a target of classes, and this table has {what}; "
            f"leave it out"
        )
    check_mode(mode, labels)


def _check_known(option: str, names: Any, known: Any) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: there is no column {name!r}; there are {', '.join(known)}")
