"""Read a JPEG's segments, before its decoder sees it (ITU-T T.81, B.1 and B.2).

Decoders size their buffers by the frame header but trust it: simplejpeg takes a lossless JPEG for
one that shrinks to 1/8, and writes the whole picture behind its buffer. So every JPEG passes
:func:`jpeg_header` before any decoder sees it. It follows the markers exactly as libjpeg does, and
refuses all frames except those that TensorFlow decodes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Set
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recordgen.errors import PayloadError
from recordgen.payloads.header import UPRIGHT, exif_orientation
from recordgen.rejects import RejectCode

#: Most scans of a JPEG. Encoders write about ten; a decoder visits every block for each scan.
MAX_SCANS = 100

#: Most segments before the first scan.
MAX_SEGMENTS = 10_000

# Most bytes of quantization tables before the first scan. Four of them take 516; Pillow copies the
# rest of a segment for each.
_MAX_TABLES_BYTES = 10_000

# Markers, table B.1
_START, _END, _START_OF_SCAN = 0xD8, 0xD9, 0xDA
_TABLES, _APP0, _APP1, _APP2, _APP14, _COMMENT = 0xDB, 0xE0, 0xE1, 0xE2, 0xEE, 0xFE
_BARE = frozenset((0x00, 0x01, *range(0xD0, 0xD8)))  # without a length: stuffed, TEM, restarts
_SIZED = frozenset(range(0xFF)) - _BARE - {_START, _END}
_DCT_FRAMES, _PROGRESSIVE = (0xC0, 0xC1, 0xC2), 0xC2

# Lossless, hierarchical and arithmetic coding; C8 is reserved for extensions, DE is their common
# header.
_OTHER_FRAMES = frozenset(range(0xC3, 0xD0)) - {0xC4, 0xCC} | {0xDE}

# The segments that :func:`jpeg_header` looks into: most others are tables of Huffman codes.
_READ = frozenset((_APP1, _APP2, *_OTHER_FRAMES, *_DCT_FRAMES, _TABLES, _START_OF_SCAN))

# A marker in two bytes, of which the first is 255, and the length.
_read_head = struct.Struct(">BBH").unpack_from

# Pillow reads these segments in front of the scan; no decoder needs them, except for a profile.
_METADATA = frozenset((*range(_APP0 + 1, 0xF0), _COMMENT)) - {_APP14}

#: Start of an APP2 segment with a part of an ICC profile (ICC.1:2022, B.4).
PROFILE = b"ICC_PROFILE\0"


class JpegHeader(NamedTuple):
    """Facts from the segments before a JPEG's first scan.

    Attributes:
        height: pixels, at least 1.
        width: pixels, at least 1.
        has_scans: more than one, so that all coefficients are kept in memory until the last.
        scan: offset of the first scan's marker.
        orientation: Exif orientation, 1 to 8.
        scans: upper bound of the number of scans, if they were counted.
    """

    height: int
    width: int
    has_scans: bool
    scan: int
    orientation: int = UPRIGHT
    has_profile: bool = False
    scans: int = 1


def jpeg_header(data: bytes) -> JpegHeader:
    """Follow the segments to the first scan, and count scans.

    Raises:
        PayloadError: TensorFlow does not decode the frame, or there are more segments or scans
            than encoders write.
    """
    header = _read_frame(data)
    if not header.has_scans:  # photos: decoders refuse another scan after one of all components
        return header
    scans = _count_scans(data, header.scan)
    # Count again: other segments may contain these bytes, such as the JPEG in an Exif block.
    if scans > MAX_SCANS and _scans_until_end(data, header.scan) > MAX_SCANS:
        raise _too_many("scans", MAX_SCANS)
    return header._replace(scans=min(scans, MAX_SCANS))


def _read_frame(data: bytes) -> JpegHeader:
    """Follow the segments to the first scan, and count no scans. Raises: PayloadError."""
    orientation: int | None = None
    frame: tuple[int, int, int, bytes] | None = None
    tables_bytes, has_profile = 0, False
    for kind, at, end in _segments(data, _READ):
        if kind == _TABLES:
            tables_bytes += end - at
            if tables_bytes > _MAX_TABLES_BYTES:
                raise _too_many("bytes of quantization tables", _MAX_TABLES_BYTES)
        elif kind in _DCT_FRAMES:
            if frame is not None:
                raise damaged("has several frame headers")
            frame = (kind, *_parsed_frame(data[at:end]))
        elif kind == _START_OF_SCAN:
            if frame is None:
                break
            form, height, width, ids = frame
            has_scans = _parsed_scan(data[at:end], ids) < len(ids) or form == _PROGRESSIVE
            turn = UPRIGHT if orientation is None else orientation
            return JpegHeader(height, width, has_scans, at - 4, turn, has_profile)
        elif kind == _APP1:
            # The first Exif segment counts, as in browsers.
            if orientation is None and data.startswith(b"Exif\0\0", at):
                orientation = exif_orientation(data[at:end])
        elif kind == _APP2:
            has_profile = has_profile or data.startswith(PROFILE, at)
        else:
            raise PayloadError(
                RejectCode.UNSUPPORTED_PIXELS,
                f"a JPEG must be baseline or progressive (got a frame of kind 0x{kind:02X}, with "
                f"lossless, hierarchical or arithmetic coding); save it again as an ordinary JPEG",
            )
    raise damaged("has no frame header before its first scan")


@lru_cache(1024)  # images of one size share their frame headers, and most share their scan headers
def _parsed_frame(body: bytes) -> tuple[int, int, bytes]:
    """Return height, width and the identifiers of the components of a frame header."""
    if len(body) < 6 or len(body) != 6 + 3 * body[5]:
        raise damaged("has a frame header of a wrong size")
    if body[0] != 8:
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"a JPEG must have 8 bits per channel (got {body[0]}); save it again with 8 bits",
        )
    height, width, count = struct.unpack_from(">HHB", body, 1)
    if not (height and width and count in (1, 3, 4)):
        raise damaged(f"has a frame of {width}×{height} pixels with {count} components")
    for sampling, table in zip(body[7::3], body[8::3], strict=True):
        if not (1 <= sampling >> 4 <= 4 and 1 <= sampling & 15 <= 4 and table <= 3):
            raise damaged("has an invalid component in its frame header")
    return height, width, body[6::3]


@lru_cache(1024)
def _parsed_scan(body: bytes, ids: bytes) -> int:
    """Return the number of components in a scan header, given the identifiers in the frame."""
    scanned = body[1:-3:2]
    if not 1 <= len(scanned) <= len(ids) or len(body) != 4 + 2 * body[0]:
        raise damaged("has a scan header of a wrong size")
    if not set(scanned) <= set(ids):
        raise damaged("has a scan of components that are not in its frame")
    return len(scanned)


def profile_in(data: bytes) -> bytes:
    """Return the ICC profile of a JPEG, whose parts may be in any order."""
    parts = [
        data[at + len(PROFILE) : end]  # its number, their number, its bytes
        for _, at, end in _segments(data, {_APP2})
        if data.startswith(PROFILE, at)
    ]
    return b"".join(part[2:] for part in sorted(parts, key=lambda part: part[:1]))


def _segments(data: bytes, kinds: Set[int]) -> Iterator[tuple[int, int, int]]:
    """Yield marker, start and end of the body of some segments, up to the first scan header."""
    if not data.startswith(b"\xff\xd8"):
        raise damaged("does not start with its marker")
    at, end = 2, len(data)
    for _ in range(MAX_SEGMENTS + 1):
        if at + 4 > end:
            raise _truncated()
        first, kind, size = _read_head(data, at)
        # As in libjpeg: other bytes may precede a marker, and any number of bytes 255.
        if first != 0xFF:
            at = data.find(b"\xff", at)
            if at < 0:
                raise _truncated()
        elif kind in _SIZED and size >= 2:
            after = at + 2 + size
            if after > end:
                raise _truncated()
            if kind in kinds:
                yield kind, at + 4, after
            if kind == _START_OF_SCAN:
                return
            at = after
        elif kind == 0xFF:
            at += 1
        elif kind in _BARE:
            at += 2
        else:
            raise damaged("has an invalid segment before its first scan")
    raise _too_many("segments before its first scan", MAX_SEGMENTS)


def without_metadata(data: bytes, *, profile: bool = True) -> bytes:
    """Return a JPEG without Exif, comments and other segments that no decoder needs.

    Pillow joins Exif segments one by one, follows all their tags and looks for further pictures.
    The frame was checked by :func:`jpeg_header`.
    """
    kept, at = list[bytes](), 0
    for kind, body, end in _segments(data, _METADATA):
        if kind != _APP2 or not (profile and data.startswith(PROFILE, body)):
            kept.append(data[at : body - 4])
            at = end
    return b"".join([*kept, data[at:]]) if at else data


def _count_scans(data: bytes, start: int) -> int:
    """Count the bytes of scan headers anywhere; bytes.count takes three times as long."""
    found = np.frombuffer(data, np.uint8)[start:]
    return int(np.count_nonzero((found[:-1] == 0xFF) & (found[1:] == _START_OF_SCAN)))


def _scans_until_end(data: bytes, at: int) -> int:
    """Count scans up to the end marker, or to one more than allowed."""
    scans = 0
    while scans <= MAX_SCANS and 0 <= at < len(data) - 3 and data[at + 1] != _END:
        kind = data[at + 1]
        scans += kind == _START_OF_SCAN
        # 0: the scan's own byte 255; D0 to D7: restart markers; 255: a fill byte
        if kind == 0 or 0xD0 <= kind <= 0xD7:
            at += 2
        elif kind == 0xFF:
            at += 1
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        at = data.find(b"\xff", at)
    return scans


def damaged(fault: str) -> PayloadError:
    """Return the refusal of a JPEG with a fault."""
    return PayloadError(RejectCode.CORRUPT, f"the JPEG does not decode to its end: it {fault}")


def _truncated() -> PayloadError:
    return PayloadError(
        RejectCode.TRUNCATED, "the JPEG does not decode to its end: it ends before its first scan"
    )


def _too_many(what: str, most: int) -> PayloadError:
    return PayloadError(
        RejectCode.TOO_MANY_PARTS,
        f"a JPEG may have at most {most:,} {what}, this one has more; save it again with an "
        f"ordinary encoder",
    )
