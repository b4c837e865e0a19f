"""Lines of a table → examples, many lines at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.tables.arrow import (
    Records,
    Texts,
    count_inexact,
    parse,
    parse_column,
    serialize_rows,
    trimmed,
)
from recordgen.tables.columns import Column, Table
from recordgen.tables.contents import contents_of


@dataclass(frozen=True)
class Examples:
    """The examples of lines of a table.

    Attributes:
        records: an example for each line without an error (binary).
        labels: number of examples by label.
        errors: why a line is refused, by index of the line.
        contents: 64-bit hash of the inputs of each line: all features except target and weight.
        targets: the target of each line as text, or null; None for a table without a target.
        values: the values of each column that becomes a feature; null for a missing value.
        gaps: examples without a value, by column of whole numbers.
        inexact: examples whose value float32 cannot hold, by column of whole numbers.
    """

    records: Records
    labels: Mapping[str, int]
    errors: Mapping[int, str]
    contents: npt.NDArray[np.uint64]
    targets: Texts | None
    values: Mapping[str, Any]
    gaps: Mapping[str, int]
    inexact: Mapping[str, int]


def make_examples(lines: Texts, table: Table) -> Examples:
    """Return the examples of lines: CSV records with a field for every column."""
    errors: dict[int, str] = {}
    parsed = _parsed(lines, table, errors)
    values = {column.name: (column.dtype, parsed[column.name]) for column in table.stored}
    if table.target is not None:
        _check_target(table, values[table.target][1], errors)
    records = serialize_rows(values, len(lines))
    is_right = None
    if errors:
        is_right = pa.array([row not in errors for row in range(len(lines))])
        records = records.filter(is_right)
    labels: Counter[str] = Counter()
    targets = None if table.target is None else values[table.target][1].cast(pa.string())
    if targets is not None and table.has_labels:
        labels = _count(targets if is_right is None else targets.filter(is_right))
    seen = [column.name for column in table.inputs] or list(values)
    contents = contents_of({name: values[name] for name in seen}, len(lines))
    whole = {name: item for name, (dtype, item) in values.items() if dtype == "int64"}
    if is_right is not None:
        whole = {name: item.filter(is_right) for name, item in whole.items()}
    gaps = {name: item.null_count for name, item in whole.items() if item.null_count}
    inexact = {name: n for name, item in whole.items() if (n := count_inexact(item))}
    return Examples(records, labels, errors, contents, targets, parsed, gaps, inexact)


def column_values(lines: Texts, table: Table) -> Mapping[str, Any]:
    """Return the values of each column that becomes a feature; null for a missing value."""
    return _parsed(lines, table, {})


def _parsed(lines: Texts, table: Table, errors: dict[int, str]) -> Mapping[str, Any]:
    names = table.names
    wanted = [names.index(column.name) for column in table.stored]
    texts = parse(lines, len(names), wanted)
    return {
        column.name: _values(mine, column, table, errors)
        for column, mine in zip(table.stored, texts, strict=True)
    }


def count_labels(lines: Texts, table: Table) -> Counter[str]:
    """Return the number of lines with each label, or nothing if the target is a number.

    Lines that :func:`make_examples` refuses are not counted.
    """
    return _count(find_labels(lines, table)) if table.has_labels else Counter()


def find_labels(lines: Texts, table: Table) -> Texts:
    """Return the label of each line as text, or null."""
    if not len(lines):
        return pa.array([], pa.string())
    column = table.column(str(table.target))
    [texts] = parse(lines, len(table.columns), [table.names.index(column.name)])
    return _values(texts, column, table, {}).cast(pa.string())


def _values(texts: Texts, column: Column, table: Table, errors: dict[int, str]) -> Any:
    """Return the values of a column; blanks around a label are removed."""
    if column.name == table.target:
        texts = trimmed(texts)
    return parse_column(texts, column, errors)


def _count(targets: Any) -> Counter[str]:
    found = pc.value_counts(targets.drop_null()).to_pylist()
    return Counter({item["values"]: item["counts"] for item in found if _is_label(item["values"])})


def _is_label(text: str) -> bool:
    return len(text.splitlines()) == 1  # labels.txt has a line for each label


def _check_target(table: Table, values: Any, errors: dict[int, str]) -> None:
    """Add errors for rows whose target is a missing number or cannot be a label."""
    name = table.target
    if not table.has_gaps:
        missing = f"target {name!r} is empty; fill it in, or remove the row"
        for row in _where(values.is_null()):
            errors.setdefault(row, missing)
    if not table.has_labels:
        return
    codes = values.dictionary_encode()
    for number, value in enumerate(codes.dictionary.to_pylist()):
        if not _is_label(str(value)):
            message = f"target {name!r} must not hold a line break (got {value!r:.80})"
            for row in _where(pc.equal(codes.indices, number)):
                errors.setdefault(row, message)


def _where(mask: Any) -> list[int]:
    """Return the indices at which a mask is true."""
    if not pc.any(mask).as_py():
        return []
    return [row for row, is_there in enumerate(mask.to_pylist()) if is_there]
