"""Store a picture that cannot keep its file: upright, of 8 bit, resized and encoded."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

from PIL import Image, JpegImagePlugin, _imaging

from recordgen.core.facts import ImageNote
from recordgen.core.facts.perceptual_hash import SmallPicture, small_picture
from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.features import RAW
from recordgen.payloads.eight_bit import to_8_bit
from recordgen.payloads.opening import decoded
from recordgen.payloads.resizing import Placed, change_of, encoded, measured_psnr, stored_kind
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
        is_gray: whether the image has one channel, by its header; None if unknown.
        placed: the geometry if an option changed the size, else None.
        psnr: see :func:`recordgen.payloads.resizing.measured_psnr`.
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
    is_gray: bool | None = None
    placed: Placed | None = None
    psnr: int | None = None
    colours: str | None = None
    frames: int | None = None

    @property
    def note(self) -> ImageNote:
        """What checks and statistics need to know about it."""
        sizes = self.format, self.height, self.width
        return ImageNote(*sizes, self.is_gray, self.colours, self.frames)


def load(image: Image.Image) -> None:
    """Decode an image. Raises: PayloadError."""
    name = image.format or ""
    load = partial(check_errors, image.load) if name == "TIFF" else image.load
    decoded(name, load)


def has_one_channel(image: Image.Image) -> bool:
    """Return whether an image has one channel, not counting an alpha channel."""
    return image.mode in ("1", "L", "LA") or image.mode.startswith(("I", "F"))


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
        is_gray=has_one_channel(image),
        placed=placed if placed.is_changed else None,
        psnr=None if kind == RAW else measured_psnr(image, data),
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
