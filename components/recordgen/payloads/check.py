"""Check an image and keep its bytes, or re-encode it if TensorFlow would display it incorrectly.

A trainer decodes with ``tf.io.decode_image(channels=3, expand_animations=False)``. A JPEG or PNG
that this op decodes as a person would see it keeps its bytes; all others are re-encoded:

    exif_orientation  ignored by the op: turned, as JPEG with the file's own quantisation tables
    cmyk              CMYK and YCCK JPEGs: to RGB, as JPEG
    alpha             transparent pixels: flattened on white, as PNG
    16_bit            more than 8 bits per channel: to 8 bit (the high byte), as PNG
    format            GIF, BMP, WEBP, TIFF, PBM, PGM and PPM: the first picture, as PNG
    image_size        larger than requested: downscaled (JPEG stays JPEG, all others PNG)
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from threading import Condition
from typing import Any, NamedTuple, TypeVar

import numpy as np
import simplejpeg
from PIL import Image

from recordgen.core import allowance
from recordgen.core.allowance import memory_limit
from recordgen.core.image_settings import Limits, PayloadSettings
from recordgen.core.limits import WEBP_PIXELS
from recordgen.core.ordered import KILLED, OUT_OF_TIME, STOPPED, has_python, start_main
from recordgen.errors import PayloadError, RunnerError
from recordgen.features import WEBP
from recordgen.measures.pictures import SmallPicture, bounded, jpeg_factor
from recordgen.payloads import opening, reencoding
from recordgen.payloads.header import UPRIGHT, FileHeader, stored_format
from recordgen.payloads.jpeg import JpegHeader, damaged, jpeg_header, profile_in, without_metadata
from recordgen.payloads.opening import decoded, file_header, open_image
from recordgen.payloads.png import check_png, png_colours, profile_colours
from recordgen.payloads.reencoding import CheckedImage, Placed, Prepared, change_of
from recordgen.rejects import RejectCode

# --- JPEG -----------------------------------------------------------------------------------------

# bytes ─read_jpeg─▶ Jpeg ─decoded_jpeg─▶ uint8 [h, w, channels]; only here is their decoder called.

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
        raise damaged(
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


def prepare_jpeg(data: bytes, settings: PayloadSettings) -> Prepared:
    """Prepare a JPEG as :func:`prepare` does."""
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
    return CheckedImage(jpeg.data, "jpeg", height, width, small=small)


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
    if orientation in reencoding.ON_THEIR_SIDE:
        width, height = height, width
    gray = jpeg.colorspace == "Gray"
    target = "GRAY" if gray else "RGB"
    pixels = decoded("JPEG", lambda: decoded_jpeg(jpeg, target, height, width))
    image = reencoding.turn(Image.fromarray(pixels[:, :, 0] if gray else pixels), orientation)
    stored = reencoding.stored_picture(image, "jpeg", placed, reason, settings)
    return stored._replace(orientation=orientation)


# --- all formats ----------------------------------------------------------------------------------


def prepare(data: bytes, settings: PayloadSettings) -> Prepared:
    """Read an image's header; refuse an image that announces too much before decoding it.

    Args and Raises: as :func:`check_image`.
    """
    if not data:
        raise PayloadError(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
    settings.limit.check_size(len(data))
    kind = _kind(data)
    opening.keep_pillow_memory_low()
    if settings.check == "none":
        return Prepared(partial(_unchecked, data, kind, settings), 0, 0)
    return prepare_jpeg(data, settings) if kind == "jpeg" else _prepare_other(data, kind, settings)


def _kind(data: bytes) -> str:
    """Return the format of a file as it is stored; empty for other formats."""
    kind = stored_format(data)
    return "" if kind == WEBP else kind  # not every TensorFlow decodes WEBPs


def _unchecked(data: bytes, kind: str, settings: PayloadSettings) -> CheckedImage:
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
            return CheckedImage(data, kind, height, width)
        image = open_image(_header(data, settings))
    except PayloadError as exc:
        if exc.code == RejectCode.UNSUPPORTED_PIXELS:
            raise
        return CheckedImage(data, kind, None, None)
    return CheckedImage(data, kind, image.height, image.width)


def _prepare_other(data: bytes, kind: str, settings: PayloadSettings) -> Prepared:
    file = _header(data, settings)
    # For the decoded image and one copy (flattened or re-encoded), which may turn out not needed.
    size = file.pixels * (16 if file.format == "WEBP" else 12)
    is_plain = file.bits <= 8 and not file.has_transparency
    is_fast = is_plain and (kind in ("png", "gif", "bmp") or file.bits == 1)
    seconds = file.decoded_pixels * (2e-8 if is_fast else 8e-8)
    return Prepared(partial(_check_other, data, kind, file, settings), size, seconds)


def _check_other(
    data: bytes, kind: str, file: FileHeader, settings: PayloadSettings
) -> CheckedImage:
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
        stored = CheckedImage(data, kind, image.height, image.width, small=small)
    else:
        stored = reencoding.reencode(image, file.orientation, reason, settings)
    profile = image.info.get("icc_profile") or b""
    colours = png_colours(data) if kind == "png" else profile_colours(profile)
    return stored._replace(colours=colours, frames=file.frames)


def _why_reencode(kind: str, file: FileHeader, image: Image.Image) -> str | None:
    if file.bits > 8 or image.mode.startswith("I"):
        return "16_bit"
    if kind != "png":
        return "format"
    if file.orientation != UPRIGHT:
        return "exif_orientation"
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


# --- here, or in a process of its own -------------------------------------------------------------

# Starting a process takes some tenths of a second, so only images whose header announces much work
# are checked there. All threads of a process share one budget of memory for decoded images:
#
#     a photo of 12 megapixels, baseline JPEG     2 MB   starts at once
#     a WEBP of 12 megapixels                   150 MB   waits until the budget has room
#     a PNG of 100 megapixels                   1.2 GB   exceeds the budget: decoded on its own
#
# An image that exceeds the budget is not refused: whether an image is accepted must not depend on
# the machine.

#: An image is checked in its own process if its estimated time exceeds this share of
#: image_seconds, so that starting a process costs little compared with the check.
APART_SHARE = 1 / 10

#: Images that need less skip the budget: threads cannot hold enough of them to matter.
SMALL_BYTES = 32_000_000

# Share of the machine's memory for all processes of a run, at most one for each core.
_SHARE = 1 / 2
_LEAST_BYTES = 256_000_000


class MemoryBudget:
    """A limit on the bytes that several threads hold at the same time."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._held = 0

    @contextmanager
    def hold(self, size: int, most: int) -> Iterator[None]:
        """Hold ``size`` bytes, after waiting until they fit in ``most`` or none are held."""
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0 or self._held + size <= most)
            self._held += size
        try:
            yield
        finally:
            with self._changed:
                self._held -= size
                self._changed.notify_all()


