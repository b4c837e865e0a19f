"""Which columns of a table are read, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from recordgen.access.shards import ShardSet
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.messages import listed
from recordgen.reading.options import TableOptions
from recordgen.tables.columns import Table
from recordgen.tables.stored import table_of
from recordgen.tasks.tables.pairing import DEFAULT_WEIGHT

_KINDS: Mapping[str, tuple[type[Any], ...]] = {
    "int64": (Integral,),
    "float32": (Real,),
    "bytes": (str, bytes),
}


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
