"""What the header of an image file says, before anything is decoded; the orientation in Exif.

A general reader of Exif follows the offset of every tag. A thousand tags that name the same block
of a megabyte then take a gigabyte; this one looks at the twelve bytes of each entry only (TIFF
Revision 6.0, section 2; Exif 2.3, 4.6.4).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

#: The value of an upright picture.
UPRIGHT = 1

#: The tag of the orientation, its type (SHORT) and the number of its values.
ORIENTATION = (0x0112, 3, 1)

_PREFIX = b"Exif\0\0"
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}


def exif_orientation(block: bytes) -> int:
    """Return the orientation in an Exif block, 1 to 8; 1 if there is none that is valid.

    As in browsers, it must be a single SHORT; the first entry counts if there are several.

    Args:
        block: a TIFF structure, with or without ``Exif`` and two zeros in front.
    """
    block = block.removeprefix(_PREFIX)
    order = _ORDERS.get(block[:4])
    if order is None:
        return UPRIGHT
    entry = struct.Struct(order + "HHIHxx")
    try:
        [at] = struct.unpack_from(order + "I", block, 4)
        [count] = struct.unpack_from(order + "H", block, at)
        for start in range(at + 2, at + 2 + count * entry.size, entry.size):
            tag, kind, values, value = entry.unpack_from(block, start)
            if tag == ORIENTATION[0]:
                return valid_orientation(tag, kind, values, value)
    except struct.error:
        pass  # the directory is cut
    return UPRIGHT


def valid_orientation(tag: int, kind: int, count: int, value: int) -> int:
    """Return the value of an entry if it is a valid orientation, else 1."""
    is_valid = (tag, kind, count) == ORIENTATION and 1 <= value <= 8
    return value if is_valid else UPRIGHT


class FileHeader(NamedTuple):
    """The picture that Pillow decodes, and the bytes that Pillow gets.

    Attributes:
        format: Pillow's name of the format.
        width: pixels of the stored picture.
        height: pixels of the stored picture.
        data: the file without parts that cost much and change no pixel: texts, comments, Exif,
            further pictures.
        orientation: Exif orientation, 1 to 8.
        part_pixels: pixels of the largest strip or tile of a TIFF, which may exceed the picture.
        parts_pixels: pixels of all strips or tiles of a TIFF together, in all scans.
        frames: pictures in the file, of which this is the first; None if the format has only one.
        is_animated: a WEBP's header has the flag, even with a single frame.
        bits: of a sample, as far as Pillow decodes such files; 8 where no caller needs them.
        has_transparency: a PNG has an alpha channel or transparent colours.
    """

    format: str
    width: int
    height: int
    data: bytes
    orientation: int = UPRIGHT
    part_pixels: int = 0
    parts_pixels: int = 0
    frames: int | None = None
    is_animated: bool = False
    bits: int = 8
    has_transparency: bool = False

    @property
    def pixels(self) -> int:
        """The largest number of pixels that a decoder holds."""
        return max(self.width * self.height, self.part_pixels)

    @property
    def decoded_pixels(self) -> int:
        """The number of pixels that a decoder computes."""
        return max(self.width * self.height, self.parts_pixels)
