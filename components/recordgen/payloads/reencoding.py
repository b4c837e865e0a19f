"""Store a picture that cannot keep its file: upright, of 8 bit, resized and encoded.

Size and format are those that the settings require:

    500×375 photo   --image-size 256short                      341×256, JPEG
    500×375 photo   --image-size 224x224 --resize fit          224×168 between black bars, JPEG
    500×375 photo   --image-size 224x224 --encode raw          224×224, stretched, 150,528 bytes
    100×50 icon     --image-size 224x224 --resize center_crop  50×50: only the shape, never enlarged

:func:`place` computes the geometry first; pixels and boxes follow it.
"""

from __future__ import annotations

import ctypes
import io
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, JpegImagePlugin, _imaging

from recordgen.core.facts import ImageNote
from recordgen.core.image_settings import KEEP, MIXED, PayloadSettings
from recordgen.errors import PayloadError
from recordgen.features import RAW
from recordgen.measures.pictures import SmallPicture, small_picture
from recordgen.payloads.opening import decoded
from recordgen.rejects import RejectCode

#: Quality of JPEGs that are encoded because of an option, unless a quality is given.
LOSSY_QUALITY = 92

# Longest side that libjpeg encodes, in pixels.
_MOST_ACROSS = {"jpeg": 65_500}

# With encode=mixed, pictures with more pixels are encoded: 256×256 take 197 kB.
_MIXED_PIXELS = 65_536

# Pillow first shrinks a much larger picture by a whole factor, to at least twice the target size.
_REDUCING_GAP = 2.0


class View(NamedTuple):
    """The stored part of a picture, in shares of the picture; bars are outside of 0..1."""

    left: float
    top: float
    width: float
    height: float


