"""Read the header of a binary Netpbm file: P4 (bits), P5 (gray) or P6 (RGB).

    P6          kind; blanks and comments stand between numbers
    # GTSRB
    29 30 255   width, height and the highest sample, one blank, then the samples

Rules: "pbm", "pgm" and "ppm" of netpbm.sourceforge.net.
"""

from __future__ import annotations

import re

from recordgen.errors import PayloadError
from recordgen.payloads.header import FileHeader
from recordgen.rejects import RejectCode

NETPBM_MAGICS = (b"P4", b"P5", b"P6")

_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_SIZE = _GAP + rb"([0-9]{1,9})" + _GAP + rb"([0-9]{1,9})"
_HEADER = re.compile(rb"P(?:4" + _SIZE + rb"|[56]" + _SIZE + _GAP + rb"([0-9]{1,5}))\s")


def netpbm_header(data: bytes) -> FileHeader:
    """Read the numbers before the samples. Raises: PayloadError: there are none, or samples lack.

    Samples of two bytes are those of a highest sample above 255.
    """
    match = _HEADER.match(data)
    if match is None or (match[5] and not 0 < int(match[5]) < 1 << 16):
        raise PayloadError(RejectCode.CORRUPT, "the PNM has no whole header")
    width, height = (int(match[at] or match[at + 2]) for at in (1, 2))
    is_deep = match[5] is not None and int(match[5]) > 255
    row = (width + 7) // 8 if match[5] is None else width * (1 + is_deep)
    if len(data) - match.end() < row * height * (3 if data.startswith(b"P6") else 1):
        raise PayloadError(RejectCode.TRUNCATED, "the PNM ends before its last sample")
    return FileHeader("PPM", width, height, data, is_deep=is_deep)
