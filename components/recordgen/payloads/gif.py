"""What Pillow lets pass in a GIF and giflib, which TensorFlow uses, does not.

Graphics Interchange Format, version 89a, sections 15 to 27.
"""

from __future__ import annotations

from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

_HEADER_BYTES = 13  # signature, version, logical screen descriptor
_IMAGE_BYTES = 9  # an image descriptor behind its separator
_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B


def check_gif(data: bytes) -> None:
    """Follow all blocks to the trailer.

    Raises:
        PayloadError: a block is of no known kind, or the file ends before its trailer.
    """
    try:
        at = _HEADER_BYTES + _palette_bytes(data[10])
        while data[at] != _TRAILER:
            if data[at] == _IMAGE:
                # The descriptor's last byte tells of a palette; one byte, LZW's code size, follows.
                at += 1 + _IMAGE_BYTES + _palette_bytes(data[at + _IMAGE_BYTES]) + 1
            elif data[at] == _EXTENSION:
                at += 2  # the introducer and the extension's label
            else:
                raise PayloadError(
                    RejectCode.CORRUPT.value,
                    f"the GIF has a block of no known kind (0x{data[at]:02x} at byte {at})",
                )
            while data[at]:
                at += 1 + data[at]
            at += 1
    except IndexError:
        raise PayloadError(RejectCode.TRUNCATED.value, "the GIF ends before its trailer") from None


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0
