"""Damage images of every kind and compare the check with the decoder that training uses.

    python -m benchmarks.mutants
    python -m benchmarks.mutants --each 120 --seed 7

A kind is an image (``group 4 tiff``) and a change: damage (``cut``), or another structure of the
same format (``a repeated part``). The table has the accepted and refused mutants of each kind, and
the false ones among them:

    false accept   the stored image does not decode in TensorFlow, or its size differs from the
                   record's
    false reject   refused, although the change is harmless by the format's standard
    same           refused, although TensorFlow decodes it to the pixels of the undamaged image: a
                   damage that this decoder ignores, such as a wrong checksum; not false

Equal arguments make equal mutants. The exit code is 1 if anything is false.
"""

from __future__ import annotations

import argparse
import io
import logging
import random
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from PIL import Image

from recordgen.conversion.api import payloads_of
from recordgen.core.image_settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.payloads.check import check_image
from recordgen.payloads.reencoding import CheckedImage

SIDE = (52, 40)


@dataclass
class Counts:
    """Results of the mutants of one kind."""

    accepted: int = 0
    refused: int = 0
    same: int = 0
    false_accepts: int = 0
    false_rejects: int = 0

    def add(self, other: Counts) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


# --- images -----------------------------------------------------------------------------------


def picture(seed: int = 0) -> Image.Image:
    """Return a smooth picture with some noise, so that every codec has work to do."""
    rough = Image.frombytes("RGB", (13, 10), random.Random(seed).randbytes(390))
    return rough.resize(SIDE, Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str, **settings: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **settings)
    return out.getvalue()


def images() -> Mapping[str, bytes]:
    """Return an image of each kind, by name."""
    photo, other = picture(), picture(1)
    gray, cmyk, palette = photo.convert("L"), photo.convert("CMYK"), photo.convert("P")
    fax = photo.convert("1")
    glass = photo.convert("RGBA")
    glass.putalpha(other.convert("L"))
    turned = Image.Exif()
    turned[0x0112] = 6
    deep = Image.frombytes("I;16", SIDE, random.Random(2).randbytes(2 * SIDE[0] * SIDE[1]))
    return {
        "jpeg": encoded(photo, "JPEG", quality=90),
        "jpeg 4:4:4": encoded(photo, "JPEG", quality=90, subsampling=0),
        "jpeg 4:2:2": encoded(photo, "JPEG", quality=90, subsampling=1),
        "rgb jpeg": encoded(photo, "JPEG", keep_rgb=True),
        "gray jpeg": encoded(gray, "JPEG"),
        "progressive jpeg": encoded(photo, "JPEG", progressive=True),
        "jpeg with restarts": encoded(photo, "JPEG", restart_marker_rows=1),
        "turned jpeg": encoded(photo, "JPEG", exif=turned),
        "cmyk jpeg": encoded(cmyk, "JPEG", quality=90),
        "progressive cmyk jpeg": encoded(cmyk, "JPEG", progressive=True),
        "png": encoded(photo, "PNG"),
        "gray png": encoded(gray, "PNG"),
        "palette png": encoded(palette, "PNG"),
        "2 bit palette png": encoded(photo.quantize(4), "PNG", bits=2),
        "transparent palette png": encoded(palette, "PNG", transparency=3),
        "1 bit png": encoded(fax, "PNG"),
        "transparent png": encoded(glass, "PNG"),
        "16 bit png": encoded(deep, "PNG"),
        "gray transparent png": encoded(glass.convert("LA"), "PNG"),
        "animated png": encoded(photo, "PNG", save_all=True, append_images=[other]),
        "gif": encoded(photo, "GIF"),
        "interlaced gif": encoded(photo, "GIF", interlace=1),
        "transparent gif": encoded(palette, "GIF", transparency=3),
        "gray gif": encoded(gray, "GIF", interlace=0),
        "animated gif": encoded(photo, "GIF", save_all=True, append_images=[other, photo]),
        "bmp": encoded(photo, "BMP"),
        "palette bmp": encoded(palette, "BMP"),
        "32 bit bmp": encoded(glass, "BMP"),
        "webp": encoded(photo, "WEBP"),
        "lossless webp": encoded(photo, "WEBP", lossless=True),
        "transparent webp": encoded(glass, "WEBP", lossless=True),
        "animated webp": encoded(photo, "WEBP", save_all=True, append_images=[other]),
        "tiff": encoded(photo, "TIFF"),
        "tiff of two pages": encoded(photo, "TIFF", save_all=True, append_images=[other]),
        "16 bit tiff": encoded(deep, "TIFF"),
        "lzw tiff": encoded(photo, "TIFF", compression="tiff_lzw"),
        "deflate tiff": encoded(photo, "TIFF", compression="tiff_adobe_deflate"),
        "group 4 tiff": encoded(fax, "TIFF", compression="group4"),
        "group 3 tiff": encoded(fax, "TIFF", compression="group3"),
        "jpeg tiff": encoded(photo, "TIFF", compression="jpeg"),
    }


# --- damage -----------------------------------------------------------------------------------


