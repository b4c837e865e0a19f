"""What storage says of a file."""

from __future__ import annotations

from typing import NamedTuple

from recordgen.errors import FileTooLargeError


class FileInfo(NamedTuple):
    """What storage says of a regular file.

    Attributes:
        size: in bytes.
        version: a text that changes when the file does: its mtime, generation or etag.
    """

    size: int
    version: str


def too_large(path: str, size: int) -> FileTooLargeError:
    """Return the error that a file has more bytes than were asked for: at least ``size``."""
    return FileTooLargeError(f"{path}: too large: {size:,} bytes or more", size)