#: The budget of this process.
DECODING = MemoryBudget()


@cache
def default_budget() -> int:
    """Return half of the memory of this machine or container, divided by its cores."""
    cores = os.cpu_count() or 1
    return max(_LEAST_BYTES, int(memory_limit() * _SHARE / cores))


def check_image(data: bytes, settings: PayloadSettings, stored: int | None = None) -> CheckedImage:
    """Check and normalise one image.

    Args:
        data: the file's bytes.
        settings: ``check``, ``limit`` and the settings of :mod:`recordgen.payloads.reencoding` are
            used.
        stored: bytes that it takes in the file that holds it; None: as many as it has.

    Raises: PayloadError: the image is refused.
    """
    decoding, limit = settings.decoding, settings.limit
    found = decoding.result_of(data)
    if found is None:
        try:
            prepared = prepare(data, settings)
            decoding.spend(prepared.seconds, len(data) if stored is None else stored, limit)
            found = _outcome(data, prepared, settings)
        except MemoryError as exc:
            raise opening.out_of_memory() from exc
        size = 0 if isinstance(found, PayloadError) else len(found.data)
        decoding.keep(data, prepared.seconds, found, size)
    if isinstance(found, PayloadError):
        raise PayloadError(found.code, found.message)
    checked: CheckedImage = found
    return checked


