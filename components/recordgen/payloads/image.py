"""Check an image and keep its bytes, or re-encode it if TensorFlow would display it incorrectly.

A trainer decodes with ``tf.io.decode_image(channels=3, expand_animations=False)``. An image that
this op decodes as a person would see it keeps its bytes; all others are re-encoded:

    exif_orientation  ignored by the op: turned, as JPEG with the file's own quantisation tables
    cmyk              CMYK and YCCK JPEGs: to RGB, as JPEG
    alpha             transparent pixels, and any WEBP with an alpha channel: flattened on white, as
                      PNG
    16_bit            more than 8 bits per channel: to 8 bit (the high byte), as PNG
    bmp               any BMP except plain 24 bit (palettes would be read as gray), as PNG
    gif               a first frame smaller than its canvas or than another frame, colours outside
                      its palette, or blocks that TensorFlow reads otherwise, as PNG
    format            WEBP, TIFF, ICO, PBM, PGM and PPM, which the op cannot read, as PNG; with
                      ``encode=webp``, animated WEBPs only
    image_size        larger than requested: downscaled (JPEG stays JPEG, all others PNG)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import Any

from PIL import Image

from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.features import WEBP
from recordgen.payloads.bmp import is_plain_bmp
from recordgen.payloads.budget import keep_pillow_memory_low
from recordgen.payloads.eight_bit import is_transparent
from recordgen.payloads.gif import Gif, GifFrame, read_gif
from recordgen.payloads.header import UPRIGHT, FileHeader
from recordgen.payloads.jpeg_decoding import prepare_jpeg, read_jpeg
from recordgen.payloads.opening import decoded, file_header, open_image
from recordgen.payloads.png import check_png, chunk_places
from recordgen.payloads.profiles import png_colours, profile_colours
from recordgen.payloads.reencoding import (
    CheckedImage,
    Prepared,
    has_one_channel,
    in_small,
    load,
    reencode,
)
from recordgen.payloads.resizing import change_of, encoder_bytes
from recordgen.payloads.stored import stored_format
from recordgen.payloads.tiff_directory import pages
from recordgen.rejects import RejectCode

# Limit on the pixels of all frames of a GIF, as a multiple of the limit for one image.
_GIF_IMAGES = 10


def prepare(data: bytes, settings: PayloadSettings) -> Prepared:
    """Read an image's header; refuse an image that announces too much before decoding it.

    Args and Raises: as :func:`recordgen.payloads.check.check_image`.
    """
    if not data:
        raise PayloadError(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
    settings.limit.check_size(len(data))
    kind = _kind(data, settings)
    keep_pillow_memory_low()
    if settings.check == "none":
        return Prepared(partial(_unchecked, data, kind, settings), 0, 0)
    return prepare_jpeg(data, settings) if kind == "jpeg" else _prepare_other(data, kind, settings)


def _kind(data: bytes, settings: PayloadSettings) -> str:
    """Return the format of a file that may keep its bytes; empty for other formats."""
    kind = stored_format(data)
    # Not every TensorFlow decodes WEBPs: they are stored only on request.
    return "" if kind == WEBP and settings.encode.format != WEBP else kind


def _unchecked(data: bytes, kind: str, settings: PayloadSettings) -> CheckedImage:
    """Return the unchanged bytes, with size and channels if the header is readable.

    Raises:
        PayloadError: TensorFlow does not decode this kind of JPEG, and other decoders of records
            may write beyond their buffers.
    """
    try:
        if kind == "jpeg":
            jpeg = decoded("JPEG", lambda: read_jpeg(data))
            height, width = jpeg.header.height, jpeg.header.width
            settings.limit.check_pixels(height, width)
            return CheckedImage(data, kind, height, width, is_gray=jpeg.colorspace == "Gray")
        image = open_image(_header(data, settings))
    except PayloadError as exc:
        if exc.code == RejectCode.UNSUPPORTED_PIXELS:
            raise
        return CheckedImage(data, kind, None, None)
    return CheckedImage(data, kind, image.height, image.width, is_gray=has_one_channel(image))


def _prepare_other(data: bytes, kind: str, settings: PayloadSettings) -> Prepared:
    file = _header(data, settings)
    pixels = file.pixels
    is_deep = kind == "png" and file.is_deep
    # For the decoded image and one copy (flattened or re-encoded), which may turn out not needed; a
    # transparent colour of 16 bits takes two decodings.
    size = pixels * (20 if is_deep else 16 if file.format == "WEBP" else 12)
    size += encoder_bytes((file.width, file.height), settings)
    is_fast = kind in ("png", "gif", "bmp") and not is_deep
    seconds = file.decoded_pixels * (2e-8 if is_fast else 8e-8)
    gif = None
    if kind == "gif" and settings.check == "decode":
        gif = _read_gif(data, settings)
        seconds += sum(frame.width * frame.height for frame in gif.frames) * 1e-8
    return Prepared(partial(_check_other, data, kind, file, gif, settings), size, seconds)


def _check_other(
    data: bytes,
    kind: str,
    file: FileHeader,
    gif: Gif | None,
    settings: PayloadSettings,
) -> CheckedImage:
    image = open_image(file)
    if gif is not None:
        _decode_frames(gif.frames)
    elif settings.check == "decode":
        if kind == "png":
            check_png(data)  # Pillow stops at the last row and skips the checksums of pixel data
        load(image)
    reason = _why_reencode(data, kind, file, image)
    if reason is None and gif is not None and not gif.is_usual:
        reason = "gif"
    if reason is None:
        reason, _ = change_of(kind, image.size, settings)
    if reason is None:
        small = in_small(image, settings) if settings.check == "decode" else None
        is_gray = has_one_channel(image)
        stored = CheckedImage(data, kind, image.height, image.width, small=small, is_gray=is_gray)
    else:
        stored = reencode(image, file.orientation, reason, settings)
    profile = image.info.get("icc_profile") or b""
    return stored._replace(
        colours=png_colours(data) if kind == "png" else profile_colours(profile),
        frames=count_frames(data, file.format) if gif is None else len(gif.frames),
    )


def _read_gif(data: bytes, settings: PayloadSettings) -> Gif:
    """Read the blocks of a GIF. Raises: PayloadError: its frames have too many pixels."""
    gif = read_gif(data)
    frames = gif.frames
    for frame in frames:
        settings.limit.check_pixels(frame.height, frame.width)
    pixels = sum(frame.width * frame.height for frame in frames)
    most = _GIF_IMAGES * settings.limit.pixels
    if pixels > most:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"the frames of a GIF must have at most {most:,} pixels together (got {pixels:,} in "
            f"{len(frames):,} frames); --limit pixels=… allows more",
        )
    return gif


def _decode_frames(frames: Sequence[GifFrame]) -> None:
    """Decompress each frame of a GIF, only from its own blocks.

    If the LZW end code or the last block of a frame comes before its last pixel, Pillow fills the
    frame from the following bytes of the file; giflib, which TensorFlow uses, refuses it.
    """
    for width, height, code_bits, blocks in frames:
        decoded("GIF", partial(Image.frombytes, "L", (width, height), blocks, "gif", code_bits))


def _why_reencode(data: bytes, kind: str, file: FileHeader, image: Image.Image) -> str | None:
    if file.is_deep:
        return "16_bit"
    if kind not in ("png", "gif", "bmp", WEBP):
        return "format"
    if file.is_animated:
        return "format"
    if file.orientation != UPRIGHT:
        return "exif_orientation"
    if kind == "bmp":
        return None if is_plain_bmp(data) else "bmp"
    if kind == "gif" and not _is_plain_gif(image):
        return "gif"
    if kind == WEBP:  # the op accepts no fourth channel, even if it is opaque
        return "alpha" if image.mode != "RGB" else None
    return "alpha" if is_transparent(image) else None


def _is_plain_gif(image: Image.Image) -> bool:
    """Return whether the first frame fills its canvas and uses only colours of its palette."""
    tile = getattr(image, "tile", None)  # position of the frame on the canvas
    if tile and tuple(tile[0][1]) != (0, 0, *image.size):
        return False
    decoded("GIF", image.load)
    if image.mode != "P" or image.palette is None:
        return True  # Pillow's form of a palette of grays
    highest: Any = image.getextrema()[1]
    return bool(highest < len(image.palette.palette) // 3)


def _header(data: bytes, settings: PayloadSettings) -> FileHeader:
    """Read a file's header. Raises: PayloadError: the picture or a tile of it is too large."""
    file = file_header(data)
    settings.limit.check_pixels(file.height, file.width)
    if file.part_pixels > settings.limit.pixels:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"a tile of a TIFF must have at most {settings.limit.pixels:,} pixels (got "
            f"{file.part_pixels:,}); --limit pixels=… allows more",
        )
    return file