class Placed(NamedTuple):
    """The geometry of a stored picture. All numbers are pixels of the upright picture.

    Attributes:
        size: width and height of the original picture.
        window: left, top, width and height of the part that is kept.
        inner: stored width and height of that part.
        canvas: width and height of the stored picture; it is black around the part.
    """

    size: tuple[int, int]
    window: tuple[int, int, int, int]
    inner: tuple[int, int]
    canvas: tuple[int, int]

    @property
    def is_changed(self) -> bool:
        """Whether the stored picture differs from the original."""
        return self.canvas != self.size

    @property
    def offset(self) -> tuple[int, int]:
        """Left and top of the part on the canvas."""
        return (self.canvas[0] - self.inner[0]) // 2, (self.canvas[1] - self.inner[1]) // 2

    @property
    def view(self) -> View:
        """The part of the original picture that the stored picture shows."""
        starts, extents = list[float](), list[float]()
        for axis in (0, 1):
            each = self.window[2 + axis] / self.inner[axis]  # original pixels per stored pixel
            start = self.window[axis] - self.offset[axis] * each
            starts.append(start / self.size[axis])
            extents.append(self.canvas[axis] * each / self.size[axis])
        return View(*starts, *extents)

    def least_size(self) -> tuple[int, int]:
        """Return the least width and height at which the picture must be decoded."""
        width, height = (
            -(-self.inner[axis] * self.size[axis] // self.window[2 + axis]) for axis in (0, 1)
        )
        return min(width, self.size[0]), min(height, self.size[1])

    def apply(self, image: Image.Image) -> Image.Image:
        """Return the stored picture, given the upright picture at any scale."""
        across, down = image.width / self.size[0], image.height / self.size[1]
        left, top, width, height = self.window
        box = (left * across, top * down, (left + width) * across, (top + height) * down)
        if image.size != self.inner or self.window != (0, 0, *self.size):
            image = image.resize(
                self.inner, Image.Resampling.LANCZOS, box=box, reducing_gap=_REDUCING_GAP
            )
        if self.canvas == self.inner:
            return image
        canvas = Image.new(image.mode, self.canvas)
        canvas.paste(image, self.offset)
        return canvas


def place(size: tuple[int, int], settings: PayloadSettings) -> Placed:
    """Return the geometry of a stored picture, given its width and height."""
    whole = (0, 0, *size)
    wanted = settings.image_size
    if wanted.rule != "shape":
        side = max(size) if wanted.rule == "max" else min(size)
        most = wanted.height or side
        inner = size if side <= most else _scaled(size, most / side, size)
        return Placed(size, whole, inner, inner)
    width, height = size
    target = target_width, target_height = wanted.width, wanted.height
    if settings.resize == "stretch":
        inner = (min(width, target_width), min(height, target_height))
        return Placed(size, whole, inner, inner)
    if settings.resize == "center_crop":
        scale = min(width / target_width, height / target_height)
        part = _scaled(target, scale, size)
        window = ((width - part[0]) // 2, (height - part[1]) // 2, *part)
        canvas = target if scale > 1 else part
        return Placed(size, window, canvas, canvas)
    scale = min(target_width / width, target_height / height)
    if scale < 1:
        return Placed(size, whole, _scaled(size, scale, target), target)
    # Not enlarged, in the shape of the target.
    canvas = max(width, round(target_width / scale)), max(height, round(target_height / scale))
    return Placed(size, whole, size, canvas)


def _scaled(size: tuple[int, int], scale: float, most: tuple[int, int]) -> tuple[int, int]:
    width, height = (
        min(limit, max(1, round(side * scale))) for side, limit in zip(size, most, strict=True)
    )
    return width, height


def stored_kind(kind: str, placed: Placed, settings: PayloadSettings) -> str:
    """Return the format in which to store a picture whose file has the format ``kind``."""
    width, height = placed.canvas
    is_small = width * height <= _MIXED_PIXELS
    encoding = settings.encode
    if encoding.pixels == RAW or (encoding.pixels == MIXED and is_small):
        return RAW
    return kind if encoding.format == KEEP else encoding.format


def encoded(
    image: Image.Image, kind: str, jpeg: dict[str, Any], settings: PayloadSettings
) -> bytes:
    """Encode a picture of mode ``L`` or ``RGB``.

    Args:
        image: the picture.
        kind: ``jpeg``, ``png`` or ``raw``.
        jpeg: settings of Pillow's JPEG encoder, used unless a quality is given.
        settings: the quality of ``encode`` is used.

    Raises: PayloadError: the picture is too large for the format.
    """
    if kind == RAW:
        return image.convert("RGB").tobytes()
    most = _MOST_ACROSS.get(kind, math.inf)
    if max(image.size) > most:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"a {kind.upper()} can have at most {most:,} pixels on each side (got {image.width}×"
            f"{image.height}); choose another --encode, or --image-size {most}max",
        )
    out = io.BytesIO()
    quality = settings.encode.quality
    if kind != "jpeg" or quality is not None:
        jpeg = {}
    if kind == "jpeg" and not jpeg:
        jpeg = {"quality": quality or LOSSY_QUALITY}
    # Drop Exif and profile: a reader of the record must not turn the image a second time.
    image.save(out, kind.upper(), exif=b"", icc_profile=None, **jpeg)
    return out.getvalue()


def change_of(
    kind: str, size: tuple[int, int], settings: PayloadSettings
) -> tuple[str | None, Placed]:
    """Return the option that changes a file's picture, if any, and the stored geometry.

    Args:
        kind: format of the file.
        size: width and height of the upright picture, in pixels.
        settings: ``image_size``, ``resize`` and ``encode`` are used.
    """
    if not settings.changes_pictures:
        return None, Placed(size, (0, 0, *size), size, size)
    placed = place(size, settings)
    if placed.is_changed:
        return "image_size", placed
    return None if stored_kind(kind, placed, settings) == kind else "encode", placed


# --- what is stored -------------------------------------------------------------------------------


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
        format: ``jpeg``, ``png``, ``gif``, ``bmp`` or ``raw``; empty if ``check=none``
            does not recognise it.
        height: pixels; None if ``check=none`` cannot read the header.
        width: pixels; None if ``check=none`` cannot read the header.
        reencoded: reason for the re-encoding (see :mod:`recordgen.payloads.check`), or None.
        orientation: the file's Exif orientation if the image was turned upright, else 1.
        small: the downscaled image; None if no check needs it or the pixels were not decoded.
        placed: the geometry if an option changed the size, else None.
        colours: what viewers apply to the colours of the file, named by
            :func:`~recordgen.payloads.png.profile_colours`; None if nothing.
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
    """Return the high 8 bits of a gray image with 12 or 16 bits; 12 bits are 0 to 4,095.

    Scanners and cameras of 10 and 12 bits leave the high bits of 16 empty.

    Raises: PayloadError: the levels are so low that hardly any is left.
    """
    tags: Any = getattr(image, "tag_v2", {})
    [bits] = tags.get(_BITS_PER_SAMPLE, (16,))
    values = np.asarray(image)
    opaque = values[values != image.info.get("transparency", -1)]
    if 0 < (highest := int(opaque.max(initial=0))) < 1 << bits - 4:
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"the levels of {bits} bits end at {highest:,}, so 8 bits would keep only "
            f"{(highest >> bits - 8) + 1} of them; scale them to 8 bits first",
        )
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
