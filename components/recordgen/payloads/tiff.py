"""Read the directories of a TIFF without decoding (TIFF Revision 6.0, section 2).

Pillow and libtiff read all values of every tag, also if thousands of tags name the same bytes. So
they get a directory with only the tags that say where the pixels are and what they mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from recordgen.errors import PayloadError
from recordgen.payloads.header import UPRIGHT, FileHeader, valid_orientation
from recordgen.rejects import RejectCode

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
        raise PayloadError(RejectCode.TRUNCATED, "the TIFF ends in its directory")
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
        raise PayloadError(
            RejectCode.CORRUPT, f"tag {entry.tag} of the TIFF has an invalid type ({entry.kind})"
        )
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
