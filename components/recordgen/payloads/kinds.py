"""Names of file formats, for messages about refused payloads.

Messages never quote a file's bytes: a row may name any file within its reach, and a message may
reach people who may not read the file.
"""

from __future__ import annotations

import re

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
