"""A part of a file, and its spelling where a path is expected.

    train-000.tar, 20,480 bytes from 1536             train-000.tar␞1536+20480
    photos.zip, 18,000 bytes from 61, which inflate   photos.zip␞61+18000>20480#3610a686
    to bytes with this CRC-32
    a.parquet, 20,480 bytes from 512 of the values
    in column 0 of row group 3, one after the other,
    which take 2,048 bytes in the file                a.parquet␞3.0:512+2048>20480

No row can name a range: the mark (U+001E) is a line break, which no uri may contain. Only formats
that read containers write it, into the addresses of a row.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from typing import NamedTuple

from recordgen.messages.masking import without_secrets

_MARK = "\x1e"
_RANGE = re.compile(
    rf"(.+){_MARK}(?:(\d{{1,9}}\.\d{{1,9}}):)?(\d{{1,18}})\+(\d{{1,18}})(?:>(\d{{1,18}}))?"
    r"(?:#([0-9a-f]{8}))?",
    re.DOTALL,
)

#: zlib's code for a stream without a header, as ZIP archives hold them.
PLAIN_DEFLATE = -15


class Range(NamedTuple):
    """The bytes of a payload within a larger file."""

    file: str  # path or URL of the file
    offset: int  # its first byte in the file
    stored: int  # bytes in the file
    # Bytes of the payload if it is packed in the file; None if it is stored as it is.
    inflated: int | None = None
    # The row group and the column of a Parquet file, `3.0`, if the offset counts the bytes of their
    # values, and not of the file; else "".
    values: str = ""
    # The CRC-32 of the payload; None if its container has none.
    crc: int | None = None

    @property
    def length(self) -> int:
        """The bytes of the payload."""
        return self.stored if self.inflated is None else self.inflated

    @property
    def address(self) -> str:
        """The spelling of the range, which :meth:`of` understands."""
        packed = "" if self.inflated is None else f">{self.inflated}"
        crc = "" if self.crc is None else f"#{self.crc:08x}"
        return f"{self.file}{_MARK}{self.place}+{self.stored}{packed}{crc}"

    @property
    def place(self) -> str:
        """Where the payload begins in the file."""
        return f"{self.values}:{self.offset}" if self.values else str(self.offset)

    @classmethod
    def of(cls, path: str) -> Range | None:
        """Return the range that a path spells, or None if it is the path of a whole file."""
        if _MARK not in path or (found := _RANGE.fullmatch(path)) is None:
            return None
        file, values, offset, stored, inflated, crc = found.groups()
        size = int(inflated) if inflated else None
        checksum = int(crc, 16) if crc else None
        return cls(file, int(offset), int(stored), size, values or "", checksum)

    def payload(self, data: bytes) -> bytes:
        """Return the payload, given the bytes in the file.

        Memory is bounded by :attr:`length`, whatever the bytes are.

        Raises: ValueError: they do not inflate to a payload of this length, or of this checksum.
        """
        if self.inflated is not None:
            stream = zlib.decompressobj(PLAIN_DEFLATE)
            try:
                data = stream.decompress(data, self.inflated + 1)
            except zlib.error as exc:
                raise ValueError(f"its deflated bytes are damaged: {exc}") from exc
            if len(data) != self.inflated or not stream.eof:
                raise ValueError(f"it inflates to another size than {self.inflated:,} bytes")
        if self.crc is not None and len(data) == self.length and zlib.crc32(data) != self.crc:
            raise ValueError("its checksum is not the one in the archive; copy the archive again")
        return data


def name_within(container: str, number: int, written: str) -> str:
    """Return the uri of a payload in a container that has no files: its row and its file name.

    The file name is the last name in the path or URL that a tool has written there:
    ``a.parquet``, 3, ``https://me:pw@host/rex.jpg?token=8f`` → ``a.parquet/3/rex.jpg``
    """
    base = posixpath.basename(without_secrets(written).replace("\\", "/"))
    return f"{container}/{number}/{base}" if base else f"{container}/{number}"


def file_of(path: str) -> str:
    """Return the file that holds a payload: the container of a range, or the path itself."""
    found = Range.of(path)
    return path if found is None else found.file


def stored_bytes(address: str, payload: bytes) -> int:
    """Return the bytes that a payload takes in the file that holds it."""
    part = Range.of(address)
    return len(payload) if part is None else part.stored
