"""Read a TIFF's directory without decoding (TIFF Revision 6.0, section 2; BigTIFF)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping

from recordgen.errors import PayloadError
from recordgen.payloads.header import FileHeader
from recordgen.payloads.jpeg import read_frame
from recordgen.payloads.tiff_directory import (
    BYTES,
    FRACTIONS,
    LAYOUTS,
    MOST_ENTRIES,
    NUMBERS,
    Directory,
    Entry,
    Layout,
)
from recordgen.rejects import RejectCode

#: Most strips or tiles of a TIFF: Pillow decodes them one by one.
MAX_STRIPS = 100_000

#: Most segments of a JPEG in a strip or tile, before its scan.
MAX_STRIP_SEGMENTS = 30

#: The compression with a JPEG in each strip or tile.
JPEG = 7

_PLAIN = 1  # the scheme without compression

# The older one stores parts of JPEGs all over the file (TIFF Technical Note 2).
_OLD_JPEG = 6

# Tags, sections 8 to 22
_WIDTH, _HEIGHT, _COMPRESSION = 256, 257, 259
_BITS, _PHOTOMETRIC = 258, 262
_STRIP_OFFSETS, _SAMPLES, _STRIP_ROWS, _PLANES = 273, 277, 278, 284
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _PROFILE = 322, 323, 324, 34675

_SEPARATE = 2  # planes: each sample has strips or tiles of its own

# Tags that decoders need, the most values that they may have, and the types of these. Pillow and
# libtiff read all values of every tag, also if thousands of tags name the same bytes.
_NEEDED: Mapping[int, tuple[int, Collection[int]]] = {
    # 262 and 266: photometric interpretation, fill order
    **dict.fromkeys((_WIDTH, _HEIGHT, _COMPRESSION, 262, 266), (1, NUMBERS)),
    **dict.fromkeys((_SAMPLES, _STRIP_ROWS, _PLANES), (1, NUMBERS)),
    **dict.fromkeys((273, 279, 324, 325), (MAX_STRIPS, NUMBERS)),  # offsets and sizes of parts
    **dict.fromkeys((258, 338, 339), (1000, NUMBERS)),  # bits, meaning, format of each sample
    **dict.fromkeys((_TILE_WIDTH, _TILE_HEIGHT), (1, NUMBERS)),
    **dict.fromkeys((292, 293, 317, 332), (1, NUMBERS)),  # fax, predictor, inks
    320: (3 << 16, NUMBERS),  # palette
    347: (1 << 16, BYTES),  # tables of JPEGs
    **dict.fromkeys((530, 531), (2, NUMBERS)),  # subsampling of YCbCr, its place
    **dict.fromkeys((529, 532), (6, FRACTIONS)),  # its coefficients and range
    _PROFILE: (16_000_000, BYTES),
}


def tiff_header(data: bytes) -> FileHeader:
    """Read the directory of the first image of a TIFF; drop all tags that no decoder needs.

    Raises:
        PayloadError: it has too many strips, tiles or values, it contains JPEGs that TensorFlow
            would not decode, or the directory is cut.
    """
    layout = LAYOUTS[data[:4]]
    try:
        entries = dict[int, Entry]()
        for entry in _entries(data, layout):
            entries.setdefault(entry.tag, entry)  # libtiff ignores an entry's repetition
    except (struct.error, OverflowError):
        raise PayloadError(RejectCode.TRUNCATED, "the TIFF ends in its directory") from None
    kept = [entry for tag, entry in sorted(entries.items()) if _is_needed(entry)]
    directory = Directory(data, layout, entries)
    is_deep = directory.number(_BITS, 1) > 8
    is_negative = directory.number(_PHOTOMETRIC, 1) == 0 and is_deep
    if is_negative:  # Pillow ignores it in some deep TIFFs, and refuses others
        kept = [_black_is_zero(layout) if entry.tag == _PHOTOMETRIC else entry for entry in kept]
    width, height = directory.number(_WIDTH, 0), directory.number(_HEIGHT, 0)
    compression = directory.number(_COMPRESSION, 1)
    _check_planes(directory, compression)
    part_pixels, parts = _parts(directory, width, height)
    scans = _jpeg_scans(directory) if compression in (JPEG, _OLD_JPEG) else 1
    return FileHeader(
        "TIFF",
        width,
        height,
        _with_directory(data, layout, kept),
        directory.orientation,
        part_pixels,
        part_pixels * parts * scans,
        is_negative,
        is_deep=is_deep,
    )


def _check_planes(directory: Directory, compression: int) -> None:
    """Refuse separate planes of samples that Pillow mixes up."""
    if directory.number(_PLANES, 1) != _SEPARATE:
        return
    samples, bits = directory.number(_SAMPLES, 1), directory.number(_BITS, 1)
    if samples == 2 or (samples > 2 and bits > 8 and compression == _PLAIN):
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"the TIFF has {samples} separate planes of {bits} bits; save it with the samples of a "
            f"pixel side by side (planar configuration 1)",
        )


def _black_is_zero(layout: Layout) -> Entry:
    """Return the entry of a gray image in which 0 is black."""
    value = struct.pack(layout.order + "H", 1).ljust(struct.calcsize("<" + layout.offset), b"\0")
    return Entry(_PHOTOMETRIC, 3, 1, value)


def _entries(data: bytes, layout: Layout) -> Iterator[Entry]:
    [at] = struct.unpack_from(layout.order + layout.offset, data, layout.place)
    number = struct.Struct(layout.order + layout.number)
    [count] = number.unpack_from(data, at)
    entry = layout.entry
    for place in range(min(count, MOST_ENTRIES)):
        yield Entry(*entry.unpack_from(data, at + number.size + place * entry.size))


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


def _jpeg_scans(directory: Directory) -> int:
    """Return an upper bound of the scans in a strip or tile.

    Raises: PayloadError: TensorFlow does not decode this kind of JPEG.
    """
    compression = directory.number(_COMPRESSION, 1)
    if compression == _OLD_JPEG:
        raise PayloadError(
            RejectCode.UNSUPPORTED_PIXELS,
            f"JPEGs in a TIFF must have compression {JPEG} (got {compression}, which is obsolete); "
            f"save it again",
        )
    starts = {at for tag in (_STRIP_OFFSETS, _TILE_OFFSETS) for at in directory.numbers(tag)}
    # A part without pixels has no offset. Several parts may share their scans.
    frames = [
        read_frame(directory.data, start, MAX_STRIP_SEGMENTS) for start in sorted(starts - {0})
    ]
    has_scans = any(frame.has_scans for frame in frames)
    return directory.data.count(b"\xff\xda") if has_scans else 1


def _is_needed(entry: Entry) -> bool:
    """Return whether decoders need an entry. Raises: PayloadError: it is not what they expect."""
    if entry.tag not in _NEEDED:
        return False
    most, kinds = _NEEDED[entry.tag]
    if entry.kind not in kinds:
        raise PayloadError(
            RejectCode.CORRUPT, f"tag {entry.tag} of the TIFF has an invalid type ({entry.kind})"
        )
    if entry.values > most:
        name = "strips or tiles" if most == MAX_STRIPS else f"values of tag {entry.tag}"
        raise PayloadError(
            RejectCode.TOO_MANY_PARTS,
            f"a TIFF may have at most {most:,} {name} (got {entry.values:,}); save it again with "
            f"fewer",
        )
    return True


def _with_directory(data: bytes, layout: Layout, entries: list[Entry]) -> bytes:
    """Return a TIFF with another directory, behind the old bytes; it is the only one."""
    at = len(data) + len(data) % 2
    order = layout.order
    head = data[: layout.place] + struct.pack(order + layout.offset, at)
    return b"".join(
        [
            layout.magic,
            head[len(layout.magic) :],
            data[len(head) :],
            bytes(at - len(data)),
            struct.pack(order + layout.number, len(entries)),
            *(layout.entry.pack(*entry) for entry in entries),
            bytes(struct.calcsize(order + layout.offset)),
        ]
    )
