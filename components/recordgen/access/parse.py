"""A serialised ``tf.train.Example`` → its values, as views of the record.

    {"image/encoded": [view], "image/class/label": int64 [1], "weight": float32 [1], "empty": ()}

It reads the layout that writers produce: fields in order, lists packed. Any other Example is left
to protobuf, with the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordgen.core.records.example import parse_sequence, varint

if TYPE_CHECKING:
    import numpy.typing as npt

#: The values of one feature: views of bytes, int64 [n], float32 [n]; or () without a kind.
Values: TypeAlias = "Sequence[memoryview] | npt.NDArray[np.int64] | npt.NDArray[np.float32]"

# Tags of the wire format: the number of the field, and that a length follows.
_FIRST, _SECOND, _THIRD = 0x0A, 0x12, 0x1A

# Names have a length of one byte.
_LONGEST_NAME = 127

# A varint of 64 bits has at most this many bytes.
_MAX_VARINT_BYTES = 10
_MASK = (1 << 64) - 1

# So few bytes of numbers are decoded faster without NumPy.
_FEW_BYTES = 24

# One small number, such as a label or a height, is the usual list.
_SMALL = [np.array([number]) for number in range(128)]
for _each in _SMALL:
    _each.flags.writeable = False


# Lengths below this have one or two bytes.
_LARGE = 1 << 14


class Steps(list[Any]):
    """The values of each step of a feature list of a SequenceExample."""


class _OtherLayoutError(ValueError):
    """An Example that other writers may produce, or no Example."""


def parse(
    data: bytes, wanted: Collection[str] | None = None, start: int = 0, stop: int | None = None
) -> dict[str, Values]:
    """Return the values of a record's features by name; only the ``wanted`` ones if given.

    The record lies in ``data``, from ``start`` up to ``stop``.

    Raises: ValueError: the bytes are not an Example.
    """
    end = len(data) if stop is None else stop
    try:
        return _parsed(data, start, end, wanted)
    except (_OtherLayoutError, IndexError, UnicodeDecodeError):
        return _by_protobuf(data[start:end], wanted)


def _parsed(data: bytes, at: int, end: int, wanted: Collection[str] | None) -> dict[str, Values]:
    found: dict[str, Values] = {}
    view = memoryview(data)
    if at < end:
        at = _within(data, at, end, _FIRST)
    while at < end:
        # A feature: its length, its name and its length, its kind and its length, its values.
        start, stop = _field(data, at, _FIRST)
        size = data[start + 1]
        at = start + 2 + size
        if data[start] != _FIRST or size > _LONGEST_NAME or at > stop or stop > end:
            raise _OtherLayoutError
        name = data[start + 2 : at].decode()
        if wanted is None or name in wanted:
            found[name] = _values(data, view, at, stop)
            if wanted is not None and len(found) == len(wanted):
                return found  # nobody needs the rest
        at = stop
    return found


def _values(data: bytes, view: memoryview, at: int, stop: int) -> Values:
    """Return the values in the bytes from the value of a map's entry to the entry's end."""
    if stop - at < _LARGE:  # others have sizes of their own
        heads, size = _heads(stop - at)
        if kind := heads.get(data[at : at + size]):
            part = view[at + size : stop]
            return [part] if kind == _FIRST else _numbers(part, kind)
    if at < stop:
        at = _within(data, at, stop, _SECOND)
    if at == stop:
        return ()
    kind = data[at]
    at = _within(data, at, stop, kind)
    if kind != _FIRST:
        if at < stop:
            at = _within(data, at, stop, _FIRST)
        return _numbers(view[at:stop], kind)
    found = []
    while at < stop:
        start, at = _field(data, at, _FIRST)
        found.append(view[start:at])
    if at != stop:
        raise _OtherLayoutError
    return found


@lru_cache(4096)
def _heads(size: int) -> tuple[Mapping[bytes, int], int]:
    """Return the kinds by the bytes before one value, or packed numbers, and how many these are.

    They take ``size`` bytes together. Nearly all features are such ones; the few sizes at which
    the lengths in these bytes have different widths are left to the caller.
    """
    head = 6 if size < 130 else 9
    value = bytes((_FIRST,)) + varint(size - head)
    inner = varint(size - head + len(value))
    outer = bytes((_SECOND,)) + varint(size - head + len(value) + 1 + len(inner))
    kinds = (_FIRST, _SECOND, _THIRD)
    return {outer + bytes((kind,)) + inner + value: kind for kind in kinds}, head


def _numbers(packed: memoryview, kind: int) -> npt.NDArray[Any]:
    if kind == _SECOND and len(packed) % 4 == 0:
        return np.frombuffer(packed, "<f4")
    if kind != _THIRD:
        raise _OtherLayoutError
    if len(packed) == 1 and packed[0] < 128:
        return _SMALL[packed[0]]
    return _integers(packed)


def _within(data: bytes, at: int, stop: int, tag: int) -> int:
    """Return where the value of a field begins, which must have ``tag`` and end at ``stop``."""
    start, end = _field(data, at, tag)
    if end != stop:
        raise _OtherLayoutError
    return start


def _field(data: bytes, at: int, tag: int) -> tuple[int, int]:
    """Return where the value of a field begins and ends; the field must have ``tag``."""
    if data[at] != tag:
        raise _OtherLayoutError
    size = data[at + 1]
    if size < 128:
        return at + 2, at + 2 + size
    size += (data[at + 2] - 1) << 7
    if data[at + 2] < 128:
        return at + 3, at + 3 + size
    at, size = at + 3, size & 0x3FFF
    for shift in range(14, 64, 7):
        byte = data[at]
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


def _by_protobuf(record: bytes, wanted: Collection[str] | None) -> dict[str, Values]:
    """Return the values as :func:`parse`; with nothing ``wanted`` also the :class:`Steps`."""
    features, lists = parse_sequence(record)
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
