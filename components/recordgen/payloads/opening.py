"""The one way to Pillow: read the header, drop what Pillow must not see, open the rest.

    bytes ─file_header─▶ FileHeader ─(limits of the caller)─▶ open_image ─▶ Image

Pillow parses metadata while it opens a file, some of it in quadratic time or with memory that no
limit bounds. :func:`file_header` takes time and memory that grow with the file
only, leaves Pillow one picture, and refuses files with more parts than programs write.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, TypeVar

from PIL import Image, UnidentifiedImageError, _imaging

from recordgen.errors import PayloadError
from recordgen.features import WEBP
from recordgen.payloads.header import (
    UPRIGHT,
    FileHeader,
    corrupt,
    exif_orientation,
    kind_of,
    stored_format,
    truncated,
    valid_orientation,
)
from recordgen.payloads.jpeg import jpeg_header, without_metadata
from recordgen.payloads.png import PNG_COLOUR, PNG_DEPTH, PNG_MAGIC, png_header
from recordgen.rejects import RejectCode

# --- TIFF (Revision 6.0, section 2) --------------------------------------------------------------

# Directories are read without decoding. Pillow and libtiff read all values of every tag, also if
# thousands of tags name the same bytes. So they get a directory with only the tags that say where
# the pixels are and what they mean.

# The byte order by the first bytes, and where the offset of the first directory is.
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_OFFSET = 4
_ENTRY = "HHI4s"

TIFF_MAGICS = tuple(_ORDERS)

#: Most values of a tag, such as offsets of strips, which Pillow decodes one by one. A palette of 16
#: bits has nearly as many.
MAX_VALUES = 200_000

#: A file with more pages counts as one with this many.
MAX_PAGES = 10_000

# Tags, sections 8 to 22
_NEW_KIND, _OLD_KIND, _WIDTH, _HEIGHT, _BITS, _COMPRESSION = range(254, 260)
_PHOTOMETRIC, _WHITE_IS_ZERO = 262, 0
_STRIP_OFFSETS, _ORIENTATION, _SAMPLES, _STRIP_ROWS, _PLANES = 273, 274, 277, 278, 284
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS = 322, 323, 324
_JPEG_TABLES, _PROFILE = 347, 34675

# The tags that decoders need. 266: fill order; 279 and 325: sizes of strips and tiles; 292, 293,
# 317 and 332: fax, predictor, inks; 320: palette; 338 and 339: meaning and format of samples; 529
# to 532: YCbCr
_DECODED = {
    *(_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _SAMPLES, _PLANES, _PROFILE),
    *(_STRIP_OFFSETS, _STRIP_ROWS, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _JPEG_TABLES),
    *(266, 279, 292, 293, 317, 320, 325, 332, 338, 339, 529, 530, 531, 532),
}

# Kinds of a page as flags, and as a number in older files
_REDUCED, _MASK, _OLD_REDUCED = 1, 4, 2

_SEPARATE = 2  # planes: each sample has strips or tiles of its own
_PLAIN, _OLD_JPEG, _JPEG = 1, 6, 7  # compressions
_NUMBERS = {3: "H", 4: "I"}  # types of values: SHORT and LONG
_BYTES = (1, 7)  # BYTE and UNDEFINED


class Entry(NamedTuple):
    """An entry of a directory; ``field`` has the bytes of the values, or of their offset."""

    tag: int
    kind: int
    values: int
    field: bytes


class Directory(NamedTuple):
    """A directory of a TIFF: a page, a smaller copy of one, or a mask. Entries are by tag."""

    data: bytes
    entries: Mapping[int, Entry]

    def number(self, tag: int, default: int) -> int:
        """Return the first number of an entry; ``default`` if there is none in the file."""
        entry = self.entries.get(tag)
        if entry is None or entry.kind not in _NUMBERS or not entry.values:
            return default
        order = _ORDERS[self.data[:4]]
        number = struct.Struct(order + _NUMBERS[entry.kind])
        source, at = entry.field, 0
        if number.size * entry.values > len(source):
            source, [at] = self.data, struct.unpack(order + "I", source)
        return (
            int(number.unpack_from(source, at)[0]) if at + number.size <= len(source) else default
        )

    @property
    def is_page(self) -> bool:
        """Whether it is neither a smaller copy nor a mask."""
        is_copy = self.number(_NEW_KIND, 0) & (_REDUCED | _MASK)
        return not is_copy and self.number(_OLD_KIND, 0) != _OLD_REDUCED


def directories(data: bytes) -> Iterator[Directory]:
    """Yield the directories up to the first that is cut, or overlaps others."""
    order, seen, left = _ORDERS[data[:4]], set[int](), len(data)
    entry = struct.Struct(order + _ENTRY)
    try:
        [at] = struct.unpack_from(order + "I", data, _OFFSET)
        while at and at not in seen and len(seen) < MAX_PAGES:
            seen.add(at)
            [count] = struct.unpack_from(order + "H", data, at)
            end = at + 2 + count * entry.size
            left -= end - at
            if left < 0:
                return
            entries: dict[int, Entry] = {}
            for each in map(Entry._make, entry.iter_unpack(data[at + 2 : end])):
                entries.setdefault(each.tag, each)  # libtiff ignores an entry's repetition
            yield Directory(data, entries)
            [at] = struct.unpack_from(order + "I", data, end)
    except struct.error:
        return


def tiff_header(data: bytes) -> FileHeader:
    """Read the directory of the first image of a TIFF; drop all tags that no decoder needs.

    Raises:
        PayloadError: the directory is cut, a tag has too many values, or Pillow does not decode
            its samples as they are.
    """
    pages = directories(data)
    first = next(pages, None)
    if first is None:
        raise truncated("the TIFF ends in its directory")
    kept = [entry for tag, entry in sorted(first.entries.items()) if tag in _DECODED]
    for entry in kept:
        _check_values(entry)
    _check_samples(first)
    width, height = first.number(_WIDTH, 0), first.number(_HEIGHT, 0)
    part_pixels, parts = _parts(first, width, height)
    # A progressive JPEG in a part is decoded as often as it has scans.
    has_scans = first.number(_COMPRESSION, _PLAIN) == _JPEG and b"\xff\xc2" in data
    return FileHeader(
        "TIFF",
        width,
        height,
        _with_directory(data, kept),
        _orientation(first),
        part_pixels,
        part_pixels * parts * (data.count(b"\xff\xda") if has_scans else 1),
        max(1, first.is_page + sum(page.is_page for page in pages)),
        bits=first.number(_BITS, 1),
    )


def _orientation(directory: Directory) -> int:
    entry = directory.entries.get(_ORIENTATION)
    if entry is None:
        return UPRIGHT
    value = directory.number(_ORIENTATION, UPRIGHT)
    return valid_orientation(entry.tag, entry.kind, entry.values, value)


def _check_values(entry: Entry) -> None:
    is_bytes = entry.tag in (_JPEG_TABLES, _PROFILE)
    if is_bytes != (entry.kind in _BYTES):
        raise corrupt(f"tag {entry.tag} of the TIFF has an invalid type ({entry.kind})")
    if entry.values > MAX_VALUES and not is_bytes:
        raise PayloadError(
            RejectCode.TOO_MANY_PARTS,
            f"a TIFF may have at most {MAX_VALUES:,} values of a tag, such as strips (got "
            f"{entry.values:,} of tag {entry.tag}); save it again with fewer",
        )


def _check_samples(directory: Directory) -> None:
    """Refuse what Pillow mixes up.

    These are some separate planes, deep samples of which 0 is white, and JPEGs with parts all over
    the file. Raises: PayloadError.
    """
    samples, bits = directory.number(_SAMPLES, 1), directory.number(_BITS, 1)
    compression = directory.number(_COMPRESSION, _PLAIN)
    is_negative = bits > 8 and directory.number(_PHOTOMETRIC, 1) == _WHITE_IS_ZERO
    is_mixed = samples == 2 or (samples > 2 and bits > 8 and compression == _PLAIN)
    is_mixed = is_mixed and directory.number(_PLANES, 1) == _SEPARATE
    if is_negative or is_mixed or compression == _OLD_JPEG:
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"the TIFF has {samples} samples of {bits} bits with compression {compression}, in "
            f"separate planes or with 0 for white, which decoders mix up; save it again, as PNG",
        )


def _parts(directory: Directory, width: int, height: int) -> tuple[int, int]:
    """Return the pixels of the largest strip or tile, and the number of them in a plane."""
    tags = [tag for tag in (_STRIP_OFFSETS, _TILE_OFFSETS) if tag in directory.entries]
    count = max((directory.entries[tag].values for tag in tags), default=0)
    pixels = width * min(height, directory.number(_STRIP_ROWS, height))
    if _TILE_OFFSETS in tags:
        tile = directory.number(_TILE_WIDTH, 0) * directory.number(_TILE_HEIGHT, 0)
        pixels = max(pixels, tile) if _STRIP_OFFSETS in tags else tile
    if directory.number(_PLANES, 1) == _SEPARATE:
        count //= max(1, directory.number(_SAMPLES, 1))
    return pixels, count


def _with_directory(data: bytes, entries: list[Entry]) -> bytes:
    """Return a TIFF with another directory, behind the old bytes; it is the only one."""
    order, at = _ORDERS[data[:4]], len(data) + len(data) % 2
    packed = b"".join(struct.pack(order + _ENTRY, *entry) for entry in entries)
    directory = struct.pack(order + "H", len(entries)) + packed + bytes(4)
    head = data[:_OFFSET] + struct.pack(order + "I", at)
    return b"".join([head, data[len(head) :], bytes(at - len(data)), directory])


# --- GIF (version 89a, sections 15 to 27) ---------------------------------------------------------

_SCREEN_BYTES = 13  # signature, version, logical screen descriptor
_FRAME, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_CONTROL = 0xF9  # label of the extension with a frame's transparent colour
_HAS_PALETTE = 0x80
_DESCRIPTOR = struct.Struct("<xHHHHB")  # separator, left, top, width, height, flags


def gif_header(data: bytes) -> FileHeader:
    """Follow all blocks to the trailer; drop comments, and all frames but the first.

    Pillow joins the sub-blocks of a comment one by one, which takes quadratic time, and takes the
    bytes behind a frame that ends early for its pixels.

    Raises:
        PayloadError: a block is of unknown kind, the file ends before its trailer, or the first
            frame is missing or has no pixels.
    """
    control = frame = b""
    frames = 0
    try:
        width, height = struct.unpack_from("<HH", data, 6)
        at = screen = _SCREEN_BYTES + _palette_bytes(data[10])
        while (kind := data[at]) != _TRAILER:
            start = at
            if kind == _FRAME:
                at += _DESCRIPTOR.size
                at = _end_of_blocks(data, at + _palette_bytes(data[at - 1]) + 1)
                frame = frame or data[start:at]
                frames += 1
            elif kind == _EXTENSION:
                at = _end_of_blocks(data, at + 2)
                if data[start + 1] == _CONTROL and not frames:
                    control = data[start:at]
            else:
                raise corrupt(f"the GIF has a block of unknown kind (0x{kind:02x} at byte {at})")
    except (IndexError, struct.error):
        raise truncated("the GIF ends before its trailer") from None
    left, top, across, down, _ = _DESCRIPTOR.unpack(frame[: _DESCRIPTOR.size].ljust(10, b"\0"))
    if not (across and down):
        raise corrupt("the GIF has no frame with pixels")
    still = b"".join([data[:screen], control, frame, b";"])
    size = max(width, left + across), max(height, top + down)
    return FileHeader("GIF", *size, still, frames=frames)


def _end_of_blocks(data: bytes, at: int) -> int:
    """Return the end of a series of sub-blocks, of which the last is empty."""
    while data[at]:
        at += 1 + data[at]
    return at + 1


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & _HAS_PALETTE else 0


# --- WEBP (RFC 9649) ------------------------------------------------------------------------------

_RIFF_BYTES, _CHUNK_BYTES = 12, 8  # RIFF, size, WEBP; kind, size


def webp_header(data: bytes) -> FileHeader:
    """Follow the chunks to the end. Raises: PayloadError: the first one says no size."""
    kind, body = data[_RIFF_BYTES:][:4], data[_RIFF_BYTES + _CHUNK_BYTES :][:10]
    if len(body) < 10:
        raise truncated("the WEBP ends in its header")
    size = _webp_size(kind, body)
    orientation, frames = None, 0
    for start, end in _webp_chunks(data):
        frames += data.startswith(b"ANMF", start)
        if data.startswith(b"EXIF", start) and orientation is None:
            orientation = exif_orientation(data[start + _CHUNK_BYTES : end])
    turn = orientation or UPRIGHT
    return FileHeader("WEBP", *size, data, turn, frames=max(1, frames))


def _webp_chunks(data: bytes) -> Iterator[tuple[int, int]]:
    at = _RIFF_BYTES
    while at + _CHUNK_BYTES <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        yield at, at + _CHUNK_BYTES + size
        at += _CHUNK_BYTES + size + size % 2


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int]:
    """Return width and height from the first bytes of the first chunk."""
    if kind == b"VP8X":  # 2.7: reserved, then sides minus one in 24 bits each
        width, height = (int.from_bytes(body[at : at + 3], "little") + 1 for at in (4, 7))
    elif kind == b"VP8L":  # 3.4: signature, then sides minus one in 14 bits each
        bits = int.from_bytes(body[1:5], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":  # RFC 6386, 9.1: tag, start code, then sides in 14 bits each
        width, height = (int.from_bytes(body[at : at + 2], "little") & 0x3FFF for at in (6, 8))
    else:
        raise corrupt(f"the WEBP starts with a chunk of kind {kind!r}")
    return width, height


# --- all formats ---------------------------------------------------------------------------------

# Binary files of bits, gray levels and RGB; Pillow reads only numbers in front of the samples.
_NETPBM_MAGICS = (b"P4", b"P5", b"P6")

# The place of a pixel's bits in a BMP, and the compressions whose pixels Pillow does not misplace:
# none, and bit fields.
_BMP_BITS, _PLAIN_BITMAPS = 28, (0, 3)

EXPECTED = "JPEG, PNG, GIF, BMP, WEBP, TIFF, PBM, PGM or PPM"

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
    if read is None and stored_format(data) == WEBP:
        read = webp_header
    if read is None:
        raise PayloadError(RejectCode.NOT_AN_IMAGE, f"expected {EXPECTED} (got {kind_of(data)})")
    header = read(data)
    if not (header.width and header.height):
        raise corrupt(f"the {header.format} has no pixels ({header.width}×{header.height})")
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
    b"GIF87a": gif_header,
    b"GIF89a": gif_header,
    b"BM": _bitmap,
    **dict.fromkeys(TIFF_MAGICS, tiff_header),
    **dict.fromkeys(_NETPBM_MAGICS, _netpbm),
}


def open_image(header: FileHeader) -> Image.Image:
    """Open an image file whose size was checked; BMPs with alpha are decoded, too.

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
        raise corrupt(
            f"the {header.format} has two sizes: {header.width}×{header.height}, and "
            f"{image.width}×{image.height} for its decoder"
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
