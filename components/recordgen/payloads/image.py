"""Check an image and keep its bytes, or re-encode it if TensorFlow would display it incorrectly.

A trainer decodes with ``tf.io.decode_image(channels=3, expand_animations=False)``. A JPEG or PNG
that this op decodes as a person would see it keeps its bytes; all others are re-encoded:

    exif_orientation  ignored by the op: turned, as JPEG with the file's own quantisation tables
    cmyk              CMYK and YCCK JPEGs: to RGB, as JPEG
    alpha             transparent pixels, and any WEBP with an alpha channel: flattened on white, as
                      PNG
    16_bit            more than 8 bits per channel: to 8 bit (the high byte), as PNG
    format            GIF, BMP, WEBP, TIFF, ICO, PBM, PGM and PPM: the first picture, as PNG; with
                      ``encode=webp``, animated WEBPs only
    image_size        larger than requested: downscaled (JPEG stays JPEG, all others PNG)
"""

from __future__ import annotations

from functools import partial

from PIL import Image

from recordgen.core.limits import WEBP_PIXELS
from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.features import WEBP
from recordgen.payloads import reencoding
from recordgen.payloads.header import UPRIGHT, FileHeader
from recordgen.payloads.jpeg_decoding import prepare_jpeg, read_jpeg
from recordgen.payloads.opening import decoded, file_header, keep_pillow_memory_low, open_image
from recordgen.payloads.png import check_png
from recordgen.payloads.profiles import png_colours, profile_colours
from recordgen.payloads.resizing import change_of, encoder_bytes
from recordgen.payloads.stored import stored_format
from recordgen.rejects import RejectCode


def prepare(data: bytes, settings: PayloadSettings) -> reencoding.Prepared:
    """Read an image's header; refuse an image that announces too much before decoding it.

    Args and Raises: as :func:`recordgen.payloads.check.check_image`.
    """
    if not data:
        raise PayloadError(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
    settings.limit.check_size(len(data))
    kind = _kind(data, settings)
    keep_pillow_memory_low()
    if settings.check == "none":
        return reencoding.Prepared(partial(_unchecked, data, kind, settings), 0, 0)
    return prepare_jpeg(data, settings) if kind == "jpeg" else _prepare_other(data, kind, settings)


def _kind(data: bytes, settings: PayloadSettings) -> str:
    """Return the format of a file as it is stored; empty for other formats."""
    kind = stored_format(data)
    # Not every TensorFlow decodes WEBPs: they are stored only on request.
    return "" if kind == WEBP and settings.encode.format != WEBP else kind


def _unchecked(data: bytes, kind: str, settings: PayloadSettings) -> reencoding.CheckedImage:
    """Return the unchanged bytes, with its size if the header is readable.

    Raises:
        PayloadError: TensorFlow does not decode this kind of JPEG, and other decoders of records
            may write beyond their buffers.
    """
    try:
        if kind == "jpeg":
            jpeg = decoded("JPEG", lambda: read_jpeg(data))
            height, width = jpeg.header.height, jpeg.header.width
            settings.limit.check_pixels(height, width)
            return reencoding.CheckedImage(data, kind, height, width)
        image = open_image(_header(data, settings))
    except PayloadError as exc:
        if exc.code == RejectCode.UNSUPPORTED_PIXELS:
            raise
        return reencoding.CheckedImage(data, kind, None, None)
    return reencoding.CheckedImage(data, kind, image.height, image.width)


def _prepare_other(data: bytes, kind: str, settings: PayloadSettings) -> reencoding.Prepared:
    file = _header(data, settings)
    # For the decoded image and one copy (flattened or re-encoded), which may turn out not needed.
    size = file.pixels * (16 if file.format == "WEBP" else 12)
    size += encoder_bytes((file.width, file.height), settings)
    is_plain = file.bits <= 8 and not file.has_transparency
    is_fast = is_plain and (kind in ("png", "gif", "bmp") or file.bits == 1)
    seconds = file.decoded_pixels * (2e-8 if is_fast else 8e-8)
    return reencoding.Prepared(partial(_check_other, data, kind, file, settings), size, seconds)


def _check_other(
    data: bytes, kind: str, file: FileHeader, settings: PayloadSettings
) -> reencoding.CheckedImage:
    image = open_image(file)
    if settings.check == "decode":
        if kind == "png":
            check_png(data)  # Pillow stops at the last row and skips the checksums of pixel data
        reencoding.load(image)
    reason = _why_reencode(kind, file, image)
    if reason is None:
        reason, _ = change_of(kind, image.size, settings)
    if reason is None:
        small = reencoding.in_small(image, settings) if settings.check == "decode" else None
        stored = reencoding.CheckedImage(data, kind, image.height, image.width, small=small)
    else:
        stored = reencoding.reencode(image, file.orientation, reason, settings)
    profile = image.info.get("icc_profile") or b""
    colours = png_colours(data) if kind == "png" else profile_colours(profile)
    return stored._replace(colours=colours, frames=file.frames)


def _why_reencode(kind: str, file: FileHeader, image: Image.Image) -> str | None:
    if file.bits > 8 or image.mode.startswith("I"):
        return "16_bit"
    if kind not in ("png", WEBP) or file.is_animated:
        return "format"
    if file.orientation != UPRIGHT:
        return "exif_orientation"
    if kind == WEBP:  # the op accepts no fourth channel, even if it is opaque
        return "alpha" if image.mode != "RGB" else None
    return "alpha" if reencoding.is_transparent(image) else None


def _header(data: bytes, settings: PayloadSettings) -> FileHeader:
    """Read a file's header. Raises: PayloadError: the picture or a tile of it is too large."""
    file = file_header(data)
    settings.limit.check_pixels(file.height, file.width)
    if file.format == "WEBP":
        try:
            WEBP_PIXELS.check(file.pixels)
        except ValueError as exc:
            raise PayloadError(RejectCode.TOO_MANY_PIXELS, f"{exc}; save it as PNG") from exc
    if file.part_pixels > settings.limit.pixels:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"a tile of a TIFF must have at most {settings.limit.pixels:,} pixels (got "
            f"{file.part_pixels:,}); --limit pixels=… allows more",
        )
    return file
