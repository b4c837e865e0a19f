"""Check an image and keep its bytes, or re-encode it if TensorFlow would display it incorrectly.

A trainer decodes with ``tf.io.decode_image(channels=3, expand_animations=False)``. An image that
this op decodes as a person would see it keeps its bytes; all others are re-encoded:

    exif_orientation  ignored by the op: turned, as JPEG with the file's own quantisation tables
    cmyk              CMYK and YCCK JPEGs: to RGB, as JPEG
    alpha             transparent pixels, and any WEBP with an alpha channel: flattened on white, as
                      PNG
    16_bit            to 8 bit (the high byte), as PNG
    bmp               any BMP except plain 24 bit (palettes would be read as gray), as PNG
    gif               a first frame smaller than its canvas or than another frame, colours outside
                      its palette, or blocks that TensorFlow reads otherwise, as PNG
    format            WEBP, TIFF and ICO, which the op cannot read, as PNG; with ``encode=webp``,
                      animated WEBPs only
    image_size        larger than requested: downscaled (JPEG stays JPEG, all others PNG)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from PIL import Image, JpegImagePlugin

from recordgen.core.facts import ImageNote
from recordgen.core.facts.perceptual_hash import SmallPicture, bounded, jpeg_factor, small_picture
from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.features import RAW, WEBP
from recordgen.image_settings import Limits
from recordgen.payloads.apart import check_apart
from recordgen.payloads.bmp import RUN_LENGTHS, is_plain_bmp
from recordgen.payloads.budget import DECODING, SMALL_BYTES, default_budget, keep_pillow_memory_low
from recordgen.payloads.eight_bit import is_transparent, to_8_bit
from recordgen.payloads.frames import count_frames
from recordgen.payloads.gif import Gif, GifFrame, read_gif
from recordgen.payloads.header import UPRIGHT, FileHeader
from recordgen.payloads.jpeg import Jpeg, decoded_jpeg, profile_in, read_jpeg
from recordgen.payloads.libtiff import check_errors
from recordgen.payloads.opening import decoded, file_header, open_image, out_of_memory
from recordgen.payloads.png import PNG_DEPTH, check_png
from recordgen.payloads.profiles import png_colours, profile_colours
from recordgen.payloads.resizing import (
    Placed,
    change_of,
    encoded,
    encoder_bytes,
    measured_psnr,
    stored_kind,
)
from recordgen.payloads.webp import is_webp
from recordgen.rejects import RejectCode

_MAGIC = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
)

#: Most pixels on a side: libpng's default limit. Images of other formats may become PNGs.
MAX_SIDE = 1_000_000

# Limit on the pixels of all frames of a GIF, as a multiple of the limit for one image.
_GIF_IMAGES = 10

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

_ON_THEIR_SIDE = (5, 6, 7, 8)

#: An image is checked in its own process if its estimated time exceeds this share of
#: image_seconds, so that starting a process costs little compared with the check.
APART_SHARE = 1 / 10


class CheckedImage(NamedTuple):
    """An image as it is stored.

    Attributes:
        data: the encoded bytes.
        format: ``jpeg``, ``png``, ``gif``, ``bmp``, ``webp`` or ``raw``; empty if ``check=none``
            does not recognise it.
        height: pixels; None if ``check=none`` cannot read the header.
        width: pixels; None if ``check=none`` cannot read the header.
        reencoded: reason for the re-encoding (see the module), or None.
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


def check_image(data: bytes, settings: PayloadSettings, uri: str = "the image") -> CheckedImage:
    """Check and normalise one image.

    Args:
        data: the file's bytes.
        settings: ``check``, ``limit`` and the settings of :mod:`recordgen.payloads.resizing` are
            used.
        uri: name of the image for the log, if its check is slow.

    Raises:
        PayloadError: the image is refused.
    """
    try:
        prepared = prepare(data, settings)
        apart = prepared.seconds > settings.limit.seconds * APART_SHARE
        if not apart and prepared.bytes < SMALL_BYTES:
            return prepared.decode()
        with DECODING.hold(int(prepared.bytes), settings.limit.memory_bytes or default_budget()):
            return check_apart(data, settings, uri) if apart else prepared.decode()
    except MemoryError as exc:
        raise out_of_memory() from exc


