"""Check an image and pass its bytes through, or re-encode them where a trainer would go wrong.

A trainer decodes with ``tf.io.decode_image(channels=3, expand_animations=False)``. What that op
shows as a person would see it keeps its own bytes; the rest is re-encoded:

    exif_orientation  the op ignores it: turned, as JPEG with the file's own quantisation tables
    cmyk              CMYK and YCCK JPEGs: to RGB, as JPEG
    alpha             pixels that are really transparent: flattened on white, as PNG
    16_bit            to 8 bit (the high byte), as PNG
    bmp               any BMP but plain 24 bit (palettes would be read as gray), as PNG
    gif               a first frame smaller than its canvas, or colours outside its palette, as PNG
    format            WEBP, TIFF and ICO, which the op cannot read, as PNG
    max_side          larger than the user wants: downscaled (JPEG stays JPEG, the rest PNG)
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import simplejpeg
from PIL import ExifTags, Image, ImageOps, JpegImagePlugin, UnidentifiedImageError

from recordgen.errors import PayloadError
from recordgen.lint.looks import SmallPicture, bounded, jpeg_factor, small_picture
from recordgen.options import ConvertOptions
from recordgen.payloads.gif import gif_frames
from recordgen.payloads.png import check_png
from recordgen.rejects import RejectCode

#: What Vertex AI takes ("Prepare image training data": JPEG, PNG, GIF, BMP, ICO) and its schema
#: lists (WEBP, TIFF). MPO, the JPEG with a second picture that phones write, is JPEG to Pillow.
PILLOW_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "ICO", "WEBP", "TIFF")
EXPECTED = "JPEG, PNG, GIF, BMP, ICO, WEBP or TIFF"

_MAGIC = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
)

JPEG_QUALITY = 92

# JPEG markers, ITU-T T.81 table B.1
_START_OF_SCAN, _APP1 = 0xDA, 0xE1

_T = TypeVar("_T")


class CheckedImage(NamedTuple):
    """An image as it is stored.

    Attributes:
        data: the encoded bytes.
        format: ``jpeg``, ``png``, ``gif`` or ``bmp``; empty if ``check=none`` could not tell.
        height: pixels; None if ``check=none`` could not tell.
        width: pixels; None if ``check=none`` could not tell.
        reencoded: why the bytes are not the file's own (see the module), or None.
        orientation: the Exif orientation after which they were turned upright; 1: they were not.
        small: the image in small; None: no check asks, or its pixels were not decoded.
        is_gray: it has one channel, by its header; None: not known.
    """

    data: bytes
    format: str
    height: int | None
    width: int | None
    reencoded: str | None = None
    orientation: int = 1
    small: SmallPicture | None = None
    is_gray: bool | None = None


def check_image(data: bytes, options: ConvertOptions) -> CheckedImage:
    """Check and normalise one image.

    Args:
        data: the file's bytes.
        options: ``check``, ``max_side``, ``max_image_mb`` and ``max_image_pixels`` count here.

    Raises:
        PayloadError: the image is refused.
    """
    if not data:
        raise PayloadError(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
    check_size(len(data), options)
    kind = next((name for magic, name in _MAGIC if data.startswith(magic)), "")
    if options.check == "none":
        return _unchecked(data, kind)
    return _check_jpeg(data, options) if kind == "jpeg" else _check_other(data, kind, options)


def picture_in_small(data: bytes, options: ConvertOptions) -> SmallPicture | None:
    """Return what a check of near-duplicates looks at; None: the image does not decode.

    Args:
        data: the file's bytes.
        options: see :func:`looking_options`.
    """
    try:
        return check_image(data, options).small
    except PayloadError:
        return None  # who makes the example says why


def looking_options(options: ConvertOptions) -> ConvertOptions:
    """Return the options with which :func:`check_image` looks at each image, as it is stored."""
    return replace(options, check="decode", max_side=None, select=("NEAR_LEAK",), ignore=())


def check_size(size: int, options: ConvertOptions) -> None:
    """Refuse a payload of too many bytes. Raises: PayloadError."""
    if size > options.max_image_bytes:
        raise too_many_bytes(size, options)


def too_many_bytes(size: int, options: ConvertOptions) -> PayloadError:
    """Return why a payload of ``size`` bytes, or more, is refused."""
    return PayloadError(
        RejectCode.TOO_MANY_BYTES,
        f"a file must be at most {options.max_image_mb:g} MB (got {size / 1e6:.1f} MB); "
        f"--max-image-mb allows more",
    )


def _check_pixels(height: int, width: int, options: ConvertOptions) -> None:
    if height * width > options.max_image_pixels:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"an image must have at most {options.max_image_pixels:,} pixels (got {width}×{height} "
            f"= {height * width:,}); --max-image-pixels allows more",
        )


def _unchecked(data: bytes, kind: str) -> CheckedImage:
    """Return the bytes as they are, with what the header tells without effort."""
    try:
        if kind == "jpeg":
            height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data)
            is_gray = colorspace == "Gray"
        else:
            image = Image.open(io.BytesIO(data), formats=PILLOW_FORMATS)
            (width, height), is_gray = image.size, _is_gray(image)
    except (OSError, ValueError, SyntaxError, struct.error, Image.DecompressionBombError):
        return CheckedImage(data, kind, None, None)
    return CheckedImage(data, kind, height, width, is_gray=is_gray)


# --- JPEG -------------------------------------------------------------------------------------


def _check_jpeg(data: bytes, options: ConvertOptions) -> CheckedImage:
    height, width, colorspace, _ = decoded("JPEG", lambda: simplejpeg.decode_jpeg_header(data))
    _check_pixels(height, width, options)
    if colorspace in ("CMYK", "YCCK"):
        return _reencode(_open(data, options), "cmyk", options)
    orientation = _jpeg_orientation(data)
    if options.max_side is not None and max(height, width) > options.max_side:
        return _downscale_jpeg(data, (height, width), colorspace, orientation, options)
    small = None
    if options.check == "decode":
        pixels = _decode_strictly(data, (height, width), colorspace, options)
        small = bounded(pixels) if options.lint.needs_looks and orientation == 1 else None
    if orientation != 1:
        return _reencode(_open(data, options), "exif_orientation", options)
    return CheckedImage(data, "jpeg", height, width, small=small, is_gray=colorspace == "Gray")


def _decode_strictly(
    data: bytes, size: tuple[int, int], colorspace: str, options: ConvertOptions
) -> SmallPicture:
    """Read the whole entropy-coded stream, at 1/8 scale; a decoder's warning is an error.

    Pillow and ``tf.io.decode_jpeg`` both accept a scan overwritten in the middle and fill the
    rest with gray, and say nothing. A small picture that is to be looked at is shrunk less.
    """
    target = "GRAY" if colorspace in ("Gray", "YCbCr") else "RGB"
    height, width = size
    factor = jpeg_factor(height, width) if options.lint.needs_looks else 8
    pixels = decoded(
        "JPEG",
        lambda: simplejpeg.decode_jpeg(
            data,
            colorspace=target,
            min_height=-(-height // factor),
            min_width=-(-width // factor),
            min_factor=factor,
            strict=True,
        ),
    )
    return SmallPicture(pixels, height, width, factor)


def _jpeg_orientation(data: bytes) -> int:
    if not _has_exif(data):
        return 1  # far cheaper to know than to ask Pillow
    return _orientation(decoded("JPEG", lambda: Image.open(io.BytesIO(data), formats=("JPEG",))))


def _has_exif(data: bytes) -> bool:
    """Look for an Exif segment among those before the scan, as ITU-T T.81 B.1 lays them out."""
    at = 2
    while at + 10 <= len(data) and data[at] == 0xFF and data[at + 1] != _START_OF_SCAN:
        if data[at + 1] == _APP1 and data.startswith(b"Exif\0\0", at + 4):
            return True
        at += 1 if data[at + 1] == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return False


def _downscale_jpeg(
    data: bytes,
    size: tuple[int, int],
    colorspace: str,
    orientation: int,
    options: ConvertOptions,
) -> CheckedImage:
    """Decode at the smallest DCT scale that still covers the target, then resize."""
    height, width = size
    scale = (options.max_side or 0) / max(height, width)
    target = (max(1, round(width * scale)), max(1, round(height * scale)))
    gray = colorspace == "Gray"
    pixels = decoded(
        "JPEG",
        lambda: simplejpeg.decode_jpeg(
            data,
            colorspace="GRAY" if gray else "RGB",
            min_width=target[0],
            min_height=target[1],
            strict=True,
        ),
    )
    image = Image.fromarray(pixels[:, :, 0] if gray else pixels)
    image = image.resize(target, Image.Resampling.LANCZOS)
    image = _turn(image, orientation)
    stored = _encoded(image, "jpeg", "max_side", options, quality=JPEG_QUALITY)
    return stored._replace(orientation=orientation)


# --- everything else --------------------------------------------------------------------------


def _check_other(data: bytes, kind: str, options: ConvertOptions) -> CheckedImage:
    image = _open(data, options)
    if options.check == "decode":
        _decode_fully(data, image, options)
    too_large = options.max_side is not None and max(image.size) > options.max_side
    reason = _why_reencode(data, kind, image)
    if reason is None and not too_large:
        small = _in_small(image, options) if options.check == "decode" else None
        return CheckedImage(
            data, kind, image.height, image.width, small=small, is_gray=_is_gray(image)
        )
    return _reencode(image, reason or "max_side", options)


def _decode_fully(data: bytes, image: Image.Image, options: ConvertOptions) -> None:
    if image.format == "GIF":
        return _decode_gif(data, options)
    if image.format == "PNG":
        check_png(data)  # Pillow stops at the last row and skips the checksums of pixel data
    decoded(image.format or "", image.load)


def _decode_gif(data: bytes, options: ConvertOptions) -> None:
    """Decompress each frame, from its own blocks alone.

    Where LZW's end code, or a frame's last block, comes before the last pixel, Pillow fills the
    frame from the bytes that follow in the file; giflib, which TensorFlow uses, refuses it.
    """
    for width, height, code_bits, blocks in gif_frames(data):
        _check_pixels(height, width, options)
        decoded("GIF", partial(Image.frombytes, "L", (width, height), blocks, "gif", code_bits))


def _why_reencode(data: bytes, kind: str, image: Image.Image) -> str | None:
    if kind not in ("png", "gif", "bmp"):
        return "format"
    if _orientation(image) != 1:
        return "exif_orientation"
    if kind == "bmp":
        return None if _is_plain_bmp(data) else "bmp"
    if kind == "png" and data[24] == 16:  # bit depth in the IHDR chunk
        return "16_bit"
    if kind == "gif" and not _is_plain_gif(image):
        return "gif"
    return "alpha" if _is_transparent(image) else None


def _is_plain_bmp(data: bytes) -> bool:
    """Say whether it is a BMP of 24 bit, uncompressed, with a header of today's layout."""
    if len(data) < 34:
        return False
    start, header_bytes, width, height, _, bits, compression = struct.unpack_from(
        "<IIiiHHI", data, 10
    )
    # TensorFlow wants the file to end with its last row; some programs add two bytes.
    ends_with_pixels = start + (width * 3 + 3) // 4 * 4 * abs(height) == len(data)
    return bool(header_bytes >= 40 and bits == 24 and compression == 0 and ends_with_pixels)


