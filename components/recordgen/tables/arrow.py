"""Lines of a table → examples, as Arrow columns instead of row by row.

    lines of CSV ──parse──▶ columns of text ──parse_column──▶ columns of values, and errors by row
    columns of values ──serialize_rows──▶ a tf.train.Example for each row

The bytes are those of :func:`recordgen.core.records.example.serialize_example` for each row.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.records.example import example_head, feature_head, packed_ints
from recordgen.core.records.numbers import MARKERS
from recordgen.core.rows.columns import heads_by_size, joined, joined_by_row
from recordgen.tables.columns import Column
from recordgen.tables.csv_fields import read_fields
from recordgen.tables.types import MAX_WEIGHT, Weight

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
    fields = pc.split_pattern(lines, ",").flatten()
    places = np.arange(len(lines)) * width
    columns = [fields.take(pa.array(places + index)) for index in wanted]
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
