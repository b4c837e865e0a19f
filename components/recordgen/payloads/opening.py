"""The one way to Pillow: read the header, drop what Pillow must not see, open the rest.

    bytes ─file_header─▶ FileHeader ─(limits of the caller)─▶ open_image ─▶ Image

Pillow parses metadata while it opens a file, some of it in quadratic time or with memory that no
limit bounds, and decodes icons. :func:`file_header` takes time and memory that grow with the file
only, and refuses files with more parts than programs write.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from PIL import Image, UnidentifiedImageError, _imaging

from recordgen.errors import PayloadError
from recordgen.payloads import converted_formats
from recordgen.payloads.header import FileHeader
from recordgen.payloads.jpeg import jpeg_header, without_metadata
from recordgen.payloads.png import PNG_COLOUR, PNG_DEPTH, PNG_MAGIC, png_header
from recordgen.payloads.stored import kind_of
from recordgen.payloads.tiff import TIFF_MAGICS, tiff_header
from recordgen.rejects import RejectCode

# Binary files of bits, gray levels and RGB; Pillow reads only numbers in front of the samples.
_NETPBM_MAGICS = (b"P4", b"P5", b"P6")

# The place of a pixel's bits in a BMP, and the compressions whose pixels Pillow does not misplace:
# none, and bit fields.
_BMP_BITS, _PLAIN_BITMAPS = 28, (0, 3)

EXPECTED = "JPEG, PNG, GIF, BMP, ICO, WEBP, TIFF, PBM, PGM or PPM"

# glibc keeps freed blocks of up to 32 MB for their thread, and returns larger ones to the system.
_BLOCK_BYTES = 64 << 20

_T = TypeVar("_T")


@cache
def keep_pillow_memory_low() -> None:
    """Let Pillow allocate images in larger blocks than its default of 16 MB.

    Otherwise the blocks that threads keep would exceed the budget.
    """
    if hasattr(_imaging, "set_block_size"):  # not part of Pillow's documented interface
        _imaging.set_block_size(_BLOCK_BYTES)


def file_header(data: bytes) -> FileHeader:
    """Read the header of an image file in any format that is accepted.

    Raises:
        PayloadError: it is no image, or TensorFlow does not decode its kind of JPEG, or it has more
            parts than programs write, or its header is damaged.
    """
    read = next((read for magic, read in _READERS.items() if data.startswith(magic)), None)
    if read is None and converted_formats.is_webp(data):
        read = converted_formats.webp_header
    if read is None:
        raise PayloadError(RejectCode.NOT_AN_IMAGE, f"expected {EXPECTED} (got {kind_of(data)})")
    header = read(data)
    if not (header.width and header.height):
        raise PayloadError(
            RejectCode.CORRUPT,
            f"the {header.format} has no pixels ({header.width}×{header.height})",
        )
    return header


def _jpeg(data: bytes) -> FileHeader:
    header = jpeg_header(data)
    pixels = without_metadata(data)
    return FileHeader("JPEG", header.width, header.height, pixels, header.orientation)


def _netpbm(data: bytes) -> FileHeader:
    image = decoded("PNM", lambda: Image.open(io.BytesIO(data), formats=("PPM",)))
    return FileHeader("PPM", *image.size, data)


def _bitmap(data: bytes) -> FileHeader:
    """Read the header of a BMP. Raises: PayloadError: Pillow decodes it otherwise than browsers."""
    image = decoded("BMP", lambda: Image.open(io.BytesIO(data), formats=("BMP",)))
    takes_bytes_for_bits = image.mode == "1" and data[_BMP_BITS] != 1
    if image.info["compression"] not in _PLAIN_BITMAPS or takes_bytes_for_bits:
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            "a bitmap must be plain or have bit fields; save it again, as PNG",
        )
    return FileHeader("BMP", *image.size, data)


_READERS: Mapping[bytes, Callable[[bytes], FileHeader]] = {
    b"\xff\xd8\xff": _jpeg,
    PNG_MAGIC: png_header,
    b"GIF87a": converted_formats.gif_header,
    b"GIF89a": converted_formats.gif_header,
    b"BM": _bitmap,
    converted_formats.ICO_MAGIC: converted_formats.icon_header,
    **dict.fromkeys(TIFF_MAGICS, tiff_header),
    **dict.fromkeys(_NETPBM_MAGICS, _netpbm),
}


def open_image(header: FileHeader) -> Image.Image:
    """Open an image file whose size was checked; icons and BMPs with alpha are decoded, too.

    Raises: PayloadError: Pillow refuses it, or finds a picture of another size.
    """
    # Pillow has the same limit, but looks after it allocated the canvas of a WEBP.
    if Image.MAX_IMAGE_PIXELS is not None and header.pixels > 2 * Image.MAX_IMAGE_PIXELS:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"Pillow refuses images with this many pixels: {header.width}×{header.height}",
        )
    file = io.BytesIO(header.data)
    try:
        image = decoded("image", lambda: Image.open(file, formats=(header.format,)))
    except PayloadError as exc:
        if header.format != "TIFF" or not isinstance(exc.__cause__, UnidentifiedImageError):
            raise
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            "the TIFF has a depth, colour model or layout of samples that is not supported, or a "
            "damaged header; save it again, as PNG or with 8 bits",
        ) from exc
    if image.size != (header.width, header.height):
        raise PayloadError(
            RejectCode.CORRUPT,
            f"the {header.format} has two sizes: {header.width}×{header.height}, and "
            f"{image.width}×{image.height} for its decoder",
        )
    if header.format == "BMP" and image.mode == "RGBA":
        return decoded("BMP", lambda: without_empty_alpha(image))
    if header.format == "GIF":  # decoded at once, so that an end within its codes is found
        image.decodermaxblock = len(header.data)
    if header.format == "PNG":
        _match_depth(image, header.data)
    return image


def without_empty_alpha(image: Image.Image) -> Image.Image:
    """Return a bitmap whose alpha, if it is zero everywhere, is none, as in browsers."""
    if image.getchannel("A").getextrema() != (0, 0):
        return image
    opaque = image.convert("RGB")
    opaque.format = image.format
    return opaque


def decoded(name: str, decode: Callable[[], _T]) -> _T:
    """Run a decoder and map its errors to PayloadError: any exception is the file's fault."""
    try:
        return decode()
    except PayloadError:
        raise
    except MemoryError as exc:
        raise out_of_memory() from exc
    except Image.DecompressionBombError as exc:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS, f"Pillow refuses images with this many pixels: {exc}"
        ) from exc
    except Exception as exc:
        words = str(exc) or type(exc).__name__
        cut = any(word in words.lower() for word in ("premature end of jpeg", "truncated", "eof"))
        code = RejectCode.TRUNCATED if cut else RejectCode.CORRUPT
        raise PayloadError(code, f"the {name} does not decode to its end: {words}") from exc


