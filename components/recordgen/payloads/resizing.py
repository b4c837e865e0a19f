"""Change the size and the format of a picture as the settings require.

    500×375 photo   --image-size 256short                      341×256, JPEG
    500×375 photo   --image-size 224x224 --resize fit          224×168 between black bars, JPEG
    500×375 photo   --image-size 224x224 --encode raw          224×224, stretched, 150,528 bytes
    100×50 icon     --image-size 224x224 --resize center_crop  50×50: only the shape, never enlarged

:func:`place` computes the geometry first; pixels and boxes follow it.
"""

from __future__ import annotations

import io
import math
from typing import Any, NamedTuple

from PIL import Image

from recordgen.core.image_settings import KEEP, MIXED
from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.features import RAW, WEBP
from recordgen.rejects import RejectCode

#: Quality of JPEGs and WEBPs that are encoded because of an option, unless a quality is given.
LOSSY_QUALITY = 92

# Longest side that libjpeg and libwebp encode, in pixels.
_MOST_ACROSS = {"jpeg": 65_500, WEBP: 16_383}

# With encode=mixed, pictures with more pixels are encoded: 256×256 take 197 kB.
_MIXED_PIXELS = 65_536

# Memory that libwebp takes for each encoded pixel. Other encoders take little.
_WEBP_BYTES = 11

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
        kind: ``jpeg``, ``png``, ``webp`` or ``raw``.
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
    if kind in ("jpeg", WEBP) and not jpeg:
        jpeg = {"quality": quality or LOSSY_QUALITY}
    # Drop Exif and profile: a reader of the record must not turn the image a second time.
    image.save(out, kind.upper(), exif=b"", icc_profile=None, **jpeg)
    return out.getvalue()


def encoder_bytes(size: tuple[int, int], settings: PayloadSettings) -> int:
    """Return the memory of the encoder for a picture of this width and height, in bytes."""
    if settings.encode.format != WEBP:
        return 0
    width, height = place(size, settings).canvas
    return width * height * _WEBP_BYTES


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
