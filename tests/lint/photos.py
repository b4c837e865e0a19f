"""A picture like a photo, and a JPEG as the check decodes it."""

from __future__ import annotations

import math

import simplejpeg
from PIL import Image

from recordgen.lint.looks import SmallPicture, jpeg_factor
from tests.conftest import noise


def scene(width: int = 500, height: int = 375, seed: int = 4) -> Image.Image:
    """Return soft blobs with one hard edge."""
    image = noise(10, 8, seed).resize((width, height), Image.Resampling.BICUBIC)
    image.paste("black", (width // 2, height // 4, width // 2 + width // 8, height // 2))
    return image


def small_jpeg(data: bytes, colorspace: str = "GRAY") -> SmallPicture:
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    factor = jpeg_factor(height, width)
    pixels = simplejpeg.decode_jpeg(
        data,
        colorspace=colorspace,
        min_height=math.ceil(height / factor),
        min_width=math.ceil(width / factor),
        min_factor=factor,
    )
    return SmallPicture(pixels, height, width, factor)
