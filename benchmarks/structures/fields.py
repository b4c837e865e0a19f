"""Change header fields, tags and chunks of BMPs, TIFFs, WEBPs and icons."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence

from benchmarks.structures.parts import ODD, Change, Part, Parts, inserted, of_parts


def _at(places: Sequence[int], layout: str, values: Sequence[int]) -> Change:
    """Return a change of one number in a header."""

    def apply(data: bytes, draw: random.Random) -> bytes:
        place = draw.choice(places)
        if place + struct.calcsize(layout) > len(data):
            return data
        return (
            data[:place]
            + struct.pack(layout, draw.choice(values))
            + data[place + struct.calcsize(layout) :]
        )

    return apply


BMP: Mapping[str, Change] = {
    "file size": _at([2], "<I", [0, 1, 54, 1 << 20]),
    "start of pixels": _at([10], "<I", [0, 14, 26, 50, 54, 55, 58, 62, 1078, 1 << 20]),
    "header size": _at([14], "<I", [0, 12, 16, 40, 52, 56, 64, 108, 124, 125, 1 << 20]),
    "width": _at([18], "<i", [0, 1, -52, 51, 53, 1 << 20, -1]),
    "height": _at([22], "<i", [0, 1, -40, 39, 41, 1 << 20, -(1 << 31)]),
    "planes": _at([26], "<H", [0, 2, 24]),
    "bits": _at([28], "<H", [0, 1, 2, 4, 8, 15, 16, 24, 32, 48]),
    "compression": _at([30], "<I", [0, 1, 2, 3, 4, 5, 6, 11, 12]),
    "size of pixels": _at([34], "<I", [0, 1, 1 << 20]),
    "colours": _at([46, 50], "<I", [0, 1, 2, 255, 256, 257, 1 << 20]),
    "masks": _at([54, 58, 62, 66], "<I", [0, 0xFF, 0xFF00, 0x7C00, 0x3FF00000, 0xFFFFFFFF]),
    "run lengths": lambda data, draw: (
        data[:30] + struct.pack("<I", draw.choice((1, 2))) + data[34:54]
        + b"".join(
            bytes([draw.choice((0, 0, 3, 9, 255)), draw.choice((0, 1, 2, 3, 5, 8))])
            for _ in range(draw.randint(1, 200))
        )
    ),
}  # fmt: skip


def _tags(data: bytes) -> tuple[str, int, int]:
    """Return byte order, place of the first entry and number of entries of a TIFF."""
    order = "<" if data[:2] == b"II" else ">"
    [at] = struct.unpack_from(order + "I", data, 4)
    [count] = struct.unpack_from(order + "H", data, at)
    return order, at + 2, count


def _of_tag(offset: int, layout: str, values: Sequence[int]) -> Change:
    """Return a change of one field of one entry of a TIFF's directory."""

    def apply(data: bytes, draw: random.Random) -> bytes:
        order, first, count = _tags(data)
        place = first + 12 * draw.randrange(count) + offset
        part = struct.pack(order + layout, draw.choice(values))
        return data[:place] + part + data[place + len(part) :]

    return apply


TIFF: Mapping[str, Change] = {
    "tag": _of_tag(0, "H", [254, 255, 256, 257, 258, 259, 262, 266, 274, 277, 284, 317, 338, 339]),
    "type of a tag": _of_tag(2, "H", range(14)),
    "count of a tag": _of_tag(4, "I", [0, 1, 2, 3, 4, 5, 255, 1 << 20, (1 << 32) - 1]),
    "value of a tag": _of_tag(8, "H", [*range(10), 12, 16, 24, 32, 40, 52, 255, 32773, 32946]),
    "number of tags": lambda data, draw: _at(
        [_tags(data)[1] - 2], _tags(data)[0] + "H", [0, 1, 5, 9, 11, 99, 65535]
    )(data, draw),
    "next directory": lambda data, draw: _at(
        [_tags(data)[1] + 12 * _tags(data)[2]],
        _tags(data)[0] + "I",
        [0, 1, 4, 8, _tags(data)[1] - 2],
    )(data, draw),
    "start of the directory": _at([4], "<I", [0, 4, 8, 9, 1 << 20]),
}


def _riff(data: bytes) -> Parts:
    parts, at = [], 12
    while at + 8 <= len(data):
        [size] = struct.unpack_from("<I", data, at + 4)
        parts.append((data[at : at + 4], data[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return parts


def _webp_of(parts: Sequence[Part]) -> bytes:
    body = b"WEBP" + b"".join(
        kind + struct.pack("<I", len(part)) + part + bytes(len(part) % 2) for kind, part in parts
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


#: name: change.
WEBP: Mapping[str, Change] = {
    **of_parts(_riff, _webp_of),
    "a chunk": lambda data, draw: _webp_of(
        inserted(
            _riff(data),
            (
                draw.choice((b"VP8 ", b"VP8X", b"ALPH", b"ANIM", b"EXIF", b"none")),
                draw.randbytes(10),
            ),
            draw,
        )
    ),
    "size of the file": _at([4], "<I", [0, 4, 8, 1 << 20, (1 << 32) - 1]),
}

ICO: Mapping[str, Change] = {
    "number of images": _at([4], "<H", [0, 1, 2, 9, 65535]),
    "kind of icon": _at([2], "<H", [0, 2, 3]),
    "entry": _at(range(6, 14), "<B", ODD),
    "size of an image": _at([14], "<I", [0, 1, 40, 99, 1 << 20]),
    "place of an image": _at([18], "<I", [0, 6, 21, 23, 1 << 20]),
}
