"""Where a row goes: the hash that orders rows, and the one that assigns their split."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import NamedTuple


def row_name(uri: str, annotation: str | None) -> str:
    """Return what a row is placed by: its uri, or all that it says if it has none."""
    return uri or annotation or ""


class Place(NamedTuple):
    """Where a row falls: two independent 64-bit numbers.

    Attributes:
        order: position among all rows; decides the bucket, the shard, and the order inside it.
        draw: the ticket for the split lottery of rows that name no split.
    """

    order: int
    draw: int


_TWO_NUMBERS = struct.Struct(">QQ")


def seeded_hash(seed: int) -> hashlib.blake2b:
    """Return the hash whose copies, updated with a name, give the bytes of its place."""
    return hashlib.blake2b(digest_size=_TWO_NUMBERS.size, key=str(seed).encode())


def placing(seed: int) -> Callable[[str | bytes], Place]:
    """Return the function that hashes ``(seed, name)`` into a place.

    A place depends on nothing else: adding or removing other rows, the number of workers and the
    runner do not move a row.
    """
    seeded = seeded_hash(seed)

    def place(name: str | bytes) -> Place:
        hasher = seeded.copy()
        hasher.update(name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name)
        return Place._make(_TWO_NUMBERS.unpack(hasher.digest()))

    return place
