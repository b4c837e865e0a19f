"""Read the chunks of a WEBP without decoding (RFC 9649)."""

from __future__ import annotations

from recordgen.errors import PayloadError
from recordgen.payloads.header import UPRIGHT, FileHeader, exif_orientation
from recordgen.rejects import RejectCode

#: Most chunks of a WEBP; each frame is one.
MAX_CHUNKS = 100_000

_HEADER_BYTES, _CHUNK_BYTES = 12, 8  # RIFF, size, WEBP; kind, size
_ANIMATED = 2  # a flag of VP8X


def is_webp(data: bytes) -> bool:
    """Return whether bytes start like a WEBP."""
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP"


def webp_header(data: bytes) -> FileHeader:
    """Follow the chunks to the end. Raises: PayloadError: there are too many chunks, or no size."""
    at = _HEADER_BYTES
    kind, body = data[at : at + 4], data[at + 8 : at + 18]
    if len(body) < 10:
        raise PayloadError(RejectCode.TRUNCATED, "the WEBP ends in its header")
    is_animated = kind == b"VP8X" and bool(body[0] & _ANIMATED)
    width, height = _size(kind, body)
    orientation: int | None = None
    for _ in range(MAX_CHUNKS):
        if at + _CHUNK_BYTES > len(data):
            turn = orientation or UPRIGHT
            return FileHeader("WEBP", width, height, data, turn, is_animated=is_animated)
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        end = at + _CHUNK_BYTES + size
        if data.startswith(b"EXIF", at) and orientation is None:
            orientation = exif_orientation(data[at + _CHUNK_BYTES : end])
        at = end + size % 2
    raise PayloadError(
        RejectCode.TOO_MANY_PARTS,
        f"a WEBP may have at most {MAX_CHUNKS:,} chunks, this one has more; save it again",
    )


def _size(kind: bytes, body: bytes) -> tuple[int, int]:
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
