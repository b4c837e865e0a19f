"""The place of a row: one hash orders the rows, another assigns their split."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import NamedTuple


def row_name(uri: str, annotation: str | None) -> str:
    """Return the name that decides the place of a row: its uri, or its annotation without one."""
    return uri or annotation or ""


class Place(NamedTuple):
    """The place of a row: two independent 64-bit numbers."""

    sort_key: int  # position among all rows; decides the bucket, the shard, and the order within it
    split_hash: int  # decides the split of rows that name none


_TWO_NUMBERS = struct.Struct(">QQ")


def seeded_hash(seed: int) -> hashlib.blake2b:
    """Return a hash object; a copy that is updated with a name has the name's place as digest."""
    return hashlib.blake2b(digest_size=_TWO_NUMBERS.size, key=str(seed).encode())


def placing(seed: int) -> Callable[[str | bytes], Place]:
    """Return the function that hashes ``(seed, name)`` into a place.

    A place depends only on these: other rows, the number of workers and the runner do not move a
    row.
    """
    seeded = seeded_hash(seed)

    def place(name: str | bytes) -> Place:
        hasher = seeded.copy()
        hasher.update(name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name)
        return Place._make(_TWO_NUMBERS.unpack(hasher.digest()))

    return place
