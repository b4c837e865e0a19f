"""Decode, check and turn JPEGs; only this module calls their decoder.

bytes ─read_jpeg─▶ Jpeg ─decoded_jpeg─▶ uint8 [h, w, channels]
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import simplejpeg
from PIL import Image

from recordgen.core.settings import PayloadSettings
from recordgen.measures.pictures import SmallPicture, bounded, jpeg_factor
from recordgen.payloads import reencoding
from recordgen.payloads.header import UPRIGHT
from recordgen.payloads.jpeg import JpegHeader, corrupt, jpeg_header, profile_in, without_metadata
from recordgen.payloads.opening import decoded, file_header, open_image
from recordgen.payloads.profiles import profile_colours
from recordgen.payloads.resizing import Placed, change_of, encoder_bytes

_Decoded = TypeVar("_Decoded")

# Pillow's modes by simplejpeg's names of what is decoded, and the other way for what is stored.
_MODES = {"GRAY": "L", "RGB": "RGB", "CMYK": "CMYK"}
_COLOUR_SPACES = {"L": "Gray", "RGB": "YCbCr", "CMYK": "CMYK"}


class Jpeg(NamedTuple):
    """A JPEG that decoders may see; only :func:`read_jpeg` makes it.

    Attributes:
        colorspace: the decoder's name of the colour space: ``Gray``, ``YCbCr``, ``CMYK``, …
        is_odd: simplejpeg does not know the sampling of its components, but TensorFlow and Pillow
            decode it.
    """

    data: bytes
    header: JpegHeader
    colorspace: str
    is_odd: bool = False


def read_jpeg(data: bytes) -> Jpeg:
    """Read a JPEG's header, and its colour space as the decoder sees it.

    Raises:
        PayloadError: as :func:`jpeg_header`, or the decoder finds a picture of another size.
        ValueError: the decoder refuses the header.
    """
    header = jpeg_header(data)
    is_odd = False
    try:
        height, width, colorspace, _ = _tolerant(simplejpeg.decode_jpeg_header, data)
    except (KeyError, ValueError) as exc:
        is_odd = isinstance(exc, KeyError) or "subsampling" in str(exc)
        if not is_odd:
            raise
        with _opened(data) as image:
            width, height = image.size
            colorspace = _COLOUR_SPACES[image.mode]
    if (height, width) != (header.height, header.width):
        raise corrupt(
            f"has two sizes: {header.width}×{header.height}, and {width}×{height} for its decoder"
        )
    return Jpeg(data, header, str(colorspace), is_odd)


def _opened(data: bytes) -> Image.Image:
    """Open a JPEG whose frame was checked with Pillow, which decodes any sampling."""
    return Image.open(io.BytesIO(without_metadata(data)), formats=("JPEG",))


def decoded_jpeg(
    jpeg: Jpeg, colorspace: str, height: int, width: int, factor: int = 1
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Decode a JPEG at the smallest scale that covers a size; the decoder's warnings are errors.

    Args:
        jpeg: the file; its frame is one that shrinks.
        colorspace: ``GRAY``, ``RGB`` or ``CMYK``.
        height: least height, in pixels.
        width: least width, in pixels.
        factor: see :func:`recordgen.measures.pictures.jpeg_factor`.

    Returns:
        uint8 [h, w, channels].

    Raises: ValueError: the file is damaged.
    """
    if jpeg.is_odd:
        return _decoded_by_pillow(jpeg, colorspace, (width, height), factor)
    decode = partial(
        simplejpeg.decode_jpeg,
        colorspace=colorspace,
        min_height=height,
        min_width=width,
        min_factor=factor,
        strict=True,
    )
    return _tolerant(decode, jpeg.data)


