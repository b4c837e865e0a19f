"""Store a picture that cannot keep its file: upright, of 8 bit, resized and encoded."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, JpegImagePlugin, _imaging

from recordgen.core.facts import ImageNote
from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.measures.pictures import SmallPicture, small_picture
from recordgen.payloads.opening import decoded
from recordgen.payloads.resizing import Placed, change_of, encoded, stored_kind
from recordgen.rejects import RejectCode


class Prepared(NamedTuple):
    """An image whose header was read, with an upper estimate of the cost of decoding it.

    Attributes:
        decode: checks and normalises the image. Raises: PayloadError.
        bytes: estimated memory.
        seconds: estimated processor time on a current machine.
    """

    decode: Callable[[], CheckedImage]
    bytes: float
    seconds: float


# Transpositions that undo Exif's orientations (Exif 2.3, 4.6.4).
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

ON_THEIR_SIDE = (5, 6, 7, 8)


class CheckedImage(NamedTuple):
    """An image as it is stored.

    Attributes:
        data: the encoded bytes.
        format: ``jpeg``, ``png``, ``gif``, ``bmp``, ``webp`` or ``raw``; empty if ``check=none``
            does not recognise it.
        height: pixels; None if ``check=none`` cannot read the header.
        width: pixels; None if ``check=none`` cannot read the header.
        reencoded: reason for the re-encoding (see :mod:`recordgen.payloads.image`), or None.
        orientation: the file's Exif orientation if the image was turned upright, else 1.
        small: the downscaled image; None if no check needs it or the pixels were not decoded.
        placed: the geometry if an option changed the size, else None.
        colours: what viewers apply to the file's colours, see :mod:`recordgen.payloads.profiles`;
            None if nothing.
        frames: pictures in the file, of which this is the first; None if unknown.
    """

    data: bytes
    format: str
    height: int | None
    width: int | None
    reencoded: str | None = None
    orientation: int = 1
    small: SmallPicture | None = None
    placed: Placed | None = None
    colours: str | None = None
    frames: int | None = None

    @property
    def note(self) -> ImageNote:
        """What checks and statistics need to know about it."""
        return ImageNote(self.format, self.height, self.width, self.colours, self.frames)


def load(image: Image.Image) -> None:
    """Decode an image. Raises: PayloadError."""
    name = image.format or ""
    load = partial(check_errors, image.load) if name == "TIFF" else image.load
    decoded(name, load)


def reencode(
    image: Image.Image, orientation: int, reason: str, settings: PayloadSettings
) -> CheckedImage:
    """Store the image as a person would see it: upright, opaque, 8 bit, gray or RGB."""
    return decoded(image.format or "", lambda: _reencoded(image, orientation, reason, settings))


def _reencoded(
    image: Image.Image, orientation: int, reason: str, settings: PayloadSettings
) -> CheckedImage:
    load(image)
    lossy = image.format == "JPEG"
    kind = "jpeg" if lossy else "png"
    jpeg: dict[str, Any] = {}
    if lossy and reason == "exif_orientation":
        # The file's own tables lose least; docs/stored-images.md has figures.
        jpeg["qtables"] = image.quantization  # type: ignore[attr-defined]
        sampling = JpegImagePlugin.get_sampling(image)
        jpeg["subsampling"] = sampling if sampling >= 0 else 0
    elif lossy:
        jpeg.update(quality=95, subsampling=0)
    upright = turn(to_8_bit(image), orientation)
    _, placed = change_of(kind, upright.size, settings)
    stored = stored_picture(upright, kind, placed, reason, settings, **jpeg)
    return stored._replace(orientation=orientation)


def turn(image: Image.Image, orientation: int) -> Image.Image:
    """Return an image upright, given its Exif orientation."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def stored_picture(
    image: Image.Image,
    kind: str,
    placed: Placed,
    reason: str,
    settings: PayloadSettings,
    **jpeg: Any,
) -> CheckedImage:
    """Store an upright picture of mode ``L`` or ``RGB`` at any scale; ``kind`` is the file's."""
    image = placed.apply(image)
    kind = stored_kind(kind, placed, settings)
    data = encoded(image, kind, jpeg, settings)
    return CheckedImage(
        data,
        kind,
        image.height,
        image.width,
        reason,
        small=in_small(image, settings),
        placed=placed if placed.is_changed else None,
    )


def in_small(image: Image.Image, settings: PayloadSettings) -> SmallPicture | None:
    """Return the downscaled image if a check needs it."""
    if not settings.needs_looks:
        return None
    return small_picture(decoded(image.format or "", lambda: to_8_bit(image)))


_thread = threading.local()


@ctypes.CFUNCTYPE(None)  # it ignores its arguments, of which one has no type in ctypes
def _note() -> None:
    _thread.has_error = True


@cache
def _install() -> None:
    with suppress(OSError, AttributeError):  # a Pillow without libtiff, or one that hides it
        ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler(_note)


def check_errors(decode: Callable[[], object]) -> None:
    """Decode a TIFF. Raises: PayloadError: libtiff met an error; as ``decode``."""
    _install()
    _thread.has_error = False
    decode()
    if _thread.has_error:
        raise PayloadError(RejectCode.CORRUPT, "the TIFF does not decode to its end")


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
