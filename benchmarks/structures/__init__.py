"""Change the structure of an image: its chunks, segments, blocks, tags and header fields.

Random bytes rarely get past a checksum or a length. These changes keep both right, so that decoders
see what an unusual or faulty encoder could have written: a second header, a palette after the
pixels, an unknown critical chunk, a frame larger than its canvas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.structures.fields import BMP, ICO, TIFF, WEBP
from benchmarks.structures.gif import GIF
from benchmarks.structures.jpeg import JPEG
from benchmarks.structures.parts import Change
from benchmarks.structures.png import MAGIC, PNG

#: First bytes of each format, and its changes by name.
STRUCTURES: Sequence[tuple[bytes, Mapping[str, Change]]] = (
    (MAGIC, PNG),
    (b"\xff\xd8", JPEG),
    (b"GIF8", GIF),
    (b"BM", BMP),
    (b"II", TIFF),
    (b"MM", TIFF),
    (b"RIFF", WEBP),
    (b"\0\0\1\0", ICO),
)


def changes_of(data: bytes) -> Mapping[str, Change]:
    """Return the changes for the format of this image."""
    return next((changes for magic, changes in STRUCTURES if data.startswith(magic)), {})
