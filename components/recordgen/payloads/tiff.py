"""Read a TIFF's directory without decoding (TIFF Revision 6.0, section 2; BigTIFF)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

#: Most strips or tiles of a TIFF: Pillow decodes them one by one.
MAX_STRIPS = 100_000

#: Compressions for whose damage libtiff only warns: fax codes, and JPEG.
LENIENT = (2, 3, 4, 6, 7)

#: Compressions with a JPEG in each strip or tile.
JPEGS = (6, 7)

_COMPRESSION, _STRIP_OFFSETS, _TILE_OFFSETS = 259, 273, 324

# magic: byte order, position and type of the directory's offset, type of the number of entries,
# types of an entry: tag, type, count, padding or the value of a small number
_LAYOUTS = {
    b"II*\0": ("<", 4, "I", "H", "HHIHH"),
    b"MM\0*": (">", 4, "I", "H", "HHIHH"),
    b"II+\0": ("<", 8, "Q", "Q", "HHQHHI"),
    b"MM\0+": (">", 8, "Q", "Q", "HHQHHI"),
}


class TiffHeader(NamedTuple):
    """Facts from the directory of a TIFF's first image.

    Attributes:
        compression: number of the scheme; 0 if it is not given or the file is not a TIFF.
        strips: number of strips or tiles.
    """

    compression: int
    strips: int


def tiff_header(data: bytes) -> TiffHeader:
    """Read the directory of the first image of a TIFF.

    Raises:
        PayloadError: it has too many strips or tiles.
    """
    compression = strips = 0
    layout = _LAYOUTS.get(data[:4])
    if layout is None:
        return TiffHeader(compression, strips)
    order, place, offset, number, entry = layout
    try:
        [at] = struct.unpack_from(order + offset, data, place)
        [entries] = struct.unpack_from(order + number, data, at)
        first = at + struct.calcsize(order + number)
        size = struct.calcsize(order + entry)
        for start in range(first, first + size * min(entries, 1 << 16), size):
            tag, _, count, value, *_ = struct.unpack_from(order + entry, data, start)
            if tag == _COMPRESSION:
                compression = value
            elif tag in (_STRIP_OFFSETS, _TILE_OFFSETS):
                strips = count
    except (struct.error, OverflowError):
        pass  # an offset is outside of the file: Pillow reports it
    if strips > MAX_STRIPS:
        raise PayloadError(
            RejectCode.TOO_MANY_PARTS,
            f"a TIFF may have at most {MAX_STRIPS:,} strips or tiles (got {strips:,}); save it "
            f"again with larger ones",
        )
    return TiffHeader(compression, strips)
