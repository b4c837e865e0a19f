"""Read the orientation from Exif, and nothing else (TIFF Revision 6.0, section 2; Exif 2.3, 4.6.4).

A general reader follows the offset of every tag. A thousand tags that name the same block of a
megabyte then take a gigabyte; this reader looks at the twelve bytes of each entry only.
"""

from __future__ import annotations

import struct

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