#: A file with more pages counts as one with this many.
MAX_PAGES = 10_000

# Tags of a TIFF (section 8): kinds of a page as flags, and as a number in older files.
_NEW_KIND, _OLD_KIND = 254, 255
_REDUCED, _MASK = 1, 4
_OLD_REDUCED = 2
_MOST_FRAMES = (1 << 31) - 1  # numbers of a PNG have 31 bits (section 7.1)
_RIFF_BYTES = 12  # before the first chunk of a WEBP


def count_frames(data: bytes, kind: str) -> int | None:
    """Return the number of pictures in a PNG, WEBP or TIFF, at least 1; None for other formats.

    Smaller copies of a page and masks do not count.
    """
    if kind == "PNG":
        return _frames_of_png(data)
    if kind == "WEBP":
        return max(1, _frames_of_webp(data))
    return max(1, _pages(data)) if kind == "TIFF" else None


def _frames_of_png(data: bytes) -> int:
    for kind, at, size in chunk_places(data):
        if kind == b"acTL" and size == 8:
            [count] = struct.unpack_from(">I", data, at)
            return count if 0 < count <= _MOST_FRAMES else 1
        if kind == b"IDAT":
            break
    return 1


def _frames_of_webp(data: bytes) -> int:
    count, at = 0, _RIFF_BYTES
    while at + 8 <= len(data):
        count += data.startswith(b"ANMF", at)
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return count


def _pages(data: bytes) -> int:
    """Count directories that are neither smaller copies nor masks."""
    count = 0
    for numbers in pages(data, MAX_PAGES):
        is_copy = numbers.get(_NEW_KIND, 0) & (_REDUCED | _MASK)
        count += not (is_copy or numbers.get(_OLD_KIND) == _OLD_REDUCED)
    return count
