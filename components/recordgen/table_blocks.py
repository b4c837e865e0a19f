"""Many lines of a table at once: columns instead of rows, in Arrow's memory.

    lines of CSV ──parse──▶ a column of text each ──numbers──▶ numbers, or errors by row
    numbers and texts ──serialize_rows──▶ a tf.train.Example each

What comes out is, byte for byte, what :func:`recordgen.example.serialize_example` gives row by row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.columns import Column
from recordgen.example import feature_head, packed_int, whole_example
from recordgen.quoted import is_long, split_long

# Arrow's stubs, where there are any, differ from version to version.
Texts: TypeAlias = Any  # pa.StringArray
Values: TypeAlias = Any  # pa.Int64Array | pa.DoubleArray | pa.StringArray

#: Looked at together, at most; of the characters, one line more.
BLOCK_LINES = 20_000
BLOCK_CHARACTERS = 16 << 20

_NO_TEXT = pa.scalar(None, pa.string())
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


def parse(lines: Sequence[str], width: int, wanted: Sequence[int]) -> list[Texts]:
    """Return columns of text; an empty field is null.

    Args:
        lines: records of CSV, each of ``width`` fields; a quoted field may hold line breaks.
        width: the number of columns.
        wanted: the indices of the columns that are returned.
    """
    # Arrow's own reader of CSV takes over the signals of the process, and looks at all its objects.
    text = "\n".join(lines)
    if '"' in text:
        if any(map(is_long, lines)):
            rows = [split_long([line]) for line in lines]
        else:
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        columns = [pa.array([row[index] for row in rows], pa.string()) for index in wanted]
    else:
        fields = pc.split_pattern(pa.array(lines, pa.string()), ",").flatten()
        places = np.arange(len(lines)) * width
        columns = [fields.take(pa.array(places + index)) for index in wanted]
    return [pc.if_else(pc.equal(column, ""), _NO_TEXT, column) for column in columns]


def in_blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield lines, as many at a time as memory should hold as columns."""
    block: list[str] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if len(block) >= BLOCK_LINES or size >= BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def trimmed(texts: Texts) -> Texts:
    """Return texts without blanks around them; of those of nothing else, null."""
    stripped = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(stripped, ""), _NO_TEXT, stripped)


def whole_numbers(texts: Texts) -> Values | None:
    """Return trimmed texts as int64; None: one of them is not written as a program writes it.

    ``7`` and ``-7`` are; ``007``, ``+7``, ``0x7`` and what has more than 64 bits are not.
    """
    try:
        numbers = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return None
    same = pc.all(pc.equal(pc.cast(numbers, pa.string()), texts)).as_py()
    return None if same is False else numbers


def decimals(texts: Texts) -> Values | None:
    """Return trimmed texts as float64; None: one of them is not a finite number of float32."""
    try:
        numbers = pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Not a number is not in between.
    fits = pc.all(pc.less_equal(pc.abs(numbers), _MAX_FLOAT32)).as_py()
    return None if fits is False else numbers


def numbers(texts: Texts, column: Column, errors: dict[int, str]) -> Values:
    """Return the numbers of a column, null where there is none.

    Args:
        texts: as :func:`parse` gives them.
        column: says of which type they are.
        errors: gets what is wrong, by row.
    """
    stripped = trimmed(texts)
    found = (whole_numbers if column.dtype == "int64" else decimals)(stripped)
    if found is not None:
        return found
    values: list[int | float | None] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(column.number(text) if text is not None and text.strip() else None)
        except ValueError as exc:
            errors.setdefault(row, str(exc))
            values.append(None)
    return pa.array(values, pa.int64() if column.dtype == "int64" else pa.float64())


def serialize_rows(columns: Mapping[str, tuple[str, Values]], rows: int) -> list[bytes]:
    """Return an example for each row; a null has no feature.

    Args:
        columns: dtype and values [rows] by the feature's name.
        rows: how many there are.
    """
    features = [_features(name, *columns[name]) for name in sorted(columns)]
    joined = (
        pc.binary_join_element_wise(*features, pa.scalar(b"", pa.binary()))
        if features
        else pa.array([b""] * rows, pa.binary())
    )
    return [whole_example(item) for item in joined.to_pylist()]


def _features(name: str, dtype: str, values: Values) -> Any:
    """Return a column as serialised entries of ``Features``, b"" for nulls (binary [rows])."""
    if dtype == "float32":
        return _fixed(feature_head(name, dtype, 4), values)
    codes = values.dictionary_encode()
    if dtype == "int64":
        bodies = [packed_int(value) for value in codes.dictionary.to_pylist()]
    else:
        bodies = codes.dictionary.cast(pa.binary()).to_pylist()
    entries = [feature_head(name, dtype, len(body)) + body for body in bodies]
    found = pa.array(entries, pa.binary()).take(codes.indices)
    return pc.fill_null(found, b"") if found.null_count else found


def _fixed(head: bytes, values: Values) -> Any:
    """Return ``head`` and the float32 of each value, b"" for nulls (binary [rows])."""
    there = np.asarray(values.is_valid())
    present = values.drop_null().to_numpy(zero_copy_only=False).astype("<f4")
    data = np.empty((len(present), len(head) + 4), np.uint8)
    data[:, : len(head)] = np.frombuffer(head, np.uint8)
    data[:, len(head) :] = present.view(np.uint8).reshape(-1, 4)
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(there * (len(head) + 4), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)
