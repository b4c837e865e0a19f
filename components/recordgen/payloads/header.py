"""What the header of an image file says, before anything is decoded."""

from __future__ import annotations

from typing import NamedTuple

from recordgen.payloads.exif import UPRIGHT


class FileHeader(NamedTuple):
    """The picture that Pillow decodes, and the bytes that Pillow gets.

    Attributes:
        format: Pillow's name of the format.
        width: pixels of the stored picture.
        height: pixels of the stored picture.
        data: the file without parts that cost much and change no pixel: texts, comments, Exif,
            further pictures.
        orientation: Exif orientation, 1 to 8.
        compression: number of the scheme of a TIFF or BMP; 0 for other formats.
        strips: number of strips or tiles of a TIFF.
    """

    format: str
    width: int
    height: int
    data: bytes
    orientation: int = UPRIGHT
    compression: int = 0
    strips: int = 0