def _decoded_by_pillow(
    jpeg: Jpeg, colorspace: str, least: tuple[int, int], factor: int
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Decode as :func:`decoded_jpeg`, but without the decoder's warnings: Pillow hides them."""
    with _opened(jpeg.data) as image:
        image.draft(None, least)
        decoded = image.convert(_MODES[colorspace])
    if factor > 1 and decoded.size != least:
        decoded = decoded.resize(least, Image.Resampling.BOX)
    pixels = np.asarray(decoded)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _tolerant(decode: Callable[[bytes], _Decoded], data: bytes) -> _Decoded:
    """Decode; if only the colour profile is damaged, which changes no pixel, without it."""
    try:
        return decode(data)
    except ValueError as exc:
        if "ICC" not in str(exc):
            raise
        return decode(without_metadata(data, profile=False))


def prepare_jpeg(data: bytes, settings: PayloadSettings) -> reencoding.Prepared:
    """Prepare a JPEG as :func:`recordgen.payloads.image.prepare` does."""
    jpeg = decoded("JPEG", lambda: read_jpeg(data))
    header = jpeg.header
    settings.limit.check_pixels(header.height, header.width)
    pixels = header.height * header.width
    # At 1/8 scale, pixels take little; but several scans need all coefficients in memory.
    size = pixels * (8 if header.has_scans else 0.2)
    seconds = pixels * (1e-8 + 1e-9 * header.scans)
    if _is_cmyk(jpeg) or header.orientation != UPRIGHT:
        size += pixels * 12
        seconds += pixels * 5e-8
    elif settings.changes_pictures:
        size += pixels * 8
    size += encoder_bytes((header.width, header.height), settings)
    return reencoding.Prepared(partial(_checked_jpeg, jpeg, settings), size, seconds)


def _is_cmyk(jpeg: Jpeg) -> bool:
    return jpeg.colorspace in ("CMYK", "YCCK")


def _checked_jpeg(jpeg: Jpeg, settings: PayloadSettings) -> reencoding.CheckedImage:
    stored = _check_jpeg(jpeg, settings)
    if jpeg.header.has_profile:
        stored = stored._replace(colours=profile_colours(profile_in(jpeg.data)))
    return stored


def _check_jpeg(jpeg: Jpeg, settings: PayloadSettings) -> reencoding.CheckedImage:
    height, width, orientation = jpeg.header.height, jpeg.header.width, jpeg.header.orientation
    is_cmyk = _is_cmyk(jpeg)
    upright = (height, width) if orientation in reencoding.ON_THEIR_SIDE else (width, height)
    reason, placed = change_of("jpeg", upright, settings)
    if reason is not None and not is_cmyk:
        return _change_jpeg(jpeg, placed, reason, settings)
    small = None
    if settings.check == "decode":
        pixels = _decode_strictly(jpeg, settings)
        is_stored = orientation == UPRIGHT and not is_cmyk
        small = bounded(pixels) if settings.needs_looks and is_stored else None
    if is_cmyk or orientation != UPRIGHT:
        file = file_header(jpeg.data)
        reason = "cmyk" if is_cmyk else "exif_orientation"
        return reencoding.reencode(open_image(file), orientation, reason, settings)
    return reencoding.CheckedImage(jpeg.data, "jpeg", height, width, small=small)


def _decode_strictly(jpeg: Jpeg, settings: PayloadSettings) -> SmallPicture:
    """Read the whole entropy-coded stream, at 1/8 scale; the decoder's warnings are errors.

    Pillow and ``tf.io.decode_jpeg`` silently accept a scan overwritten in the middle, and fill the
    rest with gray. If a check needs the downscaled image, a small image is shrunk less.
    """
    target = {"Gray": "GRAY", "YCbCr": "GRAY", "CMYK": "CMYK", "YCCK": "CMYK"}.get(
        jpeg.colorspace, "RGB"
    )
    height, width, *_ = jpeg.header
    factor = jpeg_factor(height, width) if settings.needs_looks else 8
    least = -(-height // factor), -(-width // factor)
    pixels = decoded("JPEG", lambda: decoded_jpeg(jpeg, target, *least, factor))
    return SmallPicture(pixels, height, width, factor)


def _change_jpeg(
    jpeg: Jpeg, placed: Placed, reason: str, settings: PayloadSettings
) -> reencoding.CheckedImage:
    """Decode at the smallest DCT scale that covers the stored size, then turn and resize."""
    width, height = placed.least_size()
    orientation = jpeg.header.orientation
    if orientation in reencoding.ON_THEIR_SIDE:
        width, height = height, width
    gray = jpeg.colorspace == "Gray"
    target = "GRAY" if gray else "RGB"
    pixels = decoded("JPEG", lambda: decoded_jpeg(jpeg, target, height, width))
    image = reencoding.turn(Image.fromarray(pixels[:, :, 0] if gray else pixels), orientation)
    stored = reencoding.stored_picture(image, "jpeg", placed, reason, settings)
    return stored._replace(orientation=orientation)
