"""Find the frames of a GIF, and faults that Pillow accepts but TensorFlow's giflib does not.

Graphics Interchange Format, version 89a, sections 15 to 27.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from recordgen.errors import PayloadError
from recordgen.payloads.header import FileHeader
from recordgen.rejects import RejectCode

#: Most frames and extensions of a GIF.
MAX_BLOCKS = 100_000

_HEADER_BYTES = 13  # signature, version, logical screen descriptor
_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_CONTROL = 0xF9  # label of the extension with a frame's transparent colour

_HAS_PALETTE = 0x80

# Image descriptor, after its separator: left, top, width, height, flags
_DESCRIPTOR = struct.Struct("<HHHHB")


class GifFrame(NamedTuple):
    """A frame whose pixels are still compressed.

    Attributes:
        width: pixels, at least 1.
        height: pixels, at least 1.
        code_bits: LZW code size, 1..8.
        blocks: data sub-blocks, each with its length in front, without the empty last one.
    """

    width: int
    height: int
    code_bits: int
    blocks: bytes


class Gif(NamedTuple):
    """The parts of a GIF.

    Attributes:
        frames: in their order.
        is_usual: whether every decoder takes the first frame for the picture. TensorFlow returns a
            picture as large as the largest frame, loses its place at an extension without data, and
            uses the first of several graphic controls where others use the last.
    """

    frames: Sequence[GifFrame]
    is_usual: bool


def read_gif(data: bytes) -> Gif:
    """Follow all blocks to the trailer and return the frames.

    Raises:
        PayloadError: a block is of unknown kind, a frame has no pixels or an invalid code size,
            the first frame has no palette, the file ends before its trailer, or it has too many
            blocks.
    """
    frames: list[GifFrame] = []
    is_usual, controls = True, 0
    try:
        canvas = struct.unpack_from("<HH", data, 6)
        at = _HEADER_BYTES + _palette_bytes(data[10])
        for _ in range(MAX_BLOCKS + 1):
            if data[at] == _TRAILER:
                return Gif(frames, is_usual)
            if data[at] == _IMAGE:
                left, top, width, height, flags = _DESCRIPTOR.unpack_from(data, at + 1)
                if not frames:
                    is_usual = is_usual and (left, top, width, height) == (0, 0, *canvas)
                    if not (flags | data[10]) & _HAS_PALETTE:
                        raise PayloadError(
                            RejectCode.CORRUPT, "the GIF has no palette, so its colours are unknown"
                        )
                is_usual = is_usual and width <= canvas[0] and height <= canvas[1]
                start = at + 1 + _DESCRIPTOR.size + _palette_bytes(flags) + 1
                end = _end_of_blocks(data, start)
                frames.append(_frame(width, height, data[start - 1], data[start:end]))
            elif data[at] == _EXTENSION:
                end = _end_of_blocks(data, at + 2)  # after the introducer and a label
                controls += data[at + 1] == _CONTROL and not frames
                is_usual = is_usual and end > at + 2 and controls <= 1
            else:
                raise PayloadError(
                    RejectCode.CORRUPT,
                    f"the GIF has a block of unknown kind (0x{data[at]:02x} at byte {at})",
                )
            at = end + 1
    except (IndexError, struct.error):
        raise PayloadError(RejectCode.TRUNCATED, "the GIF ends before its trailer") from None
    raise _too_many()


def _frame(width: int, height: int, code_bits: int, blocks: bytes) -> GifFrame:
    if not (width and height and 1 <= code_bits <= 8):
        raise PayloadError(
            RejectCode.CORRUPT,
            f"the GIF has a frame of {width}×{height} pixels with codes of {code_bits} bits "
            f"(expected at least 1×1, and 1 to 8 bits)",
        )
    return GifFrame(width, height, code_bits, blocks)


def _end_of_blocks(data: bytes, at: int) -> int:
    """Return the offset of the empty block that ends a series of sub-blocks."""
    while data[at]:
        at += 1 + data[at]
    return at


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & _HAS_PALETTE else 0


def gif_header(data: bytes) -> FileHeader:
    """Read the header of a GIF's first frame; drop comments, and all frames after it.

    Pillow joins the sub-blocks of a comment one by one, which takes quadratic time.

    Raises:
        PayloadError: there is no frame, the file ends in it, or it has too many blocks before it.
    """
    control = b""
    try:
        width, height = struct.unpack_from("<HH", data, 6)
        at = screen = _HEADER_BYTES + _palette_bytes(data[10])
        for _ in range(MAX_BLOCKS):
            if data[at] != _EXTENSION:
                break
            if data[at + 1] == _CONTROL and data[at + 2] >= 4 and data[at + 3] & 1:
                # Only the transparent colour: how a frame is removed changes no pixel of it.
                control = b"\x21\xf9\4\1\0\0" + data[at + 6 : at + 7] + b"\0"
            at = _end_of_blocks(data, at + 2) + 1
        if data[at] == _EXTENSION:
            raise _too_many()
        if data[at] != _IMAGE:
            raise PayloadError(RejectCode.CORRUPT, "the GIF has no frame after its header")
        left, top, across, down, flags = _DESCRIPTOR.unpack_from(data, at + 1)
        end = _end_of_blocks(data, at + 1 + _DESCRIPTOR.size + _palette_bytes(flags) + 1)
    except (IndexError, struct.error):
        raise PayloadError(RejectCode.TRUNCATED, "the GIF ends before its trailer") from None
    still = b"".join([data[:screen], control, data[at : end + 1], b";"])
    return FileHeader("GIF", max(width, left + across), max(height, top + down), still)


def _too_many() -> PayloadError:
    return PayloadError(
        RejectCode.TOO_MANY_PARTS,
        f"a GIF may have at most {MAX_BLOCKS:,} frames and extensions, this one has more; store "
        f"it as a video",
    )
