"""Change the segments of a JPEG; their lengths stay right."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.structures.parts import ODD, Change, Part, Parts, inserted, of_parts, with_byte


def _segments(data: bytes) -> Parts:
    """Return the segments; a scan's entropy-coded data belong to its header's body."""
    parts, at = [(data[:2], b"")], 2
    while at + 4 <= len(data):
        kind = data[at : at + 2]
        if kind == b"\xff\xd9":
            break
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if kind == b"\xff\xda":
            while end + 1 < len(data) and (
                data[end] != 0xFF or data[end + 1] == 0 or 0xD0 <= data[end + 1] <= 0xD7
            ):
                end += 1
        parts.append((kind, data[at + 4 : end]))
        at = end
    return [*parts, (b"\xff\xd9", b"")]


def _jpeg_of(parts: Sequence[Part]) -> bytes:
    return b"".join(_segment(kind, body) for kind, body in parts)


def _segment(kind: bytes, body: bytes) -> bytes:
    if kind in (b"\xff\xd8", b"\xff\xd9") and not body:
        return kind
    size = len(body) + 2
    if kind == b"\xff\xda":  # only the header counts: a number of components, two bytes for each
        size = min(size, 6 + 2 * body[0]) if body else size
    return kind + struct.pack(">H", size % (1 << 16)) + body


def _in_segment(markers: Sequence[int], places: Sequence[int], values: Sequence[int]) -> Change:
    """Return a change of a byte in a segment with one of these markers."""

    def apply(data: bytes, draw: random.Random) -> bytes:
        parts = _segments(data)
        found = [at for at, (kind, _) in enumerate(parts) if kind[1] in markers]
        if not found:
            return data
        at = draw.choice(found)
        kind, body = parts[at]
        place = draw.choice(places)
        if place >= len(body):
            return data
        body = with_byte(body, place, draw.choice(values))
        return _jpeg_of([*parts[:at], (kind, body), *parts[at + 1 :]])

    return apply


_FRAMES = [0xC0, 0xC1, 0xC2]


def _frame_kind(data: bytes, draw: random.Random) -> bytes:
    kinds = [0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF]
    return _jpeg_of(
        [
            (bytes([0xFF, draw.choice(kinds)]), body) if kind[1] in _FRAMES else (kind, body)
            for kind, body in _segments(data)
        ]
    )


def _fewer_components(data: bytes, draw: random.Random) -> bytes:
    """Give frame and scan another number of components."""
    count = draw.randint(1, 5)
    parts = []
    for kind, body in _segments(data):
        if kind[1] in _FRAMES:
            said = (body[6:] + bytes([7, 0x11, 0, 8, 0x11, 0, 9, 0x11, 0]))[: 3 * count]
            body = body[:5] + bytes([count]) + said
        elif kind == b"\xff\xda":
            size = 1 + 2 * body[0]
            said = (body[1:size] + bytes([7, 0, 8, 0, 9, 0]))[: 2 * count]
            body = bytes([count]) + said + body[size:]
        parts.append((kind, body))
    return _jpeg_of(parts)


def _new_segment(kind: int, body: Callable[[random.Random], bytes]) -> Change:
    return lambda data, draw: _jpeg_of(
        inserted(_segments(data), (bytes([0xFF, kind]), body(draw)), draw)
    )


def _in_scan(data: bytes, draw: random.Random, *, insert: Sequence[bytes]) -> bytes:
    start = data.rindex(b"\xff\xda") + 14
    at = draw.randint(min(start, len(data) - 2), len(data) - 2)
    return data[:at] + draw.choice(insert) + data[at:]


def _another_frame(_: bytes, draw: random.Random) -> bytes:
    """Return a JPEG in one colour with any frame header and a scan that fits it.

    All coefficients are zero. Both tables have a single code of one bit: 0.
    """
    count, form = draw.choice((1, 2, 3, 3, 3, 4)), draw.choice((0xC0, 0xC0, 0xC1, 0xC2, 0xC3))
    width, height = draw.choice((8, 17, 52)), draw.choice((8, 16, 40))
    ids = draw.choice((range(1, 5), range(4), b"RGBA"))
    sides = [(draw.choice((1, 1, 1, 2, 3, 4)), draw.choice((1, 1, 2, 4))) for _ in range(count)]
    across, down = (max(side) for side in zip(*sides, strict=True))
    table = bytes([1, *bytes(15), 0])
    unit = 1 if form == 0xC3 else 8  # lossless: single samples
    bits_of_unit = {0xC2: 1, 0xC3: 1}.get(form, 2)  # DC or difference only; else the end, too
    parts: Parts = [(b"\xff\xd8", b"")]
    if draw.random() < 0.5:
        transform = draw.choice(b"\0\1\2")
        parts.append((b"\xff\xee", b"Adobe\0\x64\0\0\0\0" + bytes([transform])))
    components = b"".join(
        bytes([name, h << 4 | v, 0]) for name, (h, v) in zip(ids, sides, strict=False)
    )
    parts += [
        (b"\xff\xdb", b"\0" + b"\1" * 64),
        (bytes([0xFF, form]), struct.pack(">BHHB", 8, height, width, count) + components),
        (b"\xff\xc4", b"\0" + table),
        (b"\xff\xc4", b"\x10" + table),
    ]
    for name, (h, v) in zip(ids, sides, strict=False):
        # A scan of one component has only the units of its own size (T.81, A.2.2).
        columns, rows = -(-width * h // across), -(-height * v // down)
        bits = -(-columns // unit) * -(-rows // unit) * bits_of_unit
        coded = ((1 << -bits % 8) - 1).to_bytes(-(-bits // 8), "big")
        last = {0xC2: b"\0\0\0", 0xC3: b"\1\0\0"}.get(form, b"\0\x3f\0")
        parts.append((b"\xff\xda", bytes([1, name, 0]) + last + coded))
    return _jpeg_of([*parts, (b"\xff\xd9", b"")])


#: name: change.
JPEG: Mapping[str, Change] = {
    **of_parts(_segments, _jpeg_of),
    "another frame": _another_frame,
    "coding process": _frame_kind,
    "number of components": _fewer_components,
    "frame precision": _in_segment(_FRAMES, [0], [1, 2, 7, 9, 12, 16]),
    "frame size": _in_segment(_FRAMES, [1, 2, 3, 4], ODD),
    "component ids": _in_segment(_FRAMES, [6, 9, 12, 15], [0, 1, 2, 3, 4, 82, 71, 66, 255]),
    "sampling": _in_segment(
        _FRAMES, [7, 10, 13, 16], [0, 0x11, 0x12, 0x21, 0x22, 0x13, 0x31, 0x23, 0x14, 0x41, 0x44]
    ),
    "table of a component": _in_segment(_FRAMES, [8, 11, 14], [0, 1, 2, 3, 4, 255]),
    "scan header": _in_segment([0xDA], range(10), [*range(8), 16, 17, 32, 63, 64, 240]),
    "scan parameters": _in_segment([0xDA], [3, 4, 5, 7, 8, 9], [0, 1, 2, 15, 16, 62, 63, 64]),
    "quantisation": _in_segment([0xDB], range(66), ODD),
    "Huffman table number": _in_segment([0xC4], [0], [0, 1, 2, 3, 4, 16, 17, 18, 19, 20, 32]),
    "Huffman codes": _in_segment([0xC4], range(1, 60), ODD),
    "restart interval": _new_segment(
        0xDD, lambda draw: draw.choice((b"\0\1", b"\0\7", b"\xff" * 2))
    ),
    "Adobe marker": _new_segment(
        0xEE, lambda draw: b"Adobe\0\x64\0\0\0\0" + draw.choice((b"\0", b"\1", b"\2", b"\3"))
    ),
    "JFIF marker": _new_segment(0xE0, lambda draw: b"JFIF\0" + draw.randbytes(9)),
    "number of lines": _new_segment(0xDC, lambda draw: draw.choice((b"\0\x28", b"\0\1", b"\1\0"))),
    "arithmetic conditioning": _new_segment(0xCC, lambda draw: draw.randbytes(2)),
    "application segment": _new_segment(0xE5, lambda draw: draw.randbytes(draw.randrange(40))),
    "reserved marker": _new_segment(0xF0, lambda draw: draw.randbytes(4)),
    "a second frame": lambda data, draw: _jpeg_of(
        inserted(
            _segments(data), draw.choice([p for p in _segments(data) if p[0][1] in _FRAMES]), draw
        )
    ),
    "a second file": lambda data, draw: data[: draw.choice((-2, len(data)))] + data,
    "restart markers": partial(_in_scan, insert=[b"\xff\xd0", b"\xff\xd3", b"\xff\xd7"]),
    "markers in the scan": partial(
        _in_scan, insert=[b"\xff\xd9", b"\xff\xd8", b"\xff\xc4\0\2", b"\xff\xfe\0\2", b"\xff\1"]
    ),
    "bytes in the scan": partial(_in_scan, insert=[b"\0", b"\xff\0", b"\xff\xff", bytes(9)]),
}
