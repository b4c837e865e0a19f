"""Change the structure of an image that is checked byte by byte: its chunks or segments.

Random bytes rarely get past a checksum or a length. These changes keep both right, so that decoders
see what an unusual or faulty encoder could have written: a second header, a palette after the
pixels, an unknown critical chunk. Images of other formats are decoded and stored as PNG.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

Change = Callable[[bytes, random.Random], bytes]

# A part of a file: its kind, and its body or all of its bytes.
Part = tuple[bytes, bytes]
Parts = list[Part]


def _repeat(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    return [*parts[: at + 1], parts[at], *parts[at + 1 :]]


def _repeat_elsewhere(parts: Parts, draw: random.Random) -> Parts:
    return inserted(parts, draw.choice(parts), draw)


def _drop(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    return parts[:at] + parts[at + 1 :]


def _move(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    return inserted(parts[:at] + parts[at + 1 :], parts[at], draw)


def _swap(parts: Parts, draw: random.Random) -> Parts:
    one, two = sorted(draw.choices(range(len(parts)), k=2))
    found = list(parts)
    found[one], found[two] = found[two], found[one]
    return found


def _in_body(parts: Parts, draw: random.Random) -> Parts:
    """Change one byte of one body."""
    at = draw.choice([at for at, (_, body) in enumerate(parts) if body] or [0])
    kind, body = parts[at]
    place = draw.randrange(max(1, min(len(body), 40)))
    return [*parts[:at], (kind, with_byte(body, place, draw.choice(ODD))), *parts[at + 1 :]]


def _shorter(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    kind, body = parts[at]
    return [*parts[:at], (kind, body[: draw.randrange(len(body) + 1)]), *parts[at + 1 :]]


def _longer(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    kind, body = parts[at]
    more = draw.randbytes(draw.randint(1, 9))
    return [*parts[:at], (kind, body + more), *parts[at + 1 :]]


#: name: a change of the list of chunks, segments or blocks.
OF_PARTS: Mapping[str, Callable[[Parts, random.Random], Parts]] = {
    "repeat a part": _repeat,
    "repeat a part elsewhere": _repeat_elsewhere,
    "drop a part": _drop,
    "move a part": _move,
    "swap parts": _swap,
    "a byte of a part": _in_body,
    "a shorter part": _shorter,
    "a longer part": _longer,
}

# Bytes at the limits of fields.
ODD = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 129, 240, 254, 255)


def inserted(parts: Parts, part: Part, draw: random.Random) -> Parts:
    at = draw.randint(0, len(parts))
    return [*parts[:at], part, *parts[at:]]


def with_byte(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


def of_parts(
    read: Callable[[bytes], Parts], write: Callable[[Sequence[Part]], bytes]
) -> Mapping[str, Change]:
    """Return the changes of any list of parts for one format."""

    def applied(change: Callable[[Parts, random.Random], Parts]) -> Change:
        return lambda data, draw: write(change(read(data), draw))

    return {name: applied(change) for name, change in OF_PARTS.items()}


# --- PNG: lengths and checksums stay right ---------------------------------------------------


MAGIC = b"\x89PNG\r\n\x1a\n"

# Chunks of the standard and its extensions, and a body that is valid in some images.
_ANCILLARY: Mapping[bytes, bytes] = {
    b"PLTE": bytes(range(48)),
    b"tRNS": b"\0\x05",
    b"gAMA": struct.pack(">I", 100_000),
    b"cHRM": struct.pack(">8I", *([30_000] * 8)),
    b"sRGB": b"\0",
    b"iCCP": b"p\0\0" + zlib.compress(bytes(200)),
    b"sBIT": b"\5",
    b"bKGD": b"\0\1",
    b"hIST": bytes(32),
    b"pHYs": bytes(9),
    b"tIME": bytes(7),
    b"tEXt": b"Comment\0text",
    b"zTXt": b"Comment\0\0" + zlib.compress(b"text"),
    b"iTXt": b"Comment\0\0\0\0\0text",
    b"sPLT": b"name\0\x08" + bytes(6),
    b"eXIf": b"MM\0*\0\0\0\x08\0\0",
    b"acTL": struct.pack(">II", 1, 0),
    b"fcTL": bytes(26),
    b"fdAT": bytes(9),
    b"oFFs": bytes(9),
    b"sCAL": b"\x011\x001",
    b"pCAL": bytes(20),
    b"cICP": b"\x01\x0d\0\1",
}


def _chunks(data: bytes) -> Parts:
    parts, at = [], len(MAGIC)
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        parts.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    return parts


def _png_of(parts: Sequence[Part]) -> bytes:
    return MAGIC + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


def _of_stream(change: Callable[[bytes, random.Random], bytes]) -> Change:
    """Return a change of the compressed pixel data, in a single chunk."""

    def apply(data: bytes, draw: random.Random) -> bytes:
        parts = _chunks(data)
        stream = b"".join(body for kind, body in parts if kind == b"IDAT")
        first = next(at for at, (kind, _) in enumerate(parts) if kind == b"IDAT")
        rest = [part for part in parts if part[0] != b"IDAT"]
        return _png_of([*rest[:first], (b"IDAT", change(stream, draw)), *rest[first:]])

    return apply


def _of_pixels(change: Callable[[bytes, random.Random], bytes]) -> Change:
    """Return a change of the pixel data before their compression."""
    return _of_stream(lambda stream, draw: zlib.compress(change(zlib.decompress(stream), draw)))


def _split_pixels(data: bytes, draw: random.Random, *, between: Sequence[Part]) -> bytes:
    parts = _chunks(data)
    at = next(at for at, (kind, _) in enumerate(parts) if kind == b"IDAT")
    body = parts[at][1]
    cut = draw.randint(0, len(body))
    halves = [(b"IDAT", body[:cut]), *between, (b"IDAT", body[cut:])]
    return _png_of([*parts[:at], *halves, *parts[at + 1 :]])


def _small_window(stream: bytes, draw: random.Random) -> bytes:
    """Announce a smaller window than the stream may use."""
    first = 8 | draw.randrange(8) << 4
    return bytes([first, 31 - first * 256 % 31]) + stream[2:]


def _dictionary(stream: bytes, draw: random.Random) -> bytes:
    first, flags = stream[0], 0x20
    return bytes([first, flags + 31 - (first * 256 + flags) % 31]) + draw.randbytes(4) + stream[2:]


def _known_chunk(data: bytes, draw: random.Random) -> bytes:
    kind = draw.choice(list(_ANCILLARY))
    return _png_of(inserted(_chunks(data), (kind, _ANCILLARY[kind]), draw))


def _known_chunk_of_noise(data: bytes, draw: random.Random) -> bytes:
    body = draw.randbytes(draw.choice((0, 1, 2, 3, 4, 6, 8, 9, 13, 26, 256, 768, 771)))
    return _png_of(inserted(_chunks(data), (draw.choice(list(_ANCILLARY)), body), draw))


def _unknown_chunk(data: bytes, draw: random.Random, *, first: bytes) -> bytes:
    kind = bytes([draw.choice(first), *draw.choices(b"abXYzQ", k=3)])
    return _png_of(inserted(_chunks(data), (kind, draw.randbytes(draw.randrange(9))), draw))


def _odd_name(data: bytes, draw: random.Random) -> bytes:
    kind = with_byte(b"teXt", draw.randrange(4), draw.choice(b"\0 09@[`{\x7f\xff"))
    return _png_of(inserted(_chunks(data), (kind, b""), draw))


def _png_header(data: bytes, draw: random.Random) -> bytes:
    parts = _chunks(data)
    body = with_byte(parts[0][1], draw.randrange(8, 13), draw.choice(range(18)))
    return _png_of([(b"IHDR", body), *parts[1:]])


def _png_size(data: bytes, draw: random.Random) -> bytes:
    parts = _chunks(data)
    sizes = list(struct.unpack_from(">II", parts[0][1]))
    sizes[draw.randrange(2)] = draw.choice((0, 1, 7, 41, 51, 53, 99, 1 << 20, 1 << 31))
    return _png_of([(b"IHDR", struct.pack(">II", *sizes) + parts[0][1][8:]), *parts[1:]])


def _filters(pixels: bytes, draw: random.Random) -> bytes:
    """Change a byte that may be a row's filter."""
    at = draw.choice((0, 1, 53, 157, 209, draw.randrange(len(pixels))))
    return with_byte(pixels, at % len(pixels), draw.choice((0, 1, 2, 3, 4, 5, 255)))