def _flip(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def _overwrite(data: bytes, draw: random.Random, *, fill: bytes | None = None) -> bytes:
    at, size = draw.randrange(len(data)), draw.randint(1, 32)
    some = draw.randbytes(size) if fill is None else fill * size
    return data[:at] + some[: len(data) - at] + data[at + size :]


def _header(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(2, min(64, len(data)))
    return data[:at] + draw.randbytes(1) + data[at + 1 :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + draw.randbytes(draw.randint(1, 8)) + data[at:]


def _delete(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + data[at + draw.randint(1, 8) :]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    at, size = draw.randrange(len(data)), draw.randint(4, 64)
    return data[: at + size] + data[at:]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(1, len(data))]


def _cut_end(data: bytes, draw: random.Random) -> bytes:
    return data[: -draw.randint(1, 4)]


#: name: a change that may damage an image.
DAMAGE: Mapping[str, Change] = {
    "flip a bit": _flip,
    "overwrite": _overwrite,
    "zeros": partial(_overwrite, fill=b"\0"),
    "ones": partial(_overwrite, fill=b"\xff"),
    "header": _header,
    "insert": _insert,
    "delete": _delete,
    "repeat": _repeat,
    "cut": _cut,
    "cut 1 to 4 bytes": _cut_end,
}


def _behind(data: bytes, draw: random.Random) -> bytes:
    return data + draw.randbytes(draw.randint(1, 9))


def _comment(data: bytes, draw: random.Random) -> bytes:
    """Insert a comment if the format allows comments, else change nothing."""
    text = draw.randbytes(draw.randint(1, 40)).hex().encode()
    if data.startswith(b"\xff\xd8"):
        return data[:2] + b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text + data[2:]
    if data.startswith(b"\x89PNG"):
        body = b"tEXtComment\0" + text
        chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
        return data[:33] + chunk + data[33:]
    if data.startswith(b"GIF8"):
        return data[:-1] + b"!\xfe" + bytes([len(text)]) + text + b"\0;"
    return data


#: name: a change that every decoder ignores.
HARMLESS: Mapping[str, Change] = {
    "as it is": lambda data, _: data,
    "bytes behind the end": _behind,
    "comment": _comment,
}


# --- structures -------------------------------------------------------------------------------
#
# Random bytes rarely get past a checksum or a length. These changes keep both right, so that
# decoders see what an unusual or faulty encoder could have written: a second header, a palette
# after the pixels, an unknown critical chunk. Other formats are decoded and stored as PNG.

Change = Callable[[bytes, random.Random], bytes]

# A part of a file: its kind, and its body or all of its bytes.
Part = tuple[bytes, bytes]
Parts = list[Part]


def _repeat_part(parts: Parts, draw: random.Random) -> Parts:
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
    "repeat a part": _repeat_part,
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


# --- the judge --------------------------------------------------------------------------------


def as_trained(data: bytes) -> Any:
    """Return the pixels as a trainer decodes them, uint8 [h, w, 3]; None if it fails."""
    import tensorflow as tf  # slow to load

    try:
        return tf.io.decode_image(data, channels=3, expand_animations=False).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def judged(
    mutants: Iterable[bytes], sound: bytes, settings: PayloadSettings, *, harmless: bool
) -> Counts:
    """Check mutants of an image and judge the results."""
    counts, pixels = Counts(), as_trained(sound)
    for data in mutants:
        try:
            stored: CheckedImage | None = check_image(data, settings)
        except PayloadError:
            stored = None
        if stored is not None:
            counts.accepted += 1
            found = as_trained(stored.data)
            shape = (stored.height, stored.width, 3)
            counts.false_accepts += found is None or found.shape != shape
            continue
        counts.refused += 1
        counts.false_rejects += harmless
        if pixels is not None and not harmless:
            found = as_trained(data)
            counts.same += (
                found is not None and found.shape == pixels.shape and bool((found == pixels).all())
            )
    return counts


def judge(each: int, seed: int, only: Sequence[str] = ()) -> Iterator[tuple[str, str, Counts]]:
    """Judge ``each`` mutants of every kind; yield the image, the change and the counts."""
    settings = payloads_of(ConvertOptions(lint=("-ALL",)))
    for name, data in images().items():
        if only and name not in only:
            continue
        for change, apply in {**DAMAGE, **changes_of(data), **HARMLESS}.items():
            harmless = change in HARMLESS
            draw = random.Random(f"{seed} {name} {change}")
            count = max(1, each // 20) if harmless else each
            mutants = (
                mutant for _ in range(count) if (mutant := apply(data, draw)) != data or harmless
            )
            yield name, change, judged(mutants, data, settings, harmless=harmless)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=80, metavar="N", help="mutants of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(images()), default=(), metavar="IMAGE")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # Pillow's warnings about metadata
    logging.disable()
    total, kinds = Counts(), 0
    print(f"{'image':<24}{'change':<34}{'accepted':>9}{'refused':>9}{'same':>6}  false")
    for name, change, counts in judge(args.each, args.seed, args.only):
        false = f"{counts.false_accepts} accepts, {counts.false_rejects} rejects"
        wrong = counts.false_accepts or counts.false_rejects
        print(
            f"{name:<24}{change:<34}{counts.accepted:>9}{counts.refused:>9}{counts.same:>6}  "
            f"{false if wrong else ''}",
            flush=True,
        )
        total.add(counts)
        kinds += 1
    print(
        f"{total.accepted + total.refused:,} mutants of {kinds} kinds: {total.accepted:,} "
        f"accepted, {total.refused:,} refused; false: {total.false_accepts} accepts, "
        f"{total.false_rejects} rejects"
    )
    return int(bool(total.false_accepts or total.false_rejects))


if __name__ == "__main__":
    sys.exit(main())
