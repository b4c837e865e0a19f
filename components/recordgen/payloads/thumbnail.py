"""A small picture of a stored image, for a page that people look at."""

from __future__ import annotations

import io
from typing import NamedTuple

from PIL import Image

from recordgen.errors import PayloadError
from recordgen.payloads.image import PILLOW_FORMATS, decoded, to_8_bit
from recordgen.rejects import RejectCode

# At these sizes an image is a matter of a few ten milliseconds; a JPEG is decoded at 1/8 scale.
_MAX_JPEG_PIXELS = 50_000_000
_MAX_PIXELS = 8_000_000

# Up to here every pixel is shown as it is: JPEG would smear scans and icons.
_PIXEL_ART_SIDE = 64

_QUALITY = 80


class Thumbnail(NamedTuple):
    """A small picture.

    Attributes:
        data: an encoded image without metadata.
        format: ``png`` or ``jpeg``.
        height: of the stored image, in pixels.
        width: of the stored image, in pixels.
    """

    data: bytes
    format: str
    height: int
    width: int


def to_thumbnail(data: bytes, side: int) -> Thumbnail:
    """Downscale an encoded image to at most ``side`` pixels; smaller ones keep their pixels.

    It shows the stored pixels as TensorFlow's decoder does, which ignores how Exif turns them.

    Raises:
        PayloadError: it does not decode, or it would take too long.
    """
    image = decoded("image", lambda: Image.open(io.BytesIO(data), formats=PILLOW_FORMATS))
    width, height = image.size
    if width * height > (_MAX_JPEG_PIXELS if image.format in ("JPEG", "MPO") else _MAX_PIXELS):
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS, f"too large for a thumbnail: {width}×{height}"
        )
    small, kind = decoded(image.format or "image", lambda: _encoded(image, side))
    return Thumbnail(small, kind, height, width)


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
