"""Read a JPEG's segments without decoding (ITU-T T.81, B.1 and B.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

#: Most scans of a JPEG. Encoders write about ten; a decoder visits every block for each scan.
MAX_SCANS = 100

#: Most segments before the first scan.
MAX_SEGMENTS = 10_000

# Markers, table B.1
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = (0xC2, 0xCA)
_END, _START_OF_SCAN, _APP1 = 0xD9, 0xDA, 0xE1


class JpegHeader(NamedTuple):
    """Facts from the segments before a JPEG's first scan.

    Attributes:
        has_exif: there is an Exif segment.
        is_progressive: all coefficients are kept in memory until the last scan is read.
        scans: upper bound of the number of scans.
    """

    has_exif: bool
    is_progressive: bool
    scans: int


def jpeg_header(data: bytes) -> JpegHeader:
    """Follow the segments to the first scan, and count scans.

    Raises:
        PayloadError: there are more segments or scans than encoders write.
    """
    has_exif = is_progressive = False
    at, components, end = 2, 0, len(data) - 10
    for _ in range(MAX_SEGMENTS + 1):
        if at > end or data[at] != 0xFF or (kind := data[at + 1]) == _START_OF_SCAN:
            break
        if kind == _APP1:
            has_exif = has_exif or data.startswith(b"Exif\0\0", at + 4)
        elif kind in _FRAMES:
            is_progressive, components = kind in _PROGRESSIVE, data[at + 9]
        at += 1 if kind == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    else:
        raise _too_many("segments before its first scan", MAX_SEGMENTS)
    has_one_scan = not is_progressive and at + 4 < len(data) and data[at + 4] >= components
    # Photos need no count: decoders refuse another scan after a scan of all components.
    scans = 1 if has_one_scan else _count_markers(data, at, _START_OF_SCAN)
    # Count again: other segments may contain these bytes, such as the JPEG in an Exif block.
    if scans > MAX_SCANS and _scans_until_end(data, at) > MAX_SCANS:
        raise _too_many("scans", MAX_SCANS)
    return JpegHeader(has_exif, is_progressive, min(scans, MAX_SCANS))


def _count_markers(data: bytes, start: int, marker: int) -> int:
    """Count a marker's two bytes anywhere; bytes.count takes three times as long."""
    found = np.frombuffer(data, np.uint8)[start:]
    return int(np.count_nonzero((found[:-1] == 0xFF) & (found[1:] == marker)))


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


def _too_many(what: str, most: int) -> PayloadError:
    return PayloadError(
        RejectCode.TOO_MANY_PARTS,
        f"a JPEG may have at most {most:,} {what}, this one has more; save it again with an "
        f"ordinary encoder",
    )
