"""Lines of a table → examples, as Arrow columns instead of row by row.

    lines of CSV ──parse──▶ columns of text ──parse_column──▶ columns of values, and errors by row
    columns of values ──serialize_rows──▶ a tf.train.Example for each row

The bytes are those of :func:`recordgen.core.records.example.serialize_example` for each row.
"""

from __future__ import annotations

import io
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.records.example import example_head, feature_head, packed_ints
from recordgen.core.records.numbers import MARKERS
from recordgen.core.rows.columns import heads_by_size, joined, joined_by_row, mixed
from recordgen.tables.columns import Column, Table
from recordgen.tables.csv_fields import read_fields
from recordgen.tables.types import MAX_WEIGHT, Weight


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


# --- columns of Arrow ----------------------------------------------------------------------------


# Arrow's type stubs, if installed, differ from version to version.
Texts: TypeAlias = Any  # pa.StringArray
Values: TypeAlias = Any  # pa.Int64Array | pa.DoubleArray | pa.StringArray
Records: TypeAlias = Any  # pa.BinaryArray

_BLANK = ord(" ")  # the last blank in ASCII

_NO_TEXT = pa.scalar(None, pa.string())
_MARKERS = pa.array(sorted(MARKERS), pa.string())

# Fields without quotes, or with quotes that they do not need.
_FIELD = '(?:"(?:[^", ][^",]*)?"|[^",]*)'
_SIMPLE = f"^{_FIELD}(?:,{_FIELD})*$"

_FIRST_TEXTS = 32

# Smaller numbers round to a finite float32.
_BEYOND_FLOAT32 = 2.0**128 - 2.0**103


def parse(lines: Texts, width: int, wanted: Sequence[int]) -> list[Texts]:
    """Return the wanted columns of CSV records of ``width`` fields; an empty field is null.

    Quoted fields may contain line breaks.
    """
    if b'"' not in bytes(joined(lines)):
        columns = _split(lines, width, wanted)
    else:
        is_simple = pc.match_substring_regex(lines, _SIMPLE)
        simple = pc.replace_substring(lines.filter(is_simple), '"', "")
        parts = [
            _split(simple, width, wanted),
            _split_quoted(lines.filter(pc.invert(is_simple)).to_pylist(), wanted),
        ]
        # The new position of each line: simple lines come first.
        moved = np.argsort(np.argsort(~np.asarray(is_simple), kind="stable"), kind="stable")
        columns = [
            pa.concat_arrays(both).take(pa.array(moved)) for both in zip(*parts, strict=True)
        ]
    return list(map(_without_empty, columns))


def _without_empty(texts: Texts) -> Texts:
    """Return texts with null in place of empty texts."""
    if pc.min(pc.binary_length(texts)).as_py() != 0:
        return texts  # most columns have no empty texts, and checking the lengths is fast
    return pc.if_else(pc.equal(texts, ""), _NO_TEXT, texts)


def _split(lines: Texts, width: int, wanted: Sequence[int]) -> list[Texts]:
    # Arrow's own CSV reader replaces the signal handlers of the process and scans all its objects.
    # The fields before the first wanted one stay together: often, only the target is wanted.
    joint = max(min(wanted, default=0), 1)
    fields = pc.split_pattern(lines, ",", max_splits=width - joint, reverse=joint > 1).flatten()
    firsts = np.arange(len(lines)) * (width - joint + 1)
    columns = [fields.take(pa.array(firsts + index - joint + 1)) for index in wanted]
    if b", " in bytes(joined(lines)) or pc.any(pc.starts_with(lines, " ")).as_py():
        return [pc.utf8_ltrim(column, " ") for column in columns]
    return columns


def _split_quoted(lines: Sequence[str], wanted: Sequence[int]) -> list[Texts]:
    rows = list(read_fields(io.StringIO("\n".join(lines), newline="\n")))
    return [pa.array([row[index] for row in rows], pa.string()) for index in wanted]


def trimmed(texts: Texts) -> Texts:
    """Return texts without blanks around them; a text of blanks becomes null."""
    data = np.frombuffer(joined(texts), np.uint8)
    if data.min(initial=255) > _BLANK and data.max(initial=0) < 128:
        return _without_empty(texts)  # no blank of ASCII or Unicode
    return _without_empty(pc.utf8_trim_whitespace(texts))


def are_markers(texts: Texts) -> Any:
    """Return whether each trimmed text means a missing value among numbers; not null."""
    return pc.is_in(pc.utf8_lower(texts), _MARKERS)


