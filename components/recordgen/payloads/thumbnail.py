"""Thumbnails of stored images, for the report page."""

from __future__ import annotations

import io
from typing import NamedTuple

from PIL import Image

from recordgen.errors import PayloadError
from recordgen.payloads.eight_bit import to_8_bit
from recordgen.payloads.opening import decoded, file_header, open_image
from recordgen.rejects import RejectCode

# Up to these sizes an image takes a few tens of milliseconds; a JPEG is decoded at 1/8 scale.
_MAX_JPEG_PIXELS = 50_000_000
_MAX_PIXELS = 8_000_000

# Up to this side, in pixels, PNG keeps every pixel: JPEG would smear scans and icons.
_PIXEL_ART_SIDE = 64

_QUALITY = 80


class Thumbnail(NamedTuple):
    """A thumbnail.

    Attributes:
        data: an encoded image without metadata.
        format: ``png`` or ``jpeg``.
        height: height of the stored image, in pixels.
        width: width of the stored image, in pixels.
    """

    data: bytes
    format: str
    height: int
    width: int


def to_thumbnail(data: bytes, side: int) -> Thumbnail:
    """Downscale an encoded image to at most ``side`` pixels; smaller images keep their pixels.

    It shows the stored pixels like TensorFlow's decoder, which ignores Exif orientation.

    Raises: PayloadError: the image does not decode, or would take too long.
    """
    file = file_header(data)
    if file.decoded_pixels > (_MAX_JPEG_PIXELS if file.format == "JPEG" else _MAX_PIXELS):
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS, f"too large for a thumbnail: {file.width}×{file.height}"
        )
    image = open_image(file)
    small, kind = decoded(file.format, lambda: _encoded(image, side))
    return Thumbnail(small, kind, file.height, file.width)


def _encoded(image: Image.Image, side: int) -> tuple[bytes, str]:
    image.draft(None, (side, side))
    small = to_8_bit(image)
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if max(small.size) <= _PIXEL_ART_SIDE:
        small.save(out, "PNG", optimize=True, exif=b"", icc_profile=None)
        return out.getvalue(), "png"
    small.save(out, "JPEG", quality=_QUALITY, optimize=True, exif=b"", icc_profile=None)
    return out.getvalue(), "jpeg"
