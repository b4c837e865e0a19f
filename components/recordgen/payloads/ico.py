"""List the images of an icon without decoding: the icon's own header may have wrong sizes."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

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

# width, height, colors, reserved, planes, bits, bytes, offset
_ENTRY = struct.Struct("<BBBBHHII")


class IconImage(NamedTuple):
    """An image in an icon.

    Attributes:
        width: pixels.
        height: pixels.
        entry: its fields in the icon's header.
    """

    width: int
    height: int
    entry: tuple[int, ...]


def icon_images(data: bytes) -> Sequence[IconImage]:
    """Return the images of an icon whose headers are present.

    Raises:
        PayloadError: there are too many images, or one is a bitmap that costs too much, or the
            icon's own header is cut.
    """
    [count] = _COUNT.unpack_from(data, len(ICO_MAGIC)) if len(data) >= _START else [0]
    if count > MAX_IMAGES:
        raise PayloadError(
            RejectCode.TOO_MANY_PARTS,
            f"an icon may have at most {MAX_IMAGES} images (got {count:,}); save it with one",
        )
    if not count or len(data) < _START + _ENTRY.size * count:
        raise PayloadError(RejectCode.TRUNCATED, "the icon ends in its header")
    entries = _ENTRY.iter_unpack(data[_START : _START + _ENTRY.size * count])
    return [IconImage(*_size(data, entry[-1]), entry) for entry in entries]


def _size(data: bytes, at: int) -> tuple[int, int]:
    """Return width and height of the image at an offset; 0 if its header is cut."""
    try:
        if data.startswith(PNG_MAGIC, at):
            width, height = struct.unpack_from(">II", data, at + 16)
            return width, height
        bitmap = bitmap_header(data, at)
        return bitmap.width, bitmap.height // 2  # the height includes the mask
    except struct.error:
        return 0, 0  # Pillow reports the fault if it decodes this image


def icon_header(data: bytes) -> FileHeader:
    """Read the header of the image that Pillow decodes; drop all others.

    Raises:
        PayloadError: as :func:`icon_images`, or the image is a PNG with too many chunks.
    """
    # Python's order is stable: the first one, like Pillow's.
    width, height, entry = min(icon_images(data), key=lambda image: _preference(image.entry))
    at = entry[-1]
    body = png_header(data, at).data if data.startswith(PNG_MAGIC, at) else data[at:]
    size = len(body) if body.startswith(PNG_MAGIC) else entry[-2]
    head = ICO_MAGIC + _COUNT.pack(1) + _ENTRY.pack(*entry[:-2], size, _START + _ENTRY.size)
    return FileHeader("ICO", width, height, head + body)


def _preference(entry: Sequence[int]) -> tuple[int, int]:
    """Return the key by which Pillow sorts: large images, then few colors, first."""
    across, down, colors, _, _, bits, *_ = entry
    depth = bits or (math.ceil(math.log2(colors)) if colors else 0) or 256
    return -(across or 256) * (down or 256), depth