def without_markers(texts: Texts) -> Texts:
    """Return trimmed texts with null in place of markers of missing numbers."""
    return pc.if_else(are_markers(texts), _NO_TEXT, texts)


def _cast(texts: Texts, kind: Any) -> Values | None:
    """Return texts as numbers, or None if one is none."""
    try:
        # A cast that fails makes an error of each text that is no number, so a few are tried first.
        pc.cast(texts.slice(0, _FIRST_TEXTS), kind)
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return None


def whole_numbers(texts: Texts) -> Values | None:
    """Return trimmed texts as int64, or None if one is not a whole number as programs write it.

    ``7`` and ``-7`` are such numbers; ``007``, ``+7``, ``0x7`` and more than 64 bits are not.
    """
    if (numbers := _cast(texts, pa.int64())) is None:
        return None
    same = pc.all(pc.equal(pc.cast(numbers, pa.string()), texts)).as_py()
    return None if same is False else numbers


def decimals(texts: Texts) -> Values | None:
    """Return trimmed texts as float64, or None if one is not a finite float32 number."""
    if (numbers := _cast(texts, pa.float64())) is None:
        return None
    # NaN also fails the comparison.
    fits = pc.all(pc.less(pc.abs(numbers), _BEYOND_FLOAT32)).as_py()
    return None if fits is False else numbers


def count_inexact(numbers: Values) -> int:
    """Return how many whole numbers float32 cannot hold; the lowest of 64 bits stands for none."""
    values = numbers.drop_null().to_numpy(zero_copy_only=False)
    if not len(values) or max(-int(values.min()), int(values.max())) <= 1 << 24:
        return 0
    rounded = values.astype(np.float32).astype(np.float64)
    is_beyond = rounded >= 2.0**63  # int64 cannot hold it
    is_lost = np.where(is_beyond, 0, rounded).astype(np.int64) != values
    return int(np.count_nonzero(is_beyond | is_lost | (values == np.iinfo(np.int64).min)))


def parse_column(texts: Texts, column: Column, errors: dict[int, str]) -> Values:
    """Return the values of a column, as :meth:`ColumnType.parse` returns them one by one.

    ``texts`` is a column from :func:`parse`; ``errors`` collects messages by row.
    """
    if column.dtype == "bytes":
        return texts
    to_numbers, bare = whole_numbers if column.dtype == "int64" else decimals, trimmed(texts)
    found = to_numbers(bare)
    if found is None:  # most columns have no markers, so they are not looked for first
        found = to_numbers(without_markers(bare))
    if found is not None and (column.type != Weight or _are_weights(found)):
        return found
    values: list[int | float | None] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(column.type.parse(text))
        except ValueError as exc:
            errors.setdefault(row, f"column {column.name!r} {exc}")
            values.append(None)
    return pa.array(values, pa.int64() if column.dtype == "int64" else pa.float64())


def _are_weights(numbers: Values) -> bool:
    is_weight = pc.and_(pc.greater_equal(numbers, 0), pc.less_equal(numbers, MAX_WEIGHT))
    return pc.all(is_weight).as_py() is not False


def serialize_rows(columns: Mapping[str, tuple[str, Values]], rows: int) -> Records:
    """Return an example for each row (binary [rows]); a null value has no feature.

    ``columns`` are dtype and values [rows] by name of the feature.
    """
    parts: list[Records] = []
    for name in sorted(columns):
        dtype, values = columns[name]
        bodies = _bodies(dtype, values)
        parts += [heads_by_size(bodies, partial(_head, name, dtype)), bodies]
    features = joined_by_row(parts) if parts else pa.array([b""] * rows, pa.binary())
    return joined_by_row([heads_by_size(features, example_head), features])


def _head(name: str, dtype: str, size: int) -> bytes:
    return feature_head(name, dtype, size) if size else b""


def _bodies(dtype: str, values: Values) -> Records:
    """Return values encoded as in features, and b"" for null: no value is empty (binary [rows])."""
    if dtype == "bytes":
        return pc.fill_null(values.cast(pa.binary()), b"")
    present = values.drop_null().to_numpy(zero_copy_only=False)
    sizes: Any = 4
    if dtype == "int64":
        data, sizes = packed_ints(present)
    else:
        data = present.astype("<f4").tobytes()
    ends = np.zeros(len(values) + 1, np.int64)
    ends[1:][np.asarray(values.is_valid())] = sizes
    buffers = [None, pa.py_buffer(ends.cumsum().astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)
