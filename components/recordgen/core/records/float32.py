"""Numbers as a float32 feature stores them."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

_FLOAT32 = struct.Struct("<f")


def as_float32(value: float) -> float:
    """Return the number with the fewest digits that has the same float32 as ``value``.

    0.10000000149011612 → 0.1

    Raises: OverflowError: ``value`` is too large for float32.
    """
    _FLOAT32.pack(value)
    return float(str(_float32()(value)))


def is_exact(value: int) -> bool:
    """Return whether float32 can hold a whole number of 64 bits.

    The lowest one cannot: readers let it stand for a missing number.
    """
    return _FLOAT32.unpack(_FLOAT32.pack(value))[0] == value != -(1 << 63)


@cache
def _float32() -> Any:
    """Return NumPy's float32, which the command does not need for its help."""
    import numpy as np

    return np.float32
