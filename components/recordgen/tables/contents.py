"""A 64-bit hash of each row of a table, computed by columns.

Equal rows have equal hashes, other rows almost never. Rows are equal if their stored values are.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from recordgen.core.facts.minhash import mixed
from recordgen.core.rows.columns import joined

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
