"""What the header of an image file says, before anything is decoded; the orientation in Exif.

A general reader of Exif follows the offset of every tag. A thousand tags that name the same block
of a megabyte then take a gigabyte; this one looks at the twelve bytes of each entry only (TIFF
Revision 6.0, section 2; Exif 2.3, 4.6.4).
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from PIL import Image

from recordgen import features
from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

#: The value of an upright picture.
UPRIGHT = 1

#: The tag of the orientation, its type (SHORT) and the number of its values.
ORIENTATION = (0x0112, 3, 1)

_PREFIX = b"Exif\0\0"
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}


def exif_orientation(block: bytes) -> int:
    """Return the orientation in an Exif block, 1 to 8; 1 if there is none that is valid.

    As in browsers, it must be a single SHORT; the first entry counts if there are several.

    Args:
        block: a TIFF structure, with or without ``Exif`` and two zeros in front.
    """
    block = block.removeprefix(_PREFIX)
    order = _ORDERS.get(block[:4])
    if order is None:
        return UPRIGHT
    entry = struct.Struct(order + "HHIHxx")
    try:
        [at] = struct.unpack_from(order + "I", block, 4)
        [count] = struct.unpack_from(order + "H", block, at)
        for start in range(at + 2, at + 2 + count * entry.size, entry.size):
            tag, kind, values, value = entry.unpack_from(block, start)
            if tag == ORIENTATION[0]:
                return valid_orientation(tag, kind, values, value)
    except struct.error:
        pass  # the directory is cut
    return UPRIGHT


def valid_orientation(tag: int, kind: int, count: int, value: int) -> int:
    """Return the value of an entry if it is a valid orientation, else 1."""
    is_valid = (tag, kind, count) == ORIENTATION and 1 <= value <= 8
    return value if is_valid else UPRIGHT


class FileHeader(NamedTuple):
    """The picture that Pillow decodes, and the bytes that Pillow gets.

    Attributes:
        format: Pillow's name of the format.
        width: pixels of the stored picture.
        height: pixels of the stored picture.
        data: the file without parts that cost much and change no pixel: texts, comments, Exif,
            further pictures.
        orientation: Exif orientation, 1 to 8.
        part_pixels: pixels of the largest strip or tile of a TIFF, which may exceed the picture.
        parts_pixels: pixels of all strips or tiles of a TIFF together, in all scans.
        frames: pictures in the file, of which this is the first; None if the format has only one.
        bits: of a sample, as far as Pillow decodes such files; 8 where no caller needs them.
        has_transparency: a PNG has an alpha channel or transparent colours.
    """

    format: str
    width: int
    height: int
    data: bytes
    orientation: int = UPRIGHT
    part_pixels: int = 0
    parts_pixels: int = 0
    frames: int | None = None
    bits: int = 8
    has_transparency: bool = False

    @property
    def pixels(self) -> int:
        """The largest number of pixels that a decoder holds."""
        return max(self.width * self.height, self.part_pixels)

    @property
    def decoded_pixels(self) -> int:
        """The number of pixels that a decoder computes."""
        return max(self.width * self.height, self.parts_pixels)


def corrupt(message: str) -> PayloadError:
    """Return the refusal of a file that is damaged."""
    return PayloadError(RejectCode.CORRUPT, message)


def truncated(message: str) -> PayloadError:
    """Return the refusal of a file whose end is missing."""
    return PayloadError(RejectCode.TRUNCATED, message)


# --- the image of a record as a file: its stored bytes, or a PNG of raw pixels --------------------


_ENCODED = "encoded"

# The formats of images in records, and the bytes that their files begin with.
_MAGIC = {
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "gif": re.compile(rb"GIF8"),
    "bmp": re.compile(rb"BM"),
    features.WEBP: re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


def stored_format(data: bytes) -> str:
    """Return the ``image/format`` of a file by its first bytes; empty for other files."""
    return next((name for name, magic in _MAGIC.items() if magic.match(data)), "")


def stored_image(
    record: Mapping[str, Sequence[Any]], name: str = features.IMAGE_ENCODED
) -> tuple[bytes, str] | None:
    """Return the bytes of an image file and its format; None if the record has no image.

    The format is one of those that Recordgen stores: as the record says, or, if it says another
    one, as the bytes begin; empty if they begin otherwise, too. So it may become a suffix.

    Args:
        record: lists by feature name, as :func:`~recordgen.core.records.example.parse_example`
            returns them; other writers' records may contain anything.
        name: the feature with the bytes; format, height and width have its prefix.
    """
    prefix = name.removesuffix(_ENCODED)

    def only(part: str) -> Any:
        found = record.get(f"{prefix}{part}", ())
        return found[0] if len(found) == 1 else None

    data, kind = only(_ENCODED), only("format")
    if not isinstance(data, bytes):
        return None
    text = kind.decode("utf-8", "replace") if isinstance(kind, bytes) else ""
    if text != features.RAW:
        return data, text if text in _MAGIC else stored_format(data)
    height, width = only("height"), only("width")
    # Pillow allocates the picture before it looks at the bytes.
    is_size = isinstance(height, int) and isinstance(width, int) and min(height, width) > 0
    if not is_size or height * width * 3 != len(data):
        return data, ""  # another writer's, with another pixel layout
    image = Image.frombytes("RGB", (width, height), data)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue(), "png"


_HEAD_BYTES = 512


@cache
def beginnings() -> Mapping[str, re.Pattern[bytes]]:
    """Return the first bytes of files by what they are; the first entry that matches counts.

    ``beginnings.json`` has them, as regular expressions in Latin-1. Text formats may begin with a
    byte order mark, blanks and comments.
    """
    table = resources.files("recordgen.payloads").joinpath("beginnings.json")
    found = json.loads(table.read_text(encoding="utf-8")).items()
    flags = re.DOTALL | re.IGNORECASE
    return {name: re.compile(first.encode("latin-1"), flags) for name, first in found}


def kind_of(data: bytes) -> str:
    """Name the format of a file by its first bytes: ``a PDF``, or ``a file of unknown format``."""
    head = data[:_HEAD_BYTES]
    names = (name for name, pattern in beginnings().items() if pattern.match(head))
    return next(names, "a file of unknown format")