def _is_plain_gif(image: Image.Image) -> bool:
    """Say whether the first frame fills its canvas and uses no colour outside its palette."""
    tile = getattr(image, "tile", None)  # where the frame lies on the canvas
    if tile and tuple(tile[0][1]) != (0, 0, *image.size):
        return False
    decoded("GIF", image.load)
    if image.mode != "P" or image.palette is None:
        return True  # Pillow's way of showing a palette of grays
    highest: Any = image.getextrema()[1]
    return bool(highest < len(image.palette.palette) // 3)


def _is_gray(image: Image.Image) -> bool:
    """Say whether an image has one channel, beside one that says what is transparent."""
    return image.mode in ("1", "L", "LA") or image.mode.startswith(("I", "F"))


def _is_transparent(image: Image.Image) -> bool:
    """Say whether any pixel is really transparent, not merely able to be."""
    if "transparency" not in image.info and "A" not in image.getbands():
        return False
    rgba = decoded(image.format or "", lambda: image.convert("RGBA"))
    return bool(rgba.getchannel("A").getextrema() != (255, 255))


def _reencode(image: Image.Image, reason: str, options: ConvertOptions) -> CheckedImage:
    """Store what a person would see: turned, opaque, 8 bit, gray or RGB."""
    return decoded(image.format or "", lambda: _reencoded(image, reason, options))


def _reencoded(image: Image.Image, reason: str, options: ConvertOptions) -> CheckedImage:
    name = image.format or ""
    image.load()
    lossy = name in ("JPEG", "MPO")
    settings: dict[str, object] = {}
    if lossy and reason == "exif_orientation":
        # The file's own tables: a second pass through them loses next to nothing.
        settings["qtables"] = image.quantization  # type: ignore[attr-defined]
        sampling = JpegImagePlugin.get_sampling(image)
        settings["subsampling"] = sampling if sampling >= 0 else 0
    elif lossy:
        settings.update(quality=95, subsampling=0)
    orientation = _orientation(image)
    upright = _turn(to_8_bit(image), orientation)
    if options.max_side is not None and max(upright.size) > options.max_side:
        upright.thumbnail((options.max_side, options.max_side), Image.Resampling.LANCZOS)
    stored = _encoded(upright, "jpeg" if lossy else "png", reason, options, **settings)
    return stored._replace(orientation=orientation)


def to_8_bit(image: Image.Image) -> Image.Image:
    """Return the image as ``L`` or ``RGB``; transparency shows white."""
    if image.mode.startswith("I;16"):
        return image.point(lambda value: value / 256, "I").convert("L")
    if image.mode in ("I", "F"):
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"pixels must have 8 or 16 bits per channel (got Pillow mode {image.mode!r}, whose "
            f"range is not defined); scale them to 8 bits first",
        )
    if "transparency" in image.info or "A" in image.getbands():
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(white, rgba).convert("RGB")
    return (
        image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")
    )


