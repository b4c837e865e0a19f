"""Lines of a table → examples, many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from recordgen.columns import MAX_WEIGHT, Column, Table
from recordgen.errors import PayloadError
from recordgen.rows import RejectCode
from recordgen.table_blocks import numbers, parse, serialize_rows
from recordgen.tasks.task import Made


def make_examples(lines: Sequence[str], table: Table) -> list[Made | PayloadError]:
    """Return the example of each line, or why it is refused.

    Args:
        lines: records of CSV, each with a field for every column.
        table: its columns.
    """
    names = table.names
    wanted = [names.index(column.name) for column in table.stored]
    errors: dict[int, str] = {}
    values: dict[str, tuple[str, Any]] = {}
    for column, texts in zip(table.stored, parse(lines, len(names), wanted), strict=True):
        found = texts if column.dtype == "bytes" else numbers(texts, column, errors)
        values[column.name] = column.dtype, found
    if table.weight is not None:
        _check_weights(table.column(table.weight), values[table.weight][1], errors)
    labels: Sequence[Sequence[str]] = [()] * len(lines)
    if table.target is not None:
        labels = _check_targets(table, values[table.target][1], errors)
    records = serialize_rows(values, len(lines))
    made: list[Made | PayloadError] = [
        Made((record,), record, label) for record, label in zip(records, labels, strict=True)
    ]
    for row, message in errors.items():
        made[row] = PayloadError(RejectCode.BAD_ANNOTATION.value, message)
    return made


def count_labels(lines: Sequence[str], table: Table) -> Counter[str]:
    """Return how many lines have each label; of a target that is a number, nothing.

    Args:
        lines: as :func:`make_examples` takes them; of those that it will refuse, no label counts.
        table: its columns.
    """
    if table.prediction != "classification" or table.target is None or not lines:
        return Counter()
    column = table.column(table.target)
    [texts] = parse(lines, len(table.columns), [table.names.index(column.name)])
    found = texts if column.dtype == "bytes" else numbers(texts, column, {})
    counts: Counter[str] = Counter()
    for item in pc.value_counts(found).to_pylist():
        if (label := _label(item["values"])) is not None:
            counts[label] += item["counts"]
    return counts


def _label(value: str | int | None) -> str | None:
    """Return a target as a label; None: it can be none."""
    if value is None:
        return None
    text = str(value)
    return text if len(text.splitlines()) == 1 else None  # labels.txt has a line for each


def _check_targets(table: Table, values: Any, errors: dict[int, str]) -> Sequence[Sequence[str]]:
    """Return the labels of each row; rows without a usable target are errors."""
    missing = f"target {table.target!r} is empty; fill it in, or leave the row out"
    for row in _where(values.is_null()):
        errors.setdefault(row, missing)
    if table.prediction != "classification":
        return [()] * len(values)
    codes = values.dictionary_encode()
    labels = [_label(value) for value in codes.dictionary.to_pylist()]
    numbers_of = codes.indices.to_pylist()
    for number, label in enumerate(labels):
        if label is None:
            shown = codes.dictionary[number].as_py()
            message = f"target {table.target!r} must not hold a line break (got {shown!r:.80})"
            for row in _where(pc.equal(codes.indices, number)):
                errors.setdefault(row, message)
    known = [() if label is None else (label,) for label in labels]
    return [() if number is None else known[number] for number in numbers_of]


def _check_weights(column: Column, values: Any, errors: dict[int, str]) -> None:
    """Note the rows whose weight is outside AutoML's range."""
    outside = pc.or_(pc.less(values, 0), pc.greater(values, MAX_WEIGHT))
    for row in _where(outside):
        message = (
            f"weight {column.name!r} must be from 0 to {MAX_WEIGHT:,.0f} "
            f"(got {values[row].as_py():g})"
        )
        errors.setdefault(row, message)


def _where(mask: Any) -> list[int]:
    """Return the rows at which a mask is true."""
    if not pc.any(mask).as_py():
        return []
    return [row for row, is_there in enumerate(mask.to_pylist()) if is_there]
