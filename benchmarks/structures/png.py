"""Change the chunks of a PNG and its pixel data; lengths and checksums stay right."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.structures.parts import Change, Part, Parts, inserted, of_parts, with_byte

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