def _outcome(
    data: bytes, prepared: Prepared, settings: PayloadSettings
) -> CheckedImage | PayloadError:
    """Return the checked image, or why it is refused, within the budget of memory.

    Raises: MemoryError, PayloadError: memory does not suffice now.
    """
    apart = _is_costly(prepared, settings)
    try:
        if not apart and prepared.bytes < SMALL_BYTES:
            return prepared.decode()
        with DECODING.hold(int(prepared.bytes), settings.limit.memory_bytes or default_budget()):
            return check_apart(data, settings) if apart else prepared.decode()
    except PayloadError as exc:
        if exc.code == RejectCode.OUT_OF_MEMORY:
            raise
        return exc


def _is_costly(prepared: Prepared, settings: PayloadSettings) -> bool:
    return prepared.seconds > settings.limit.seconds * APART_SHARE and has_python()


def decoded_mask(file: FileHeader, data: bytes, limit: Limits) -> Image.Image:
    """Return the decoded picture of a mask, of which the caller has compared the header.

    If the header announces much work, the decoder runs in its own process first, as for an image.

    Raises: PayloadError: it is too large, or the decoder crashes or takes too long.
    """
    limit.check_size(len(data))
    limit.check_pixels(file.height, file.width)
    look = PayloadSettings(limit=limit)
    if _is_costly(prepare(data, look), look):
        check_image(data, look)
        allowance.count_processes()
    image = open_image(file)
    decoded(file.format, image.load)
    return image


def picture_in_small(
    data: bytes, settings: PayloadSettings, stored: int | None = None
) -> SmallPicture | None:
    """Return the downscaled image for near-duplicate checks; None if it does not decode.

    Args: as for :func:`check_image`; ``settings`` note looks.
    """
    try:
        return check_image(data, settings, stored).small
    except PayloadError:
        return None  # making the example reports the reason


def check_apart(data: bytes, settings: PayloadSettings) -> CheckedImage:
    """Check an image in another process, for at most ``image_seconds`` of processor time.

    Args: as for :func:`check_image`.

    Raises: PayloadError: the image is refused; MemoryError: the process ran out of memory.
    """
    with start_main(__name__) as process:
        answer, _ = process.communicate(pickle.dumps((data, settings)))
    status = process.returncode
    if status == OUT_OF_TIME:
        raise PayloadError(
            RejectCode.TOO_SLOW,
            f"an image must be decoded and checked within {settings.limit.seconds:g} s of "
            f"processor time; --limit seconds=… allows more",
        )
    if status == KILLED:
        raise MemoryError("the system killed the process that checked an image, to free memory")
    if status < 0 and status not in STOPPED:
        name = signal.Signals(-status).name
        raise PayloadError(RejectCode.CORRUPT, f"the decoder crashed ({name})")
    if status:
        raise RunnerError(f"the process that checked an image exited with {status}; run it again")
    found: CheckedImage | PayloadError | MemoryError = pickle.loads(answer)
    if isinstance(found, Exception):
        raise found
    return found


def main() -> None:
    """Check the image on stdin; write the result to stdout."""
    warnings.simplefilter("ignore")  # Pillow's warnings name no file
    found: CheckedImage | PayloadError | MemoryError
    try:
        data, settings = pickle.load(sys.stdin.buffer)
        # Processor time, not a timeout in the parent: a busy machine must not make an image too
        # slow.
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_PROF, settings.limit.seconds)
        found = prepare(data, settings).decode()
    except (PayloadError, MemoryError) as exc:
        found = exc
    except KeyboardInterrupt:  # the terminal interrupts all processes
        raise SystemExit(128 + signal.SIGINT) from None
    try:
        pickle.dump(found, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)  # the parent is dead: exit without a message about the pipe
