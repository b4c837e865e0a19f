"""List the images of an icon without decoding: the icon's own header may have wrong sizes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_MAGIC = b"\0\0\1\0"
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_ENTRY = struct.Struct("<BBBBHHII")


class IconImage(NamedTuple):
    """An image in an icon.

    Attributes:
        width: pixels.
        height: pixels.
        png: its bytes if it is a PNG, else empty.
    """

    width: int
    height: int
    png: bytes


def icon_images(data: bytes) -> list[IconImage] | None:
    """Return the images of an icon whose headers are present; None if it is not an icon."""
    return list(_images(data)) if data.startswith(_MAGIC) else None


def _images(data: bytes) -> Iterator[IconImage]:
    try:
        [count] = struct.unpack_from("<H", data, len(_MAGIC))
        for number in range(count):
            *_, size, at = _ENTRY.unpack_from(data, len(_MAGIC) + 2 + _ENTRY.size * number)
            if data.startswith(_PNG_MAGIC, at):
                width, height = struct.unpack_from(">II", data, at + 16)
                yield IconImage(width, height, data[at : at + size])
            else:  # a BMP; its height includes the mask
                width, height = struct.unpack_from("<ii", data, at + 4)
                yield IconImage(abs(width), abs(height) // 2, b"")
    except struct.error:
        return  # Pillow reports the fault