def prepare(data: bytes, settings: PayloadSettings) -> Prepared:
    """Read an image's header; refuse an image that announces too much before decoding it.

    Args and Raises: as :func:`check_image`.
    """
    if not data:
        raise PayloadError(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
    check_size(len(data), settings.limit)
    kind = _kind(data, settings)
    keep_pillow_memory_low()
    if settings.check == "none":
        return Prepared(partial(_unchecked, data, kind, settings), 0, 0)
    return _prepare_jpeg(data, settings) if kind == "jpeg" else _prepare_other(data, kind, settings)


def _kind(data: bytes, settings: PayloadSettings) -> str:
    """Return the format of a file that may keep its bytes; empty for other formats."""
    # Not every TensorFlow decodes WEBPs: they are stored only on request.
    if settings.encode.format == WEBP and is_webp(data):
        return WEBP
    return next((name for magic, name in _MAGIC if data.startswith(magic)), "")


def picture_in_small(data: bytes, settings: PayloadSettings) -> SmallPicture | None:
    """Return the downscaled image for near-duplicate checks; None if it does not decode.

    ``settings`` are :meth:`PayloadSettings.to_look`.
    """
    try:
        return check_image(data, settings).small
    except PayloadError:
        return None  # making the example reports the reason


def check_size(size: int, limit: Limits) -> None:
    """Refuse a payload of too many bytes. Raises: PayloadError."""
    if size > limit.bytes:
        raise too_many_bytes(size, limit)


def too_many_bytes(size: int, limit: Limits) -> PayloadError:
    """Return the refusal of a payload with at least ``size`` bytes."""
    return PayloadError(
        RejectCode.TOO_MANY_BYTES,
        f"a file must be at most {limit.mb:g} MB (got {size / 1e6:.1f} MB); "
        f"--limit mb=… allows more",
    )


def check_pixels(height: int, width: int, settings: PayloadSettings) -> None:
    """Refuse an image that announces too many pixels. Raises: PayloadError."""
    if max(height, width) > MAX_SIDE:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"an image must have at most {MAX_SIDE:,} pixels on each side, TensorFlow's limit for "
            f"PNGs (got {width}×{height}); cut it into several images",
        )
    if height * width > settings.limit.pixels:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"an image must have at most {settings.limit.pixels:,} pixels (got {width}×{height} "
            f"= {height * width:,}); --limit pixels=… allows more",
        )


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
            check_pixels(height, width, settings)
            return CheckedImage(data, kind, height, width, is_gray=jpeg.colorspace == "Gray")
        image = open_image(_header(data, settings))
    except PayloadError as exc:
        if exc.code == RejectCode.UNSUPPORTED_PIXELS:
            raise
        return CheckedImage(data, kind, None, None)
    return CheckedImage(data, kind, image.height, image.width, is_gray=_is_gray(image))


# --- JPEG -------------------------------------------------------------------------------------


def _prepare_jpeg(data: bytes, settings: PayloadSettings) -> Prepared:
    jpeg = decoded("JPEG", lambda: read_jpeg(data))
    header = jpeg.header
    check_pixels(header.height, header.width, settings)
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
    return Prepared(partial(_checked_jpeg, jpeg, settings), size, seconds)


def _is_cmyk(jpeg: Jpeg) -> bool:
    return jpeg.colorspace in ("CMYK", "YCCK")


def _checked_jpeg(jpeg: Jpeg, settings: PayloadSettings) -> CheckedImage:
    stored = _check_jpeg(jpeg, settings)
    if jpeg.header.has_profile:
        stored = stored._replace(colours=profile_colours(profile_in(jpeg.data)))
    return stored


def _check_jpeg(jpeg: Jpeg, settings: PayloadSettings) -> CheckedImage:
    height, width, orientation = jpeg.header.height, jpeg.header.width, jpeg.header.orientation
    is_cmyk = _is_cmyk(jpeg)
    upright = (height, width) if orientation in _ON_THEIR_SIDE else (width, height)
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
        return _reencode(open_image(file), orientation, reason, settings)
    is_gray = jpeg.colorspace == "Gray"
    return CheckedImage(jpeg.data, "jpeg", height, width, small=small, is_gray=is_gray)


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
) -> CheckedImage:
    """Decode at the smallest DCT scale that covers the stored size, then turn and resize."""
    width, height = placed.least_size()
    orientation = jpeg.header.orientation
    if orientation in _ON_THEIR_SIDE:
        width, height = height, width
    gray = jpeg.colorspace == "Gray"
    target = "GRAY" if gray else "RGB"
    pixels = decoded("JPEG", lambda: decoded_jpeg(jpeg, target, height, width))
    image = turn(Image.fromarray(pixels[:, :, 0] if gray else pixels), orientation)
    stored = _encoded(image, "jpeg", placed, reason, settings)
    return stored._replace(orientation=orientation)


