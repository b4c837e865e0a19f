"""Read the header of a bitmap without decoding: a BMP, or the same inside an icon."""

from __future__ import annotations

import struct
from typing import NamedTuple

from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

#: Bytes of a BMP in front of its bitmap.
BMP_BYTES = 14

#: Widest bitmap in run lengths. One code may skip 255 rows, beyond the end, too; Pillow then makes
#: 255 times the width in bytes.
MAX_RUNS_WIDTH = 65_535

#: Compressions RLE8 and RLE4.
RUN_LENGTHS = (1, 2)
_CORE_BYTES = 12  # size of the oldest header, with sides of 16 bits


class BitmapHeader(NamedTuple):
    """Facts from the header of a bitmap.

    Attributes:
        width: pixels.
        height: pixels, including the mask in an icon.
        compression: number of the scheme; 0 for plain pixels.
    """

    width: int
    height: int
    compression: int = 0


def bitmap_header(data: bytes, at: int) -> BitmapHeader:
    """Read the header of a bitmap.

    Args:
        data: bytes that contain it.
        at: its offset.

    Raises:
        PayloadError: it has run lengths and is too wide.
        struct.error: the bytes end in it.
    """
    [size] = struct.unpack_from("<I", data, at)
    if size == _CORE_BYTES:
        return BitmapHeader(*struct.unpack_from("<HH", data, at + 4))
    width, height, compression = struct.unpack_from("<II4xI", data, at + 4)
    if height >> 24 == 0xFF:  # negative: rows from top to bottom
        height = (1 << 32) - height
    if compression in RUN_LENGTHS and width > MAX_RUNS_WIDTH:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"a bitmap in run lengths may be at most {MAX_RUNS_WIDTH:,} pixels wide (got "
            f"{width:,}); save it again without them",
        )
    return BitmapHeader(width, height, compression)


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
