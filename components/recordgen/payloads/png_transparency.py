"""Find the pixels of a PNG's transparent colour, in every depth (third edition, section 11.3.1.1).

Pillow stretches samples of 2 and 4 bits to 8, and cuts colours of 16 bits to 8, but compares them
with the colour as the file names it.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt
from PIL import Image

from recordgen.payloads.png import PNG_COLOUR, PNG_DEPTH, chunks, row_sizes

_GRAY, _RGB = 0, 2

# Place of the interlace method in the header's body
_INTERLACE = 12

_Bytes = npt.NDArray[np.uint8]


def with_transparent_colour(image: Image.Image, data: bytes) -> Image.Image:
    """Return a PNG whose transparent colour, if it has one, is in the depth of its pixels.

    Args:
        image: the opened file.
        data: its bytes.

    Returns:
        The image, or for 16 bits per channel a decoded one of mode ``RGBA`` with the high bytes.
    """
    named = image.info.get("transparency")
    depth, colour_type = data[PNG_DEPTH], data[PNG_COLOUR]
    if named is None or colour_type not in (_GRAY, _RGB):
        return image
    if colour_type == _RGB:
        if depth == 16:
            return _of_16_bits(data, named)
        image.info["transparency"] = tuple(sample & 0xFF for sample in named)
    elif image.mode == "L":  # other modes are not stretched
        most = (1 << depth) - 1
        image.info["transparency"] = (named & most) * (255 // most)
    return image


def _of_16_bits(data: bytes, named: tuple[int, ...]) -> Image.Image:
    """Decode high and low bytes as two pictures: filters mix only bytes of the same place."""
    transparent = np.all(_halves(data, 1) == np.array(named) % 256, axis=2)
    high = _halves(data, 0)
    transparent &= np.all(high == np.array(named) // 256, axis=2)
    alpha = np.where(transparent, 0, 255).astype(np.uint8)
    image = Image.fromarray(np.dstack([high, alpha]))
    image.format = "PNG"
    return image


def _halves(data: bytes, place: int) -> _Bytes:
    """Return uint8 [h, w, 3]: the high (0) or the low (1) bytes of a picture of 16 bits."""
    parts = list(chunks(data))
    header = parts[0][1]
    sizes = row_sizes(header)
    stream = b"".join(body for kind, body in parts if kind == b"IDAT")
    pixels = zlib.decompressobj().decompress(stream, sum(rows * size for rows, size in sizes))
    cut, at = [], 0
    for rows, size in sizes:
        found = np.frombuffer(pixels, np.uint8, rows * size, at).reshape(rows, size)
        filters = found[:, :1]
        cut.append(np.hstack([filters, found[:, 1 + place :: 2]]).tobytes())
        at += rows * size
    half = zlib.compress(b"".join(cut), 1)
    width, height = struct.unpack_from(">II", header)
    image = Image.frombytes("RGB", (width, height), half, "zip", "RGB", header[_INTERLACE])
    return np.asarray(image)
