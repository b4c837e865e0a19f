"""Read the chunks of a PNG, and find faults that Pillow accepts but TensorFlow's libpng does not.

Portable Network Graphics Specification (third edition), sections 10 and 11.2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from recordgen.errors import PayloadError
from recordgen.payloads.exif import UPRIGHT, exif_orientation
from recordgen.payloads.header import FileHeader
from recordgen.rejects import RejectCode

# Most chunks of a PNG: 1,000 and one more for each kilobyte. Encoders write 8 kB or more in each
# chunk, and Pillow is slow for every chunk.
_MAX_CHUNKS, _CHUNK_BYTES = 1000, 1000

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_SIGNATURE_BYTES = 8
_SIZE = struct.Struct(">II")
_IHDR = struct.Struct(">IIBBBBB")

# Ancillary chunks that say how pixels look (section 11.3), and their most bytes. libpng ignores
# longer ones, and all but the first.
_KEPT = {
    **dict.fromkeys((b"gAMA", b"cHRM", b"sRGB", b"cICP", b"sBIT"), 32),
    b"tRNS": 256,
    b"iCCP": 1 << 32,
}

# colour type: samples per pixel, allowed bit depths
_COLOUR_TYPES = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}

# Adam7: first column and row, column and row step of each pass
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
_PASSES = (((0, 0, 1, 1),), (*_ADAM7, (0, 1, 1, 2)))

_INFLATE_BYTES = 1 << 20


def png_header(data: bytes, start: int = 0) -> FileHeader:
    """Read the header of a PNG; drop texts, Exif, further frames, and repeated profiles.

    Pillow inflates each profile and text, and decodes neither frames nor texts to pixels.

    Args:
        data: bytes that contain a PNG.
        start: its offset; it may end before the bytes do.

    Raises:
        PayloadError: it has too many chunks, or does not start with its header.
    """
    at = kept_from = start + _SIGNATURE_BYTES
    if data[at + 4 : at + 8] != b"IHDR" or len(data) < at + 16:
        raise PayloadError(RejectCode.CORRUPT, "the PNG does not start with its header")
    width, height = _SIZE.unpack_from(data, at + 8)
    kept = [data[start:at]]
    orientation: int | None = None
    kind, left_bytes = b"", dict(_KEPT)
    left = most = _MAX_CHUNKS + (len(data) - start) // _CHUNK_BYTES
    while at < len(data) and kind != b"IEND":
        left -= 1
        if left < 0:
            raise PayloadError(
                RejectCode.TOO_MANY_PARTS,
                f"a PNG of {len(data) - start:,} bytes may have at most {most:,} chunks, this one "
                f"has more; save it again with larger ones",
            )
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + size
        if kind == b"eXIf" and orientation is None:
            orientation = exif_orientation(data[at + 8 : end - 4])
        if kind[:1].islower() and size > left_bytes.pop(kind, -1):
            kept.append(data[kept_from:at])
            kept_from = end
        at = end
    # A file that is not changed is not copied.
    is_whole = len(kept) == 1 and start == 0
    found = data if is_whole else b"".join([*kept, data[kept_from:at]])
    turn = UPRIGHT if orientation is None else orientation
    return FileHeader("PNG", width, height, found, turn)


def check_png(data: bytes) -> None:
    """Check all checksums, the header and the palette, and that pixel data reach the last row.

    Raises:
        PayloadError: a check fails.
    """
    chunks = list(_chunks(data))
    if not chunks or chunks[0][0] != b"IHDR" or len(chunks[0][1]) != _IHDR.size:
        raise PayloadError(RejectCode.CORRUPT, "the PNG does not start with its header")
    width, height, depth, colour, compression, filtering, interlace = _IHDR.unpack(chunks[0][1])
    samples, depths = _COLOUR_TYPES.get(colour, (0, ()))
    if depth not in depths or compression or filtering or interlace > 1:
        raise PayloadError(
            RejectCode.CORRUPT,
            f"the PNG header is invalid (colour type {colour}, bit depth {depth}, compression "
            f"{compression}, filter {filtering}, interlace {interlace})",
        )
    palettes = [len(body) for kind, body in chunks if kind == b"PLTE"]
    wrong = [size for size in palettes if size % 3 or not 0 < size <= 768]
    if wrong or (colour == 3 and len(palettes) != 1):
        raise PayloadError(RejectCode.CORRUPT, f"the PNG palette is invalid ({palettes} bytes)")
    expected = sum(
        rows * (1 + -(-columns * samples * depth // 8))
        for x, y, dx, dy in _PASSES[interlace]
        if (columns := -((x - width) // dx)) > 0 and (rows := -((y - height) // dy)) > 0
    )
    found = _inflated_bytes((body for kind, body in chunks if kind == b"IDAT"), expected)
    if found < expected:
        raise PayloadError(
            RejectCode.TRUNCATED,
            f"the PNG has {found} of {expected} bytes of pixel data",
        )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each chunk's kind and body, up to the end chunk."""
    at, kind = _SIGNATURE_BYTES, b""
    while kind != b"IEND":
        if at + 12 > len(data):
            raise PayloadError(RejectCode.TRUNCATED, "the PNG is truncated: it has no end chunk")
        (size,) = struct.unpack_from(">I", data, at)
        kind, body, end = data[at + 4 : at + 8], data[at + 8 : at + 8 + size], at + 8 + size
        if end + 4 > len(data):
            raise PayloadError(RejectCode.TRUNCATED, f"the PNG is truncated in its {kind!r} chunk")
        if zlib.crc32(body, zlib.crc32(kind)).to_bytes(4, "big") != data[end : end + 4]:
            raise PayloadError(RejectCode.CORRUPT, f"the PNG's {kind!r} chunk has a wrong checksum")
        yield kind, body
        at = end + 4


def _inflated_bytes(bodies: Iterator[bytes], enough: int) -> int:
    """Return the size of the inflated pixel data in bytes; counting ends at ``enough``."""
    stream = zlib.decompressobj()
    found = 0
    for body in bodies:
        waiting = body
        while waiting and found < enough and not stream.eof:
            try:
                found += len(stream.decompress(waiting, _INFLATE_BYTES))
            except zlib.error as exc:
                raise PayloadError(RejectCode.CORRUPT, f"the PNG does not inflate: {exc}") from exc
            waiting = stream.unconsumed_tail
    if found < enough and not stream.eof:
        found += len(stream.flush())
    return found
