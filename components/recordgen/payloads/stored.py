"""The image of a record as a file: its stored bytes, or a PNG of raw pixels."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from recordgen import features

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
    if not (isinstance(height, int) and isinstance(width, int)) or height * width * 3 != len(data):
        return data, ""  # another writer's, with another pixel layout
    try:
        image = Image.frombytes("RGB", (width, height), data)
    except ValueError:
        return data, ""  # negative sides
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue(), "png"


# First bytes of each format. Text formats may start with a byte order mark, blanks and comments.
_BEGINNINGS = {
    "a JPEG": rb"\xff\xd8\xff",
    "a PNG": rb"\x89PNG",
    "a GIF": rb"GIF8[79]a",
    "a WEBP": rb"RIFF.{4}WEBP",
    "a WAV file": rb"RIFF.{4}WAVE",
    "an AVI video": rb"RIFF.{4}AVI",
    "a TIFF": rb"II\*\0|MM\0\*",
    "an AVIF or HEIC image": rb".{4}ftyp(?:avi[fs]|hei[cfmsx]|hev[cmsx]|mi[fs]1|msf1)",
    "an MP4 or QuickTime video": rb".{4}ftyp",
    "a Matroska or WebM video": rb"\x1a\x45\xdf\xa3",
    "a JPEG XL": rb"\xff\x0a|\0{3}\x0cJXL ",
    "a JPEG 2000": rb"\0{3}\x0cjP  |\xff\x4f\xff\x51",
    "a Photoshop file": rb"8BPS",
    "a PNM image": rb"P[1-7][\s#]",
    "an EXR image": rb"\x76\x2f\x31\x01",
    "a DICOM file": rb".{128}DICM",
    "a NumPy array": rb"\x93NUMPY",
    "a PDF": rb"%PDF-",
    "a ZIP archive": rb"PK\x03\x04",
    "a gzip file": rb"\x1f\x8b",
    "an SVG": rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml.{0,200})?<svg",
    "an HTML page: the address leads to a page, not to the file itself": (
        rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html)"
    ),
    "a Git LFS pointer: git lfs pull fetches the file itself": (
        rb"version https://git-lfs\.github\.com/spec/"
    ),
    "an XML file": rb"(?:\xef\xbb\xbf)?\s*<\?xml",
}
_PATTERNS = {
    name: re.compile(beginning, re.DOTALL | re.IGNORECASE)
    for name, beginning in _BEGINNINGS.items()
}
_HEAD_BYTES = 512


def kind_of(data: bytes) -> str:
    """Name the format of a file by its first bytes: ``a PDF``, or ``a file of unknown format``."""
    head = data[:_HEAD_BYTES]
    names = (name for name, pattern in _PATTERNS.items() if pattern.match(head))
    return next(names, "a file of unknown format")
