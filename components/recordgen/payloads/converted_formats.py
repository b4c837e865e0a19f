"""Read the headers of GIF, ICO and WEBP, whose pictures are stored as PNGs.

Each function takes time and memory that grow with the file only, and leaves Pillow one picture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from recordgen.errors import PayloadError
from recordgen.payloads.header import UPRIGHT, FileHeader, exif_orientation
from recordgen.payloads.png import PNG_MAGIC, png_header
from recordgen.rejects import RejectCode

# --- GIF (version 89a, sections 15 to 27) ---------------------------------------------------------

_SCREEN_BYTES = 13  # signature, version, logical screen descriptor
_FRAME, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_CONTROL = 0xF9  # label of the extension with a frame's transparent colour
_HAS_PALETTE = 0x80
_DESCRIPTOR = struct.Struct("<xHHHHB")  # separator, left, top, width, height, flags


def gif_header(data: bytes) -> FileHeader:
    """Follow all blocks to the trailer; drop comments, and all frames but the first.

    Pillow joins the sub-blocks of a comment one by one, which takes quadratic time, and takes the
    bytes behind a frame that ends early for its pixels.

    Raises:
        PayloadError: a block is of unknown kind, the file ends before its trailer, or the first
            frame is missing or has no pixels.
    """
    control = frame = b""
    frames = 0
    try:
        width, height = struct.unpack_from("<HH", data, 6)
        at = screen = _SCREEN_BYTES + _palette_bytes(data[10])
        while (kind := data[at]) != _TRAILER:
            start = at
            if kind == _FRAME:
                at += _DESCRIPTOR.size
                at = _end_of_blocks(data, at + _palette_bytes(data[at - 1]) + 1)
                frame = frame or data[start:at]
                frames += 1
            elif kind == _EXTENSION:
                at = _end_of_blocks(data, at + 2)
                if data[start + 1] == _CONTROL and not frames:
                    control = data[start:at]
            else:
                raise PayloadError(
                    RejectCode.CORRUPT,
                    f"the GIF has a block of unknown kind (0x{kind:02x} at byte {at})",
                )
    except (IndexError, struct.error):
        raise PayloadError(RejectCode.TRUNCATED, "the GIF ends before its trailer") from None
    left, top, across, down, _ = _DESCRIPTOR.unpack(frame[: _DESCRIPTOR.size].ljust(10, b"\0"))
    if not (across and down):
        raise PayloadError(RejectCode.CORRUPT, "the GIF has no frame with pixels")
    still = b"".join([data[:screen], control, frame, b";"])
    size = max(width, left + across), max(height, top + down)
    return FileHeader("GIF", *size, still, frames=frames)


def _end_of_blocks(data: bytes, at: int) -> int:
    """Return the end of a series of sub-blocks, of which the last is empty."""
    while data[at]:
        at += 1 + data[at]
    return at + 1


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & _HAS_PALETTE else 0


# --- ICO ------------------------------------------------------------------------------------------

ICO_MAGIC = b"\0\0\1\0"
_ENTRY = struct.Struct("<BBBBHHII")  # width, height, colours, -, planes, bits, bytes, offset
_PLAIN = 0  # compression of a bitmap


def icon_header(data: bytes) -> FileHeader:
    """Read the header of the largest image of an icon; Pillow decodes it while it opens the file.

    A PNG takes the place of its icon, whose own header may have wrong sizes.

    Raises:
        PayloadError: the icon's header is cut, or the image is neither one that :func:`png_header`
            reads nor a plain bitmap of the size that the icon says.
    """
    count = int.from_bytes(data[4:6], "little")
    end = 6 + _ENTRY.size * count
    if not count or len(data) < end:
        raise PayloadError(RejectCode.TRUNCATED, "the icon ends in its header")
    # Of equal ones, the first: Python's order is stable, and so is Pillow's.
    width, height, *_, at = min(_ENTRY.iter_unpack(data[6:end]), key=_preference)
    body = data[at:]
    if body.startswith(PNG_MAGIC):
        return png_header(body)._replace(frames=None)
    width, height = width or 256, height or 256
    # A bitmap has the rows of its mask below its own.
    if struct.unpack_from("<ii4xI", body[4:20].ljust(16)) != (width, 2 * height, _PLAIN):
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"an icon must have a PNG, or a plain bitmap of {width}×{height} pixels as its header "
            f"says; save it again, as PNG",
        )
    return FileHeader("ICO", width, height, data)


def _preference(entry: Sequence[int]) -> tuple[int, int]:
    """Return the key by which Pillow sorts: large images, then few colours, first."""
    across, down, colours, _, _, bits, *_ = entry
    depth = bits or max(0, colours - 1).bit_length() or 256
    return -(across or 256) * (down or 256), depth


# --- WEBP (RFC 9649) ------------------------------------------------------------------------------

_RIFF_BYTES, _CHUNK_BYTES = 12, 8  # RIFF, size, WEBP; kind, size
_ANIMATED = 2  # a flag of VP8X


def is_webp(data: bytes) -> bool:
    """Return whether bytes start like a WEBP."""
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP"


def webp_header(data: bytes) -> FileHeader:
    """Follow the chunks to the end. Raises: PayloadError: the first one says no size."""
    kind, body = data[_RIFF_BYTES:][:4], data[_RIFF_BYTES + _CHUNK_BYTES :][:10]
    if len(body) < 10:
        raise PayloadError(RejectCode.TRUNCATED, "the WEBP ends in its header")
    size = _webp_size(kind, body)
    is_animated = kind == b"VP8X" and bool(body[0] & _ANIMATED)
    orientation, frames = None, 0
    for start, end in _webp_chunks(data):
        frames += data.startswith(b"ANMF", start)
        if data.startswith(b"EXIF", start) and orientation is None:
            orientation = exif_orientation(data[start + _CHUNK_BYTES : end])
    turn = orientation or UPRIGHT
    return FileHeader("WEBP", *size, data, turn, frames=max(1, frames), is_animated=is_animated)


def _webp_chunks(data: bytes) -> Iterator[tuple[int, int]]:
    at = _RIFF_BYTES
    while at + _CHUNK_BYTES <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        yield at, at + _CHUNK_BYTES + size
        at += _CHUNK_BYTES + size + size % 2


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int]:
    """Return width and height from the first bytes of the first chunk."""
    if kind == b"VP8X":  # 2.7: reserved, then sides minus one in 24 bits each
        width, height = (int.from_bytes(body[at : at + 3], "little") + 1 for at in (4, 7))
    elif kind == b"VP8L":  # 3.4: signature, then sides minus one in 14 bits each
        bits = int.from_bytes(body[1:5], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":  # RFC 6386, 9.1: tag, start code, then sides in 14 bits each
        width, height = (int.from_bytes(body[at : at + 2], "little") & 0x3FFF for at in (6, 8))
    else:
        raise PayloadError(RejectCode.CORRUPT, f"the WEBP starts with a chunk of kind {kind!r}")
    return width, height
