"""Change the structure of an image that is checked byte by byte: its chunks or segments.

Random bytes rarely get past a checksum or a length. These changes keep both right, so that decoders
see what an unusual or faulty encoder could have written: a second header, a palette after the
pixels, an unknown critical chunk. Images of other formats are decoded and stored as PNG.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.structures.jpeg import JPEG
from benchmarks.structures.parts import Change
from benchmarks.structures.png import MAGIC, PNG

#: First bytes of each format, and its changes by name.
STRUCTURES: Sequence[tuple[bytes, Mapping[str, Change]]] = (
    (MAGIC, PNG),
    (b"\xff\xd8", JPEG),
)


def changes_of(data: bytes) -> Mapping[str, Change]:
    """Return the changes for the format of this image."""
    return next((changes for magic, changes in STRUCTURES if data.startswith(magic)), {})
