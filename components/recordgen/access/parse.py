"""A serialised ``tf.train.Example`` → its values, as views of the record.

    {"image/encoded": [view], "image/class/label": int64 [1], "weight": float32 [1], "empty": ()}

It reads the layout that writers produce: fields in order, lists packed. Any other Example is left
to protobuf, with the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordgen.core.records.example import parse_sequence

if TYPE_CHECKING:
    import numpy.typing as npt

#: The values of one feature: views of bytes, int64 [n], float32 [n]; or () without a kind.
Values: TypeAlias = "Sequence[memoryview] | npt.NDArray[np.int64] | npt.NDArray[np.float32]"

# Tags of the wire format: the number of the field, and that a length follows.
_FIRST, _SECOND, _THIRD = 0x0A, 0x12, 0x1A

# A varint of 64 bits has at most this many bytes.
_MAX_VARINT_BYTES = 10
_MASK = (1 << 64) - 1

# So few bytes of numbers are decoded faster without NumPy.
_FEW_BYTES = 24

# One small number, such as a label or a height, is the usual list.
_SMALL = [np.array([number]) for number in range(128)]
for _each in _SMALL:
    _each.flags.writeable = False


class Steps(list[Any]):
    """The values of each step of a feature list of a SequenceExample."""


class _OtherLayoutError(ValueError):
    """An Example that other writers may produce, or no Example."""


def parse(record: memoryview, wanted: Collection[str] | None = None) -> dict[str, Values]:
    """Return the values of a record's features by name; only the ``wanted`` ones if given.

    Raises: ValueError: the bytes are not an Example.
    """
    try:
        return _parsed(record, wanted)
    except (_OtherLayoutError, IndexError, UnicodeDecodeError):
        return _by_protobuf(record, wanted)


def _parsed(record: memoryview, wanted: Collection[str] | None) -> dict[str, Values]:
    found: dict[str, Values] = {}
    end = len(record)
    at = _within(record, 0, end, _FIRST) if end else 0
    while at < end:
        # A feature: its length, its name and its length, its kind and its length, its values.
        start, stop = _field(record, at, _FIRST)
        start, at = _field(record, start, _FIRST)
        name = str(record[start:at], "utf-8")
        if at > stop or stop > end:
            raise _OtherLayoutError
        if wanted is None or name in wanted:
            found[name] = _values(record, at, stop)
            if wanted is not None and len(found) == len(wanted):
                return found  # nobody needs the rest
        at = stop
    return found


def _values(record: memoryview, at: int, stop: int) -> Values:
    """Return the values in the bytes from the value of a map's entry to the entry's end."""
    if at < stop:
        at = _within(record, at, stop, _SECOND)
    if at == stop:
        return ()
    kind = record[at]
    at = _within(record, at, stop, kind)
    if kind == _FIRST:
        found = []
        while at < stop:
            start, at = _field(record, at, _FIRST)
            found.append(record[start:at])
        if at != stop:
            raise _OtherLayoutError
        return found
    if at < stop:
        at = _within(record, at, stop, _FIRST)
    if kind == _SECOND and (stop - at) % 4 == 0:
        return np.frombuffer(record[at:stop], "<f4")
    if kind != _THIRD:
        raise _OtherLayoutError
    if stop - at == 1 and record[at] < 128:
        return _SMALL[record[at]]
    return _integers(record[at:stop])


def _within(record: memoryview, at: int, stop: int, tag: int) -> int:
    """Return where the value of a field begins, which must have ``tag`` and end at ``stop``."""
    if record[at] == tag and record[at + 1] == stop - at - 2 < 128:
        return at + 2  # nearly always
    start, end = _field(record, at, tag)
    if end != stop:
        raise _OtherLayoutError
    return start


def _field(record: memoryview, at: int, tag: int) -> tuple[int, int]:
    """Return where the value of a field begins and ends; the field must have ``tag``."""
    if record[at] != tag:
        raise _OtherLayoutError
    size = record[at + 1]
    if size < 128:
        return at + 2, at + 2 + size
    size += (record[at + 2] - 1) << 7
    if record[at + 2] < 128:
        return at + 3, at + 3 + size
    at, size = at + 3, size & 0x3FFF
    for shift in range(14, 64, 7):
        byte = record[at]
        at += 1
        size |= (byte & 127) << shift
        if byte < 128:
            return at, at + size
    raise _OtherLayoutError


def _integers(packed: memoryview) -> npt.NDArray[np.int64]:
    """Return varints: seven bits of a number in each byte, the lowest ones first."""
    if len(packed) <= _FEW_BYTES:
        return np.array(list(_one_by_one(packed)), np.uint64).view(np.int64)
    parts = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(parts < 128)
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    if not len(ends) or ends[-1] != len(parts) - 1 or sizes.max() > _MAX_VARINT_BYTES:
        raise _OtherLayoutError
    places = np.arange(len(parts)) - np.repeat(starts, sizes)
    bits = (parts & 127).astype(np.uint64) << (7 * places).astype(np.uint64)
    return np.add.reduceat(bits, starts).view(np.int64)


def _one_by_one(packed: memoryview) -> Iterator[int]:
    value = shift = 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value & _MASK
            value = shift = 0
        elif shift == 7 * _MAX_VARINT_BYTES:
            raise _OtherLayoutError
    if shift:
        raise _OtherLayoutError


def _by_protobuf(record: memoryview, wanted: Collection[str] | None) -> dict[str, Values]:
    """Return the values as :func:`parse`; with nothing ``wanted`` also the :class:`Steps`."""
    features, lists = parse_sequence(bytes(record))
    for name in lists.keys() & (features if wanted is None else wanted):
        raise ValueError(
            f"{name!r} is a feature list of a SequenceExample; source[i] reads it if no feature "
            f"has its name"
        )
    steps = {n: Steps(map(_plain, it)) for n, it in lists.items() if wanted is None}
    return steps | {n: _plain(it) for n, it in features.items() if wanted is None or n in wanted}


def _plain(items: Sequence[Any]) -> Values:
    if not items:
        return ()
    if isinstance(items[0], bytes):
        return [memoryview(item) for item in items]
    dtype: Any = np.int64 if isinstance(items[0], int) else np.float32
    return np.array(items, dtype)
