"""Payloads that are a part of a larger file: their size and version, and their bytes."""

from __future__ import annotations

from recordgen import storage
from recordgen.core.rows.ranges import Range
from recordgen.errors import PayloadError
from recordgen.image_settings import Limits
from recordgen.payloads.image import check_size
from recordgen.rejects import RejectCode
from recordgen.storage import FileInfo, RequestContext


def read_part(part: Range, version: str, context: RequestContext) -> bytes:
    """Return the bytes of a payload in a container, whose size was checked.

    Args:
        part: the payload.
        version: its version, see :func:`info_in`.
        context: for requests.

    Raises:
        PayloadError: it does not inflate.
        OSError, StorageError: as :func:`recordgen.storage.read_range`.
    """
    if part.values:
        from recordgen.payloads.parquet_values import read_value  # other containers do not need it

        return read_value(part, version.removesuffix(part.place), context)
    data = storage.read_range(part.file, part.offset, part.stored, context)
    try:
        return part.payload(data)
    except ValueError as exc:
        message = f"{part.file}, byte {part.offset:,}: {exc}"
        raise PayloadError(RejectCode.CORRUPT.value, message) from exc


def info_in(part: Range, container: FileInfo) -> FileInfo:
    """Return the size of a payload in a container, and a version that changes with its bytes."""
    size, version = container
    return FileInfo(part.length, f"{version}:{size}@{part.place}" if version else "")


def checked_info_in(part: Range, container: FileInfo, limit: Limits) -> FileInfo | PayloadError:
    """Return the info of a payload in a container, or why it is refused."""
    end = part.offset + part.stored
    if not part.length:
        return PayloadError(RejectCode.EMPTY_FILE.value, "the file is empty (0 bytes)")
    if end > container.size and not part.values:
        return PayloadError(
            RejectCode.TRUNCATED.value,
            f"{part.file} has {container.size:,} bytes, and the payload ends at byte {end:,}; the "
            f"file was cut off: copy it again",
        )
    try:
        check_size(max(part.length, part.stored), limit)
    except PayloadError as exc:
        return exc
    return info_in(part, container)
