"""Several payloads of one row as one: each behind its length, 8 bytes, little-endian."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_LENGTH = struct.Struct("<Q")


def join(payloads: Iterable[bytes]) -> bytes:
    """Return payloads as one, for :func:`split`."""
    return b"".join(part for data in payloads for part in (_LENGTH.pack(len(data)), data))


def split(joined: bytes) -> list[bytes]:
    """Return what :func:`join` was given."""
    found = []
    start = 0
    while start < len(joined):
        [length] = _LENGTH.unpack_from(joined, start)
        start += _LENGTH.size
        found.append(joined[start : start + length])
        start += length
    return found
