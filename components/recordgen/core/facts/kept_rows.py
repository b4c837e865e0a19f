"""Selects the rows of a table that a shard keeps for checks: a sample, and rare values.

The launcher checks columns on a sample of rows. Rare values are hardly ever in a sample, so each
batch also keeps rows whose value is far from the others, or of another kind than nearly all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.records.numbers import DATE, NUMBER
from recordgen.core.rows.columns import mixed

#: Indices of rows or examples.
RowIndices: TypeAlias = "npt.NDArray[np.intp]"

# Arrow's stubs, where there are any, differ from version to version.
Values: TypeAlias = Any  # pa.Array of int64, float or string

#: Patterns of texts that are not words, by their name in messages.
KINDS = {"numbers": NUMBER, "dates": DATE}

# Rows kept per reason, column and batch.
_KEPT = 20

# A value is rare if at most this part of a batch has it.
_RARE = 0.01

# Values this many interquartile ranges from the quartiles of their batch are kept. The launcher
# has better quartiles, and requires a larger distance.
_FAR = 3.0

# This number of values shows whether a column consists of words.
_FIRST = 256


def odd_rows(columns: Iterable[Values]) -> RowIndices:
    """Return the rows of a batch to keep in addition to the sample; missing values are null."""
    found = [row for values in columns for row in _odd_rows(values)]
    return np.unique(np.concatenate([np.zeros(0, np.intp), *found]))


def _odd_rows(values: Values) -> Iterable[RowIndices]:
    if not len(values):
        return
    if not pa.types.is_string(values.type):
        numbers = floats(values)
        lowest, highest = fences(numbers[~np.isnan(numbers)], _FAR)
        for sign, is_far in ((-1, numbers < lowest), (1, numbers > highest)):
            far = np.flatnonzero(is_far)
            yield far[np.argsort(-sign * numbers[far], kind="stable")[:_KEPT]]
        if lowest < highest and not values.null_count:
            return
    first = values[0]
    other = (
        values.is_valid() if not first.is_valid else pc.fill_null(pc.not_equal(values, first), True)
    )
    others = np.flatnonzero(np.asarray(other))
    if len(others) <= _RARE * len(values):
        yield others[:_KEPT]
    elif len(others) >= (1 - _RARE) * len(values):
        yield np.zeros(1, np.intp)
    if pa.types.is_string(values.type):
        for pattern in KINDS.values():
            if np.mean(fits(values.slice(0, _FIRST), pattern)) > 0.5:
                misfits = np.flatnonzero(~fits(values, pattern))
                yield misfits[:_KEPT]


def sample_of(
    contents: npt.NDArray[np.uint64], is_there: npt.NDArray[np.bool_], count: int
) -> RowIndices:
    """Sample ``count`` of the rows that are there; only their contents decide which.

    Rows with equal contents are sampled independently of each other.
    """
    rows = np.flatnonzero(is_there)
    if len(rows) <= count:
        return rows
    order = np.argsort(contents[rows], kind="stable")
    ordered = contents[rows][order]
    starts = np.maximum.accumulate(
        np.where(np.append(True, ordered[1:] != ordered[:-1]), np.arange(len(ordered)), 0)
    )
    nth = (np.arange(len(ordered)) - starts).astype(np.uint64)  # among equal contents
    lots = mixed(ordered + mixed(nth + np.uint64(1)))
    return np.sort(rows[order[np.argpartition(lots, count)[:count]]])


def fits(values: Values, pattern: str) -> npt.NDArray[np.bool_]:
    """Return whether each text, stripped, matches a pattern; missing and empty texts do."""
    is_there = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(values), ""), False)
    return fits_one(values, pattern) | ~np.asarray(is_there, np.bool_)


def fits_one(values: Values, pattern: str) -> npt.NDArray[np.bool_]:
    """Return whether each text, stripped, matches a pattern; missing and empty texts do not."""
    found = pc.match_substring_regex(pc.utf8_trim_whitespace(values), pattern)
    return np.asarray(pc.fill_null(found, False), np.bool_)


def floats(values: Values) -> npt.NDArray[np.float64]:
    """Return numbers as floats, NaN for missing ones."""
    return values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def fences(numbers: npt.NDArray[np.float64], ranges: float) -> tuple[float, float]:
    """Return the limits beyond which numbers, none of them NaN, are far from the others.

    They lie ``ranges`` interquartile ranges from the quartiles; they are equal if half of the
    numbers or more are the same.
    """
    count = len(numbers)
    if not count:
        return 0.0, 0.0
    places = [count // 4, (count - 1) - count // 4]
    ordered = np.partition(numbers, sorted(set(places)))
    low, high = float(ordered[places[0]]), float(ordered[places[1]])
    margin = ranges * (high - low)
    return low - margin, high + margin