#: name: change.
PNG: Mapping[str, Change] = {
    **of_parts(_chunks, _png_of),
    "a known chunk": _known_chunk,
    "a known chunk of noise": _known_chunk_of_noise,
    "an unknown critical chunk": partial(_unknown_chunk, first=b"ABXYZ"),
    "an unknown ancillary chunk": partial(_unknown_chunk, first=b"abxyz"),
    "a chunk with an odd name": _odd_name,
    "header fields": _png_header,
    "size": _png_size,
    "pixels in two chunks": partial(_split_pixels, between=()),
    "an empty chunk of pixels": partial(_split_pixels, between=[(b"IDAT", b"")]),
    "a chunk between pixels": partial(_split_pixels, between=[(b"tEXt", b"Comment\0x")]),
    "the end between pixels": partial(_split_pixels, between=[(b"IEND", b"")]),
    "no checksum of pixels": _of_stream(lambda stream, draw: stream[: -draw.randint(1, 4)]),
    "a wrong checksum of pixels": _of_stream(
        lambda stream, draw: with_byte(
            stream, len(stream) - draw.randint(1, 4), draw.randrange(256)
        )
    ),
    "bytes behind the pixels": _of_stream(
        lambda stream, draw: stream + draw.randbytes(draw.randint(1, 9))
    ),
    "a small window": _of_stream(_small_window),
    "a preset dictionary": _of_stream(_dictionary),
    "a shorter stream": _of_stream(lambda stream, draw: stream[: draw.randrange(len(stream))]),
    "fewer pixels": _of_pixels(lambda pixels, draw: pixels[: -draw.randint(1, 200)]),
    "more pixels": _of_pixels(lambda pixels, draw: pixels + draw.randbytes(draw.randint(1, 200))),
    "filters": _of_pixels(_filters),
    "noise for pixels": _of_pixels(lambda pixels, draw: draw.randbytes(len(pixels))),
}


# --- JPEG: lengths of segments stay right ----------------------------------------------------


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

#: First bytes of each format, and its changes by name.
STRUCTURES: Sequence[tuple[bytes, Mapping[str, Change]]] = (
    (MAGIC, PNG),
    (b"\xff\xd8", JPEG),
)


def changes_of(data: bytes) -> Mapping[str, Change]:
    """Return the changes for the format of this image."""
    return next((changes for magic, changes in STRUCTURES if data.startswith(magic)), {})
