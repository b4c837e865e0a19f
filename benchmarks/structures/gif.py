"""Change the blocks of a GIF; their lengths stay right."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from benchmarks.structures.parts import ODD, Change, Part, Parts, inserted, of_parts, with_byte


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _end_of_blocks(data: bytes, at: int) -> int:
    while data[at]:
        at += 1 + data[at]
    return at + 1


def _blocks(data: bytes) -> Parts:
    """Return header, extensions, frames and trailer, each with all its bytes."""
    at = 13 + _palette_bytes(data[10])
    parts = [(b"head", data[:at])]
    while data[at] != 0x3B:
        start = at
        if data[at] == 0x2C:
            at = _end_of_blocks(data, at + 11 + _palette_bytes(data[at + 9]))
        else:
            at = _end_of_blocks(data, at + 2)
        parts.append((data[start : start + 1], data[start:at]))
    return [*parts, (b";", b";")]


def _gif_of(parts: Sequence[Part]) -> bytes:
    return b"".join(body for _, body in parts)


def _in_frame(places: Sequence[int], values: Sequence[int]) -> Change:
    """Return a change of a byte in a frame's descriptor."""

    def apply(data: bytes, draw: random.Random) -> bytes:
        parts = _blocks(data)
        at = draw.choice([at for at, (kind, _) in enumerate(parts) if kind == b"\x2c"])
        kind, body = parts[at]
        body = with_byte(body, draw.choice(places), draw.choice(values))
        return _gif_of([*parts[:at], (kind, body), *parts[at + 1 :]])

    return apply


def _no_palette(data: bytes, _: random.Random) -> bytes:
    return (
        data[:10]
        + bytes([data[10] & 0x7F])
        + data[13 - 2 : 13]
        + data[13 + _palette_bytes(data[10]) :]
    )


def _small_palette(data: bytes, draw: random.Random) -> bytes:
    size = draw.randrange(8)
    flags = data[10] & 0x78 | 0x80 | size
    palette = (data[13 : 13 + _palette_bytes(data[10])] + bytes(768))[: _palette_bytes(flags)]
    return (
        data[:10] + bytes([flags]) + data[11:13] + palette + data[13 + _palette_bytes(data[10]) :]
    )


def _own_palette(data: bytes, draw: random.Random) -> bytes:
    parts = _blocks(data)
    at = draw.choice([at for at, (kind, _) in enumerate(parts) if kind == b"\x2c"])
    body, size = parts[at][1], draw.randrange(8)
    if body[9] & 0x80:
        return data
    palette = draw.randbytes(_palette_bytes(0x80 | size))
    body = body[:9] + bytes([0x80 | size]) + palette + body[10:]
    return _gif_of([*parts[:at], (b"\x2c", body), *parts[at + 1 :]])


def _extension(body: Callable[[random.Random], bytes]) -> Change:
    return lambda data, draw: _gif_of(inserted(_blocks(data), (b"!", b"!" + body(draw)), draw))


def _of_codes(change: Callable[[bytes, random.Random], bytes]) -> Change:
    """Return a change of the first frame's codes, whose blocks are cut anew."""

    def apply(data: bytes, draw: random.Random) -> bytes:
        parts = _blocks(data)
        at = next(at for at, (kind, _) in enumerate(parts) if kind == b"\x2c")
        body = parts[at][1]
        start = 11 + _palette_bytes(body[9])
        stream, place = b"", start
        while body[place]:
            stream += body[place + 1 : place + 1 + body[place]]
            place += 1 + body[place]
        stream, size = change(stream, draw), draw.choice((1, 7, 254, 255))
        cut = [stream[place : place + size] for place in range(0, len(stream), size)]
        blocks = b"".join(bytes([len(part)]) + part for part in cut) + b"\0"
        return _gif_of([*parts[:at], (b"\x2c", body[:start] + blocks), *parts[at + 1 :]])

    return apply


#: name: change.
GIF: Mapping[str, Change] = {
    **of_parts(_blocks, _gif_of),
    "no palette": _no_palette,
    "palette of another size": _small_palette,
    "a frame's palette": _own_palette,
    "canvas": lambda data, draw: with_byte(data, draw.randrange(6, 10), draw.choice(ODD)),
    "screen": lambda data, draw: with_byte(data, draw.randrange(10, 13), draw.choice(ODD)),
    "version": lambda data, draw: with_byte(data, draw.randrange(3, 6), draw.choice(b"0789abz")),
    "place of a frame": _in_frame([1, 2, 3, 4], ODD),
    "size of a frame": _in_frame([5, 6, 7, 8], ODD),
    "flags of a frame": _in_frame([9], ODD),
    "code size": _in_frame([10], range(14)),
    "an extension without blocks": _extension(
        lambda draw: bytes([draw.choice((0xF9, 0xFE, 0xFF, 1, 0x77)), 0])
    ),
    "an extension": _extension(
        lambda draw: bytes([draw.choice((0xFE, 0xFF, 1, 0x77, 0)), 3]) + draw.randbytes(3) + b"\0"
    ),
    "graphic control": _extension(lambda draw: b"\xf9\4" + draw.randbytes(4) + b"\0"),
    "graphic control of another length": _extension(
        lambda draw: (
            b"\xf9" + bytes([count := draw.choice((1, 3, 5))]) + draw.randbytes(count) + b"\0"
        )
    ),
    "graphic control of two blocks": _extension(
        lambda draw: b"\xf9\4" + draw.randbytes(4) + b"\2ab\0"
    ),
    "blocks of codes": _of_codes(lambda stream, _: stream),
    "fewer codes": _of_codes(lambda stream, draw: stream[: draw.randrange(len(stream))]),
    "more codes": _of_codes(lambda stream, draw: stream + draw.randbytes(draw.randint(1, 300))),
    "codes": _of_codes(
        lambda stream, draw: with_byte(stream, draw.randrange(len(stream)), draw.choice(ODD))
    ),
    "no first code": _of_codes(lambda stream, _: bytes([stream[0] ^ 1]) + stream[1:]),
}
