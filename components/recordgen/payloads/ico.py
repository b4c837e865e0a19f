"""Choose the image of an icon without decoding: the icon's own header may have wrong sizes."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from recordgen.errors import PayloadError
from recordgen.payloads.bmp import bitmap_header
from recordgen.payloads.header import FileHeader
from recordgen.payloads.png import PNG_MAGIC, png_header
from recordgen.rejects import RejectCode

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
