"""Turn a decoded picture into 8 bits per channel, gray or RGB, opaque: as viewers show it."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from recordgen.errors import PayloadError
from recordgen.payloads.opening import decoded
from recordgen.rejects import RejectCode

#: Rows flattened on white at a time.
FLATTENED_ROWS = 256

# The tag of a TIFF with the bits of a sample, section 8.
_BITS_PER_SAMPLE = 258


def to_8_bit(image: Image.Image) -> Image.Image:
    """Return the image as ``L`` or ``RGB``; transparent pixels show white.

    Raises: PayloadError: the range of its values is undefined.
    """
    if image.format == "PPM" and image.mode == "I":  # Pillow scales its highest level to 65,535
        image = image.convert("I;16")
    if image.mode.startswith("I;16"):
        return _high_bits(image)
    if image.mode in ("I", "F"):
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"pixels must have 8 or 16 bits per channel (got Pillow mode {image.mode!r}, whose "
            f"range is undefined); scale them to 8 bits first",
        )
    if "transparency" in image.info or "A" in image.getbands():
        return flattened(image)
    return (
        image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")
    )


def _high_bits(image: Image.Image) -> Image.Image:
    """Return the high 8 bits of a gray image with 12 or 16 bits; 12 bits are 0 to 4,095."""
    tags: Any = getattr(image, "tag_v2", {})
    [bits] = tags.get(_BITS_PER_SAMPLE, (16,))
    values = np.asarray(image)
    levels = (values >> bits - 8).astype(np.uint8)
    if "transparency" in image.info:
        levels[values == image.info["transparency"]] = 255
    return Image.fromarray(levels)


def flattened(image: Image.Image, rows_at_once: int = FLATTENED_ROWS) -> Image.Image:
    """Flatten an image on white, some rows at a time: whole copies would double the memory."""
    flat = Image.new("RGB", image.size)
    for top in range(0, image.height, rows_at_once):
        rows = (0, top, image.width, min(top + rows_at_once, image.height))
        part = image.crop(rows).convert("RGBA")
        white = Image.new("RGBA", part.size, "white")
        flat.paste(Image.alpha_composite(white, part).convert("RGB"), rows)
    return flat


def is_transparent(image: Image.Image) -> bool:
    """Return whether any pixel is transparent; an alpha channel may be all opaque."""
    if "transparency" not in image.info and "A" not in image.getbands():
        return False
    return bool(decoded(image.format or "", lambda: _alpha(image)).getextrema() != (255, 255))


def _alpha(image: Image.Image) -> Image.Image:
    return (image if "A" in image.getbands() else image.convert("RGBA")).getchannel("A")
