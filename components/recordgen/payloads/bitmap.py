"""Decode bitmaps other than plain ones of 24 bits, as browsers do.

Pillow misplaces pixels after odd runs of 4 bits, takes bytes for bits if a palette has two colours,
and knows few layouts of bit fields. Formats: BITMAPCOREHEADER to BITMAPV5HEADER (Windows GDI).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from recordgen.errors import PayloadError
from recordgen.payloads.bmp import BMP_BYTES, bitmap_header
from recordgen.rejects import RejectCode

_PLAIN, _RLE8, _RLE4, _BIT_FIELDS, _ALPHA_BIT_FIELDS = 0, 1, 2, 3, 6

# Sizes of headers: the oldest one; the one of OS/2, whose compressions 3 and 4 are others; the
# usual one; the first with a mask for alpha.
_CORE_BYTES, _OS2_BYTES, _INFO_BYTES, _V3_BYTES = 12, 64, 40, 56
_HEADERS = (_CORE_BYTES, _INFO_BYTES, 52, _V3_BYTES, _OS2_BYTES, 108, 124)

# Depths of each compression.
_DEPTHS = {
    _PLAIN: (1, 2, 4, 8, 16, 24, 32),
    _RLE8: (8,),
    _RLE4: (4,),
    _BIT_FIELDS: (16, 24, 32),
    _ALPHA_BIT_FIELDS: (16, 32),
}

# Masks of red, green and blue without bit fields.
_MASKS = {16: (0x7C00, 0x3E0, 0x1F), 24: (0xFF0000, 0xFF00, 0xFF), 32: (0xFF0000, 0xFF00, 0xFF)}

# Rows whose bit fields are scaled at once: each pixel takes some 30 bytes meanwhile.
_ROWS = 256

_Pixels = Any  # a NumPy array


class _Bitmap(NamedTuple):
    """A bitmap whose header was read.

    Attributes:
        data: the file.
        header_bytes: size of its header.
        start: offset of its pixels.
        width: pixels.
        height: pixels.
        is_top_down: the first row is the top one.
        bits: depth of a pixel.
        compression: number of the scheme.
        colours: number of colours in its palette.
    """

    data: bytes
    header_bytes: int
    start: int
    width: int
    height: int
    is_top_down: bool
    bits: int
    compression: int
    colours: int


def bitmap_image(data: bytes) -> Image.Image:
    """Decode a BMP.

    Returns:
        An image of mode ``L``, ``P``, ``RGB`` or ``RGBA``.

    Raises: PayloadError: it is damaged or has an unknown layout.
    """
    try:
        bitmap = _parsed(data)
        pixels = _indexes(bitmap) if bitmap.bits <= 8 else _channels(bitmap)
    except (struct.error, IndexError):
        raise PayloadError(
            RejectCode.TRUNCATED, "the BMP does not decode to its end: it is truncated"
        ) from None
    if not bitmap.is_top_down:
        pixels = pixels[::-1]
    image = _coloured(bitmap, pixels) if bitmap.bits <= 8 else Image.fromarray(pixels)
    image.format = "BMP"
    return image


def _parsed(data: bytes) -> _Bitmap:
    start, header_bytes = struct.unpack_from("<II", data, BMP_BYTES - 4)
    is_core = header_bytes == _CORE_BYTES
    width, height, compression = bitmap_header(data, BMP_BYTES)
    is_top_down = not is_core and data[BMP_BYTES + 11] == 0xFF
    [bits] = struct.unpack_from("<H", data, BMP_BYTES + (10 if is_core else 14))
    [colours] = (0,) if is_core else struct.unpack_from("<I", data, BMP_BYTES + 32)
    is_known = header_bytes in _HEADERS and bits in _DEPTHS.get(compression, ())
    if not is_known or (header_bytes == _OS2_BYTES and compression > _RLE4):
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"the BMP has an unknown layout (header of {header_bytes} bytes, {bits} bits, "
            f"compression {compression}); save it again",
        )
    most = 1 << bits if bits <= 8 else 0
    colours = min(colours or most, 1 << 16)
    palette_end = BMP_BYTES + header_bytes + colours * (3 if is_core else 4)
    if bits <= 8 and start <= BMP_BYTES + header_bytes:  # not given
        start = palette_end
    return _Bitmap(
        data, header_bytes, start, width, height, is_top_down, bits, compression, min(colours, most)
    )


def _coloured(bitmap: _Bitmap, indexes: _Pixels) -> Image.Image:
    """Return a picture of indexes; those beyond the palette are black."""
    size = 3 if bitmap.header_bytes == _CORE_BYTES else 4
    at = BMP_BYTES + bitmap.header_bytes
    entries = np.frombuffer(bitmap.data[at : at + size * bitmap.colours], np.uint8)
    entries = entries[: len(entries) // size * size].reshape(-1, size)
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(entries)] = entries[:, 2::-1]
    if (palette == palette[:, :1]).all():
        return Image.fromarray(palette[:, 0][indexes])
    image = Image.fromarray(np.ascontiguousarray(indexes), "P")
    image.putpalette(palette.tobytes())
    return image


def _indexes(bitmap: _Bitmap) -> _Pixels:
    """Return uint8 [h, w], the rows as they are stored."""
    if bitmap.compression in (_RLE8, _RLE4):
        pixels = _of_runs(bitmap)
        return np.frombuffer(pixels, np.uint8).reshape(bitmap.height, bitmap.width)
    rows = _rows(bitmap)
    per_byte = 8 // bitmap.bits
    if per_byte == 1:
        return rows[:, : bitmap.width]
    found = np.empty((bitmap.height, rows.shape[1] * per_byte), np.uint8)
    for place in range(per_byte):
        shift = 8 - bitmap.bits * (place + 1)
        found[:, place::per_byte] = rows >> shift & (1 << bitmap.bits) - 1
    return found[:, : bitmap.width]


def _rows(bitmap: _Bitmap) -> _Pixels:
    """Return uint8 [h, bytes of a row]; the padding of the last row may be missing."""
    needed = -(-bitmap.width * bitmap.bits // 8)
    stride = -(-needed // 4) * 4
    stored = bitmap.data[bitmap.start : bitmap.start + stride * bitmap.height]
    missing = stride * bitmap.height - len(stored)
    if missing > stride - needed:
        raise IndexError
    if missing:
        stored += bytes(missing)
    return np.frombuffer(stored, np.uint8).reshape(bitmap.height, stride)


def _of_runs(bitmap: _Bitmap) -> bytearray:
    """Decode run lengths; pixels that no run names have index 0, and a run ends with its row."""
    data, at, width = bitmap.data, bitmap.start, bitmap.width
    is_half = bitmap.compression == _RLE4  # two pixels in a byte
    pixels = bytearray(width * bitmap.height)
    x = row = 0
    while row < bitmap.height:
        if at >= len(data) and row == bitmap.height - 1 and x >= width:
            break  # the end is not marked
        count, code = data[at], data[at + 1]
        at += 2
        if count:
            run = bytes((code >> 4, code & 15) if is_half else (code,)) * count
        elif code == 0:
            x, row = 0, row + 1
            continue
        elif code == 1:
            break
        elif code == 2:
            x, row = x + data[at], row + data[at + 1]
            at += 2
            continue
        else:
            count, size = code, -(-code // 2) if is_half else code
            run = data[at : at + size]
            if len(run) < size:
                raise IndexError
            if is_half:
                run = bytes(half for pair in run for half in (pair >> 4, pair & 15))
            at += size + size % 2
        if x >= width:
            raise PayloadError(RejectCode.CORRUPT, f"the BMP has a run behind row {row}")
        count = min(count, width - x)
        place = row * width + x
        pixels[place : place + count] = run[:count]
        x += count
    return pixels


def _channels(bitmap: _Bitmap) -> _Pixels:
    """Return uint8 [h, w, 3 or 4] of 16, 24 or 32 bits, the rows as they are stored."""
    masks = _masks(bitmap)
    rows = _rows(bitmap)
    found = np.empty((bitmap.height, bitmap.width, len(masks)), np.uint8)
    for top in range(0, bitmap.height, _ROWS):
        part = rows[top : top + _ROWS]
        if bitmap.bits == 24:
            blue, green, red = (part[:, place : bitmap.width * 3 : 3] for place in range(3))
            values = red.astype(np.uint64) << 16 | green.astype(np.uint64) << 8 | blue
        else:
            values = part.view("<u2" if bitmap.bits == 16 else "<u4").astype(np.uint64)
        for place, mask in enumerate(masks):
            most = mask // (mask & -mask) if mask else 1
            channel = (values[:, : bitmap.width] & mask) // max(1, mask & -mask)
            found[top : top + _ROWS, :, place] = (channel * 255 + most // 2) // most
    if len(masks) == 4 and not found[:, :, 3].any():
        return np.ascontiguousarray(found[:, :, :3])  # alpha was left out, as in browsers
    return found


def _masks(bitmap: _Bitmap) -> tuple[int, ...]:
    if bitmap.compression == _PLAIN:
        return _MASKS[bitmap.bits]
    has_alpha = bitmap.compression == _ALPHA_BIT_FIELDS or bitmap.header_bytes >= _V3_BYTES
    masks: tuple[int, ...] = struct.unpack_from(
        "<4I" if has_alpha else "<3I", bitmap.data, BMP_BYTES + _INFO_BYTES
    )
    if not any(masks[:3]):
        return _MASKS[bitmap.bits]
    return masks if masks[3:] != (0,) else masks[:3]
