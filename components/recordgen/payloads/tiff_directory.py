"""The directories of a TIFF: their entries and values (TIFF Revision 6.0, section 2; BigTIFF)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from recordgen.payloads.header import UPRIGHT, valid_orientation

_ORIENTATION = 274  # a tag, section 8

# Types of values
NUMBERS = {3: "H", 4: "I", 16: "Q"}  # SHORT, LONG and LONG8
FRACTIONS = (3, 4, 5, 11, 12)  # SHORT, LONG, RATIONAL, FLOAT and DOUBLE
BYTES = (1, 7)  # BYTE and UNDEFINED


class Layout(NamedTuple):
    """Structs of one byte order and offset size.

    Attributes:
        magic: the valid first bytes.
        order: byte order.
        place: position of the directory's offset.
        offset: type of offsets.
        number: type of the number of entries.
    """

    magic: bytes
    order: str
    place: int
    offset: str
    number: str

    @property
    def entry(self) -> struct.Struct:
        """Tag, type, number of values, and their bytes or their offset."""
        size = struct.calcsize("<" + self.offset)
        return struct.Struct(f"{self.order}HH{self.offset}{size}s")


LAYOUTS = {
    b"II*\0": Layout(b"II*\0", "<", 4, "I", "H"),
    b"MM\0*": Layout(b"MM\0*", ">", 4, "I", "H"),
    b"II+\0": Layout(b"II+\0", "<", 8, "Q", "Q"),
    b"MM\0+": Layout(b"MM\0+", ">", 8, "Q", "Q"),
    # Invalid, but Pillow reads them.
    b"II\0*": Layout(b"II*\0", "<", 4, "I", "H"),
    b"MM*\0": Layout(b"MM\0*", ">", 4, "I", "H"),
}

#: First bytes of a TIFF.
TIFF_MAGICS = tuple(LAYOUTS)
MOST_ENTRIES = 1 << 16

# Entries are sorted by tag: these say which kind of page it is.
_FIRST_ENTRIES = 2


class Entry(NamedTuple):
    """An entry of the directory.

    Attributes:
        tag: what it describes.
        kind: type of its values.
        values: their number.
        field: the bytes of the values, or of their offset.
    """

    tag: int
    kind: int
    values: int
    field: bytes


class Directory(NamedTuple):
    """The directory of the first image."""

    data: bytes
    layout: Layout
    entries: Mapping[int, Entry]

    def numbers(self, tag: int) -> Iterator[int]:
        """Yield the whole numbers of an entry that lie inside of the file."""
        entry = self.entries.get(tag)
        if entry is None:
            return
        number = struct.Struct(self.layout.order + NUMBERS[entry.kind])
        size = number.size * entry.values
        values = entry.field
        if size > len(values):
            [at] = struct.unpack(self.layout.order + self.layout.offset, values)
            values = self.data[at : at + size]
        whole = min(size, len(values)) // number.size * number.size
        for [value] in number.iter_unpack(values[:whole]):
            yield value

    def number(self, tag: int, default: int) -> int:
        """Return the first number of an entry."""
        return next(self.numbers(tag), default)

    @property
    def orientation(self) -> int:
        """The Exif orientation, 1 to 8."""
        if _ORIENTATION not in self.entries:
            return UPRIGHT
        entry = self.entries[_ORIENTATION]
        [value] = struct.unpack_from(self.layout.order + "H", entry.field)
        return valid_orientation(entry.tag, entry.kind, entry.values, value)


def pages(data: bytes, most: int) -> Iterator[Mapping[int, int]]:
    """Yield the short numbers of the first entries of each directory, by tag.

    Args:
        data: the file.
        most: directories to read.
    """
    layout = LAYOUTS[data[:4]]
    offset, number = (struct.Struct(layout.order + kind) for kind in (layout.offset, layout.number))
    entry = layout.entry
    seen: set[int] = set()
    try:
        [at] = offset.unpack_from(data, layout.place)
        while at and at not in seen and len(seen) < most:
            seen.add(at)
            [count] = number.unpack_from(data, at)
            first = at + number.size
            entries = (
                Entry(*entry.unpack_from(data, first + place * entry.size))
                for place in range(min(count, _FIRST_ENTRIES))
            )
            yield {
                found.tag: struct.unpack_from(layout.order + NUMBERS[found.kind], found.field)[0]
                for found in entries
                if found.kind in (3, 4) and found.values == 1  # SHORT or LONG
            }
            [at] = offset.unpack_from(data, first + count * entry.size)
    except (struct.error, OverflowError):
        return  # the file ends in a directory
