"""Count the pictures of a file, of which a record holds the first: frames and pages."""

from __future__ import annotations

import struct

from recordgen.payloads.png import chunk_places
from recordgen.payloads.tiff import pages

#: A file with more pages counts as one with this many.
MAX_PAGES = 10_000

# Tags of a TIFF (section 8): kinds of a page as flags, and as a number in older files.
_NEW_KIND, _OLD_KIND = 254, 255
_REDUCED, _MASK = 1, 4
_OLD_REDUCED = 2

_MOST_FRAMES = (1 << 31) - 1  # numbers of a PNG have 31 bits (section 7.1)

_RIFF_BYTES = 12  # before the first chunk of a WEBP


def count_frames(data: bytes, kind: str) -> int | None:
    """Return the number of pictures in a PNG, WEBP or TIFF, at least 1; None for other formats.

    Smaller copies of a page and masks do not count.

    Args:
        data: the file.
        kind: Pillow's name of its format.
    """
    if kind == "PNG":
        return _frames_of_png(data)
    if kind == "WEBP":
        return max(1, _frames_of_webp(data))
    return max(1, _pages(data)) if kind == "TIFF" else None


def _frames_of_png(data: bytes) -> int:
    for kind, at, size in chunk_places(data):
        if kind == b"acTL" and size == 8:
            [count] = struct.unpack_from(">I", data, at)
            return count if 0 < count <= _MOST_FRAMES else 1
        if kind == b"IDAT":
            break
    return 1


def _frames_of_webp(data: bytes) -> int:
    count, at = 0, _RIFF_BYTES
    while at + 8 <= len(data):
        count += data.startswith(b"ANMF", at)
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return count


def _pages(data: bytes) -> int:
    """Count directories that are neither smaller copies nor masks."""
    count = 0
    for numbers in pages(data, MAX_PAGES):
        is_copy = numbers.get(_NEW_KIND, 0) & (_REDUCED | _MASK)
        count += not (is_copy or numbers.get(_OLD_KIND) == _OLD_REDUCED)
    return count
