"""Lines of a table → examples, many lines at a time."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.rows.columns import joined, mixed
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


@dataclass(frozen=True)
class Examples:
    """The examples of lines of a table."""

    records: Records  # an example for each line without an error (binary)
    labels: Mapping[str, int]  # number of examples by label
    errors: Mapping[int, str]  # why a line is refused, by index of the line
    # 64-bit hash of the inputs of each line: all features except target and weight.
    contents: npt.NDArray[np.uint64]
    # The target of each line as text, or null; None for a table without a target.
    targets: Texts | None
    # The values of each column that becomes a feature; null for a missing value.
    values: Mapping[str, Any]
    gaps: Mapping[str, int]  # examples without a value, by column of whole numbers
    # Examples whose value float32 cannot hold, by column of whole numbers.
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
    places = {name: place for place, name in enumerate(table.names)}
    wanted = [places[column.name] for column in table.stored]
    texts = parse(lines, len(places), wanted)
    return {
        column.name: _values(mine, column, table, errors)
        for column, mine in zip(table.stored, texts, strict=True)
    }


def label_lists(lines: Texts, table: Table) -> Any:
    """Return a list with the label of each line; empty if the target is missing or a number.

    Lines that :func:`make_examples` refuses have no label.
    """
    if not len(lines) or not table.has_labels:
        return pa.array([[]] * len(lines), pa.list_(pa.string()))
    column = table.column(str(table.target))
    [texts] = parse(lines, len(table.columns), [table.names.index(column.name)])
    labels = _values(texts, column, table, {}).cast(pa.string()).dictionary_encode()
    is_label = pa.array([_is_label(text) for text in labels.dictionary.to_pylist()], pa.bool_())
    is_there = pc.fill_null(is_label.take(labels.indices), False)
    ends = np.concatenate(([0], np.cumsum(is_there))).astype(np.int32)
    return pa.ListArray.from_arrays(ends, labels.cast(pa.string()).filter(is_there))


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
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found


_Hashes = npt.NDArray[np.uint64]
_MISSING = np.uint64(0x9E3779B97F4A7C15)


def contents_of(columns: Mapping[str, tuple[str, Any]], rows: int) -> _Hashes:
    """Return a hash of each row (uint64 [rows]); nulls are missing values.

    ``columns`` are dtype and values [rows] by name of the feature.
    """
    total = np.zeros(rows, np.uint64)
    for name, (dtype, values) in columns.items():
        found = _hash_texts(values) if dtype == "bytes" else _hash_numbers(dtype, values)
        if values.null_count:
            found[~np.asarray(values.is_valid())] = _MISSING
        # The name makes a difference if two columns swap their values.
        total += mixed(found + mixed(np.full(1, zlib.crc32(name.encode()) + 1, np.uint64)))
    return mixed(total)


def _hash_numbers(dtype: str, values: Any) -> _Hashes:
    if dtype == "int64":
        return pc.fill_null(values, 0).to_numpy().view(np.uint64).copy()
    stored = pc.fill_null(values, 0.0).to_numpy().astype(np.float32)
    return stored.view(np.uint32).astype(np.uint64)


def _hash_texts(texts: Any) -> _Hashes:
    """Return a hash of each text, 0 for null; each different text is hashed once."""
    codes = texts.dictionary_encode()
    numbers = np.append(_weighted_sums(codes.dictionary), np.uint64(0))
    return numbers[pc.fill_null(codes.indices, -1).to_numpy()]


def _weighted_sums(texts: Any) -> _Hashes:
    """Return the length of each text plus the sum of its bytes times factors of their places."""
    lengths = pc.binary_length(texts).to_numpy().astype(np.int64)
    data = np.frombuffer(joined(texts), np.uint8)
    found = lengths.astype(np.uint64)
    filled = np.flatnonzero(lengths)
    if not len(filled):
        return found
    ends = lengths.cumsum()
    places = np.arange(len(data)) - np.repeat(ends - lengths, lengths)
    factors = _factors(int(lengths.max()).bit_length())[places]
    terms = (data.astype(np.uint64) + np.uint64(1)) * factors
    found[filled] += np.add.reduceat(terms, (ends - lengths)[filled])
    return found


@lru_cache(maxsize=32)
def _factors(bits: int) -> _Hashes:
    """Return odd factors for the first ``2**bits`` places of a text."""
    return mixed(np.arange(1, (1 << bits) + 1, dtype=np.uint64)) | np.uint64(1)