# --- everything else --------------------------------------------------------------------------


def _prepare_other(data: bytes, kind: str, settings: PayloadSettings) -> Prepared:
    file = _header(data, settings)
    pixels = file.pixels
    is_deep = kind == "png" and data[PNG_DEPTH] == 16
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
    elif kind == "bmp" and file.compression in RUN_LENGTHS:
        seconds += len(data) * 3e-7 + pixels * 1e-7  # run lengths are decoded in Python
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
        _load(image)
    reason = _why_reencode(data, kind, file, image)
    if reason is None and gif is not None and not gif.is_usual:
        reason = "gif"
    if reason is None:
        reason, _ = change_of(kind, image.size, settings)
    if reason is None:
        small = _in_small(image, settings) if settings.check == "decode" else None
        is_gray = _is_gray(image)
        stored = CheckedImage(data, kind, image.height, image.width, small=small, is_gray=is_gray)
    else:
        stored = _reencode(image, file.orientation, reason, settings)
    profile = image.info.get("icc_profile") or b""
    return stored._replace(
        colours=png_colours(data) if kind == "png" else profile_colours(profile),
        frames=count_frames(data, file.format) if gif is None else len(gif.frames),
    )


def _load(image: Image.Image) -> None:
    """Decode an image. Raises: PayloadError."""
    name = image.format or ""
    load = partial(check_errors, image.load) if name == "TIFF" else image.load
    decoded(name, load)


def _read_gif(data: bytes, settings: PayloadSettings) -> Gif:
    """Read the blocks of a GIF. Raises: PayloadError: its frames have too many pixels."""
    gif = read_gif(data)
    frames = gif.frames
    for frame in frames:
        check_pixels(frame.height, frame.width, settings)
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
    if kind not in ("png", "gif", "bmp", WEBP):
        return "format"
    if file.is_animated:
        return "format"
    if file.orientation != UPRIGHT:
        return "exif_orientation"
    if kind == "bmp":
        return None if is_plain_bmp(data) else "bmp"
    if kind == "png" and data[PNG_DEPTH] == 16:
        return "16_bit"
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


def _is_gray(image: Image.Image) -> bool:
    """Return whether an image has one channel, not counting an alpha channel."""
    return image.mode in ("1", "L", "LA") or image.mode.startswith(("I", "F"))


def _reencode(
    image: Image.Image, orientation: int, reason: str, settings: PayloadSettings
) -> CheckedImage:
    """Store the image as a person would see it: upright, opaque, 8 bit, gray or RGB."""
    return decoded(image.format or "", lambda: _reencoded(image, orientation, reason, settings))


def _reencoded(
    image: Image.Image, orientation: int, reason: str, settings: PayloadSettings
) -> CheckedImage:
    _load(image)
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
    stored = _encoded(upright, kind, placed, reason, settings, **jpeg)
    return stored._replace(orientation=orientation)


def turn(image: Image.Image, orientation: int) -> Image.Image:
    """Return an image upright, given its Exif orientation."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def _encoded(
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
        small=_in_small(image, settings),
        is_gray=_is_gray(image),
        placed=placed if placed.is_changed else None,
        psnr=None if kind == RAW else measured_psnr(image, data),
    )


def _in_small(image: Image.Image, settings: PayloadSettings) -> SmallPicture | None:
    """Return the downscaled image if a check needs it."""
    if not settings.needs_looks:
        return None
    return small_picture(decoded(image.format or "", lambda: to_8_bit(image)))


# --- decoders ---------------------------------------------------------------------------------


def _header(data: bytes, settings: PayloadSettings) -> FileHeader:
    """Read a file's header. Raises: PayloadError: the picture or a tile of it is too large."""
    file = file_header(data)
    check_pixels(file.height, file.width, settings)
    if file.part_pixels > settings.limit.pixels:
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS,
            f"a tile of a TIFF must have at most {settings.limit.pixels:,} pixels (got "
            f"{file.part_pixels:,}); --limit pixels=… allows more",
        )
    return file
