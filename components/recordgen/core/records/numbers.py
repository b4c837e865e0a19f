"""Numbers: their texts in tables, as programs and people write them, and as float32 stores them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

_EXPONENT = r"[eE](-[0-9]+|\+?0*([0-9]|[12][0-9]|3[0-7]))"

#: Numbers as programs write them, and keys of digits such as 007, for Arrow's regular expressions:
#: not +7 and -0, whose sign int64 cannot hold, nor exponents that float32 cannot hold.
NUMBER = rf"^(-?0*[1-9][0-9]*|0+|[+-]?([0-9]+{_EXPONENT}|([0-9]+\.[0-9]*|\.[0-9]+)({_EXPONENT})?))$"

#: Dates, with or without a time.
DATE = (
    r"^([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4})"
    r"([T ][0-9]{1,2}:.*)?$"
)

#: Texts in lower case that mean a missing value among numbers: pandas' ``na_values``, and the
#: markers of UCI, SAS and Stata, the World Bank, and dumps of databases.
MARKERS = frozenset(
    {"#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>"}
    | {"n/a", "na", "nan", "none", "null", "nat"}
    | {"?", "-", "--", ".", "..", r"\n"}
)

_DIGITS = r"[0-9]{1,3}([0-9]*|([,. '\x{2019}][0-9]{3})+)([.,][0-9]+)?"

#: Numbers as people write them, by the name of the form. They are not read: a comma may divide a
#: number from its fraction or its thousands.
FORMS: Mapping[str, str] = {
    "commas": (
        r"^[+-]?([0-9]*,[0-9]+|[0-9]{1,3}(\.[0-9]{3})+,[0-9]+|[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?)$"
    ),
    "divided thousands": (
        r"^[+-]?[0-9]{1,3}([ \x{a0}\x{202f}'\x{2019}_][0-9]{3})+([.,][0-9]+)?$"
        r"|^[+-]?[0-9]{1,3}(\.[0-9]{3}){2,}$"
    ),
    "percent signs": rf"^[+-]?{_DIGITS} ?%$",
    "currencies": (
        rf"^[+-]?\p{{Sc}} ?[+-]?{_DIGITS}$|^[+-]?{_DIGITS} ?\p{{Sc}}$"
        rf"|^\(\p{{Sc}}? ?{_DIGITS}\)$|^[A-Z]{{3}} {_DIGITS}$|^{_DIGITS} [A-Z]{{3}}$"
    ),
    "plus signs": r"^\+[0-9]{1,9}$",  # longer ones are telephone numbers
    "limits": rf"^[<>≤≥]=? ?[+-]?{_DIGITS}$",
    "infinities": r"^[+-]?(?i:inf|infinity|∞)$",
}

_FLOAT32 = struct.Struct("<f")


def is_marker(text: str) -> bool:
    """Return whether a text, without blanks around it, means a missing value among numbers."""
    return text.lower() in MARKERS


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