def _turn(image: Image.Image, orientation: int) -> Image.Image:
    if orientation == 1:
        return image
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    turned = image.copy()
    turned.info["exif"] = exif.tobytes()
    return ImageOps.exif_transpose(turned)


def _encoded(
    image: Image.Image, kind: str, reason: str, options: ConvertOptions, **settings: object
) -> CheckedImage:
    small = _in_small(image, options)
    out = io.BytesIO()
    # Without Exif and profile: whoever reads the record must not turn the image a second time.
    image.save(out, kind.upper(), exif=b"", icc_profile=None, **settings)
    return CheckedImage(
        out.getvalue(),
        kind,
        image.height,
        image.width,
        reason,
        small=small,
        is_gray=_is_gray(image),
    )


def _in_small(image: Image.Image, options: ConvertOptions) -> SmallPicture | None:
    """Return an image that is decoded in small, if a check looks at it."""
    if not options.lint.needs_looks:
        return None
    return small_picture(decoded(image.format or "", lambda: to_8_bit(image)))


# --- the border to the decoders ---------------------------------------------------------------


def _open(data: bytes, options: ConvertOptions) -> Image.Image:
    try:
        image = decoded("image", lambda: Image.open(io.BytesIO(data), formats=PILLOW_FORMATS))
    except PayloadError as exc:
        if isinstance(exc.__cause__, UnidentifiedImageError):
            raise PayloadError(
                RejectCode.NOT_AN_IMAGE,
                f"expected {EXPECTED} (the file starts with {data[:8]!r})",
            ) from exc
        raise
    _check_pixels(image.height, image.width, options)
    return image


def _orientation(image: Image.Image) -> int:
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except (OSError, ValueError, SyntaxError, struct.error, KeyError):
        return 1  # a broken Exif block turns nothing, and no decoder reads it
    return value if value in range(1, 9) else 1


def decoded(name: str, decode: Callable[[], _T]) -> _T:
    """Run a decoder and map what it raises: the bytes are at fault, whatever the type."""
    try:
        return decode()
    except (MemoryError, PayloadError):
        raise
    except Image.DecompressionBombError as exc:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS, f"Pillow refuses images of so many pixels: {exc}"
        ) from exc
    except Exception as exc:
        words = str(exc) or type(exc).__name__
        cut = any(word in words.lower() for word in ("premature end of jpeg", "truncated", "eof"))
        code = RejectCode.TRUNCATED if cut else RejectCode.CORRUPT
        raise PayloadError(code, f"the {name} does not decode to its end: {words}") from exc
