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
        part_pixels: pixels of the largest strip or tile of a TIFF, which may exceed the picture.
        parts_pixels: pixels of all strips or tiles of a TIFF together, in all scans.
        is_negative: the file says that 0 is white, and ``data`` that it is black.
        is_animated: a WEBP's header has the flag, even with a single frame.
    """

    format: str
    width: int
    height: int
    data: bytes
    orientation: int = UPRIGHT
    compression: int = 0
    part_pixels: int = 0
    parts_pixels: int = 0
    is_negative: bool = False
    is_animated: bool = False

    @property
    def pixels(self) -> int:
        """The largest number of pixels that a decoder holds."""
        return max(self.width * self.height, self.part_pixels)

    @property
    def decoded_pixels(self) -> int:
        """The number of pixels that a decoder computes."""
        return max(self.width * self.height, self.parts_pixels)
