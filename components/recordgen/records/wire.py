"""Find features of a serialised ``tf.train.Example`` without parsing the others.

``feature_spans(record)["image/class/text"]`` → ``(52, 59)``: the span of the feature's message;
``feature_values(record, (52, 59))`` → ``[b"cat"]``. Other features, such as an image, are neither
parsed nor copied.
"""

from __future__ import annotations

import struct

from recordgen.records.example import parse_example, serialize_example

Span = tuple[int, int]

# Tags: (field number << 3) | wire type. In every message on the path to a value, the only or first
# field is a length-delimited field 1.
_FIELD_1 = 0x0A
_VALUE = 0x12
_BYTES, _FLOATS, _INTS = 0x0A, 0x12, 0x1A

# Lengths from this value on take more than one byte.
_LONG = 0x80

# A number has at most ten bytes with seven bits each; a length is below 2³¹ and has at most five.
_LAST_SHIFT = 63
_LAST_SHIFT_OF_SIZES = 28


def canonical(record: bytes) -> bytes:
    """Return the record, rewritten if :func:`feature_spans` cannot find its features.

    Raises:
        ValueError: the bytes are not an Example.
    """
    try:
        for span in feature_spans(record).values():
            feature_values(record, span)
    except (ValueError, IndexError):
        return b"".join(serialize_example(parse_example(record)))
    return record


def feature_spans(record: bytes) -> dict[str, Span]:
    """Return the span of each feature's message, by name, in the order of the record.

    Raises:
        ValueError, IndexError: the layout differs from the layout of all common writers, or the
            bytes are not an Example; see :func:`canonical`.
    """
    spans: dict[str, Span] = {}
    end = len(record)
    at = 0
    while at < end:
        at, stop = _open(record, at, end, _FIELD_1)
        while at < stop:
            # Short fields are opened inline: a call for each would take twice the time.
            if record[at] == _FIELD_1 and record[at + 1] < _LONG:
                entry_end = at + 2 + record[at + 1]
                at += 2
            else:
                at, entry_end = _open(record, at, stop, _FIELD_1)
            if record[at] == _FIELD_1 and record[at + 1] < _LONG:
                finish = at + 2 + record[at + 1]
                name = record[at + 2 : finish].decode("utf-8")
            else:
                start, finish = _open(record, at, entry_end, _FIELD_1)
                name = record[start:finish].decode("utf-8")
            if name in spans:
                raise ValueError("one name twice")
            if record[finish] == _VALUE and record[finish + 1] < _LONG:
                spans[name] = finish + 2, finish + 2 + record[finish + 1]
            else:
                spans[name] = _open(record, finish, entry_end, _VALUE)
            if spans[name][1] != entry_end:
                raise ValueError("more than a name and a value")
            at = entry_end
        if at != stop:
            raise ValueError("an entry is longer than its message")
    return spans


def feature_values(record: bytes, span: Span) -> list[bytes] | list[int] | list[float]:
    """Return the values of a feature.

    Raises:
        ValueError, IndexError: as :func:`feature_spans`.
    """
    start, end = span
    if start == end:
        return []
    kind = record[start]
    at, stop = _open(record, start, end, kind)
    if stop != end:
        raise ValueError("more than one list of values")
    if kind == _BYTES:
        found: list[bytes] = []
        while at < stop:
            first, at = _open(record, at, stop, _FIELD_1)
            found.append(record[first:at])
        return found
    if at == stop:
        return []
    first, last = _open(record, at, stop, _FIELD_1)  # numbers are packed
    if last != stop:
        raise ValueError("numbers in several pieces")
    if kind == _FLOATS and (last - first) % 4 == 0:
        return list(struct.unpack(f"<{(last - first) // 4}f", record[first:last]))
    if kind == _INTS:
        return _ints(record, first, last)
    raise ValueError(f"{last - first} bytes in the field {kind >> 3}")


def first_bytes(record: bytes, span: Span) -> tuple[int, int]:
    """Return the span of the first value of a bytes list. Raises: as :func:`feature_values`."""
    start, end = span
    at, stop = _open(record, start, end, _BYTES)
    return _open(record, at, stop, _FIELD_1)


def _open(record: bytes, at: int, end: int, tag: int) -> Span:
    """Return the span of the content of a length-delimited field that begins at ``at``."""
    if record[at] != tag:
        raise ValueError(f"byte {at} is not the tag {tag}")
    size = record[at + 1]
    at += 2
    if size >= _LONG:
        size &= 0x7F
        shift = 7
        while True:
            digit = record[at]
            at += 1
            size |= (digit & 0x7F) << shift
            if digit < _LONG:
                break
            shift += 7
            if shift > _LAST_SHIFT_OF_SIZES:
                raise ValueError(f"a length has too many digits, at byte {at}")
    if at + size > end:
        raise ValueError(f"a field is longer than its message, at byte {at}")
    return at, at + size


def _ints(record: bytes, at: int, end: int) -> list[int]:
    found: list[int] = []
    while at < end:
        value = shift = 0
        while True:
            digit = record[at]
            at += 1
            value |= (digit & 0x7F) << shift
            if digit < _LONG:
                break
            shift += 7
            if shift > _LAST_SHIFT:
                raise ValueError(f"a number has too many digits, at byte {at}")
        value &= (1 << 64) - 1
        found.append(value - (1 << 64) if value >> 63 else value)
    if at != end:
        raise ValueError("a number extends past its list")
    return found