def out_of_memory() -> PayloadError:
    """Return the refusal of an image for which the memory of this machine did not suffice."""
    return PayloadError(
        RejectCode.OUT_OF_MEMORY,
        "decoding needs more memory than is free; fewer --threads, a smaller --limit memory=… or a "
        "machine with more memory leave more for each image",
    )


_GRAY, _RGB = 0, 2  # colour types of a PNG


def _match_depth(image: Image.Image, data: bytes) -> None:
    """Bring the transparent colour of a PNG, if it has one, into the depth of its pixels.

    Raises: PayloadError: its pixels lose the bits that tell the colour from others.
    """
    named = image.info.get("transparency")
    depth, colour_type = data[PNG_DEPTH], data[PNG_COLOUR]
    if named is None or colour_type not in (_GRAY, _RGB):
        return
    if colour_type == _RGB:
        if depth == 16:
            raise PayloadError(
                RejectCode.UNSUPPORTED_PIXELS,
                "the PNG has 16 bits per channel and a transparent colour; save it again with 8 "
                "bits, or with an alpha channel",
            )
        image.info["transparency"] = tuple(sample & 0xFF for sample in named)
    elif image.mode == "L":  # other modes are not stretched
        most = (1 << depth) - 1
        image.info["transparency"] = (named & most) * (255 // most)
