"""Read the header of a bitmap without decoding: a BMP, or the same inside an icon.

The image of an icon is chosen here, too: the icon's own header may have wrong sizes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from recordgen.errors import PayloadError
from recordgen.payloads.header import FileHeader
from recordgen.payloads.png import PNG_MAGIC, png_header
from recordgen.rejects import RejectCode

#: Bytes of a BMP in front of its bitmap.
BMP_BYTES = 14

# Compressions that Pillow decodes as browsers do; it misplaces pixels of run lengths.
_PLAIN, _BIT_FIELDS = 0, 3
_CORE_BYTES = 12  # size of the oldest header, with sides of 16 bits


class BitmapHeader(NamedTuple):
    """Facts from the header of a bitmap.

    Attributes:
        width: pixels.
        height: pixels, including the mask in an icon.
    """

    width: int
    height: int


def bitmap_header(data: bytes, at: int) -> BitmapHeader:
    """Read the header of a bitmap.

    Raises: PayloadError: Pillow decodes it wrongly. struct.error: the bytes end in it.
    """
    [size] = struct.unpack_from("<I", data, at)
    if size == _CORE_BYTES:
        return BitmapHeader(*struct.unpack_from("<HH", data, at + 4))
    width, height, bits, compression = struct.unpack_from("<II2xHI", data, at + 4)
    [colours] = struct.unpack_from("<I", data, at + 32)
    if height >> 24 == 0xFF:  # negative: rows from top to bottom
        height = (1 << 32) - height
    takes_bytes_for_bits = colours == 2 and 1 < bits <= 8
    if compression not in (_PLAIN, _BIT_FIELDS) or takes_bytes_for_bits:
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"a bitmap must be plain or have bit fields (got compression {compression}, {bits} "
            f"bits and {colours} colours); save it again, as PNG",
        )
    return BitmapHeader(width, height)


def is_plain_bmp(data: bytes) -> bool:
    """Return whether a BMP has 24 bits, no compression and a current header layout."""
    if len(data) < 34:
        return False
    start, header_bytes, width, height, _, bits, compression = struct.unpack_from(
        "<IIiiHHI", data, 10
    )
    # TensorFlow requires that the file ends with its last row; some programs add two bytes.
    ends_with_pixels = start + (width * 3 + 3) // 4 * 4 * abs(height) == len(data)
    return bool(header_bytes >= 40 and bits == 24 and compression == 0 and ends_with_pixels)


#: Most images of an icon. Programs store about ten.
MAX_IMAGES = 256

ICO_MAGIC = b"\0\0\1\0"
_COUNT = struct.Struct("<H")
_START = len(ICO_MAGIC) + _COUNT.size

# width, height, colours, reserved, planes, bits, bytes, offset
_ENTRY = struct.Struct("<BBBBHHII")


def icon_header(data: bytes) -> FileHeader:
    """Read the header of the image that Pillow decodes; drop all others.

    Raises:
        PayloadError: there are too many images, the icon's own header is cut, the image is a PNG
            with too many chunks, or it is a bitmap that costs too much.
    """
    [count] = _COUNT.unpack_from(data, len(ICO_MAGIC)) if len(data) >= _START else [0]
    if count > MAX_IMAGES:
        raise PayloadError(
            RejectCode.TOO_MANY_PARTS,
            f"an icon may have at most {MAX_IMAGES} images (got {count:,}); save it with one",
        )
    if not count or len(data) < _START + _ENTRY.size * count:
        raise PayloadError(RejectCode.TRUNCATED, "the icon ends in its header")
    # Of equal ones, the first: Python's order is stable, and so is Pillow's.
    entries = _ENTRY.iter_unpack(data[_START : _START + _ENTRY.size * count])
    *fields, size, at = min(entries, key=_preference)
    if data.startswith(PNG_MAGIC, at):
        png = png_header(data, at)
        width, height, body, size = png.width, png.height, png.data, len(png.data)
    else:
        body = data[at:]
        width, height = _bitmap_size(body)
    head = ICO_MAGIC + _COUNT.pack(1) + _ENTRY.pack(*fields, size, _START + _ENTRY.size)
    return FileHeader("ICO", width, height, head + body)


def _bitmap_size(data: bytes) -> tuple[int, int]:
    """Return width and height of a bitmap in an icon, whose height includes the mask."""
    try:
        bitmap = bitmap_header(data, 0)
    except struct.error:
        raise PayloadError(
            RejectCode.TRUNCATED, "the icon ends in the header of its bitmap"
        ) from None
    return bitmap.width, bitmap.height // 2


def _preference(entry: Sequence[int]) -> tuple[int, int]:
    """Return the key by which Pillow sorts: large images, then few colours, first."""
    across, down, colours, _, _, bits, *_ = entry
    depth = bits or (math.ceil(math.log2(colours)) if colours else 0) or 256
    return -(across or 256) * (down or 256), depth
