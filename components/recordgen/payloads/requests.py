"""Requests for payloads: which rows may send them, how many at a time, what errors mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import TypeVar

from recordgen import storage
from recordgen.core.conversion import IN_FLIGHT_BYTES
from recordgen.core.image_settings import Limits
from recordgen.core.ordered import map_in_order, slot
from recordgen.core.rows.ranges import Range
from recordgen.errors import (
    FileTooLargeError,
    NotAllowedError,
    PayloadError,
    ResponseError,
    UnknownSchemeError,
    UnreachableError,
)
from recordgen.rejects import RejectCode
from recordgen.storage import FileInfo, RequestContext
from recordgen.storage.access import Access, RowUrlPolicy
from recordgen.storage.hosts import watched
from recordgen.storage.retries import deadline

#: Most concurrent requests for remote payloads in one process, and so of each shard.
FAR_REQUESTS = 64

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def check_reach(path: str, source: str, access: Access) -> None:
    """Check that a row of an import file may reach a file, without any request.

    Raises: PayloadError.
    """
    reason = access.refusal(path, source)
    if reason is None:
        return
    if not storage.is_known(path):
        raise refused(RejectCode.UNKNOWN_SCHEME, f"no storage is known for {path}")
    raise refused(RejectCode.NOT_ALLOWED, f"{path}: {reason}")


def any_far(paths: Iterable[str]) -> bool:
    """Return whether any path is remote."""
    return any(map(storage.is_url, paths))


def ask_all(
    ask: Callable[[_Asked, Event], _Answer],
    items: Iterable[_Asked],
    *,
    is_far: bool,
    threads: int = 1,
    bytes_of: Callable[[_Asked], int] | None = None,
) -> Iterator[_Answer]:
    """Yield the result of ``ask`` for each item in order, concurrently if any payload is remote.

    ``ask`` also takes an event that is set to stop it. ``threads`` is for local payloads.
    """
    stop = Event()
    if not is_far and threads == 1:
        return (ask(item, stop) for item in items)
    return map_in_order(
        lambda item: ask(item, stop),
        items,
        threads=FAR_REQUESTS if is_far else threads,
        bytes_of=bytes_of,
        max_bytes=IN_FLIGHT_BYTES,
        on_leave=stop.set,
    )


def context_of(
    access: Access, source: str, stop: Event, at_most: int | None = None
) -> RequestContext:
    """Return the context of a request that begins now, for a row of an import file."""
    return RequestContext(RowUrlPolicy(access, source), stop, at_most, deadline())


def requested(request: Callable[[], _Answer], path: str, limit: Limits) -> _Answer:
    """Return the answer to a request for a file, which waits for a free slot; map errors.

    Raises: PayloadError: the payload is refused; StorageError: storage failed, which ends the run.
    """
    try:
        if storage.is_local(path):
            return request()
        with slot("request", FAR_REQUESTS), watched(path):
            return request()
    except _REFUSALS as exc:
        raise _refusal(exc, path, limit) from exc
    except UnreachableError as exc:
        if not storage.is_http(path):
            raise
        # Dead links are common, so a link rejects only its row.
        remedy = "convert again when it can be reached, or remove the row"
        raise refused(RejectCode.UNREACHABLE, f"{exc}; {remedy}") from exc


# Errors of a single payload; any other StorageError is a failure of storage.
_REFUSALS = (OSError, UnknownSchemeError, NotAllowedError, FileTooLargeError, ResponseError)


def _refusal(exc: Exception, path: str, limit: Limits) -> PayloadError:
    """Map an error of a payload to its refusal."""
    if isinstance(exc, PermissionError):
        return refused(RejectCode.PERMISSION_DENIED, f"cannot read {path}{_detail(exc)}")
    if isinstance(exc, IsADirectoryError | NotADirectoryError):
        return refused(RejectCode.NOT_A_FILE, f"expected a regular file: {path}")
    if isinstance(exc, OSError):
        message = f"no such file: {path}{_detail(exc)}{storage.slip_hint(path)}"
        return refused(RejectCode.MISSING_FILE, message)
    if isinstance(exc, ResponseError):
        return PayloadError(exc.code, f"{exc}; fix the URL or remove the row")
    if isinstance(exc, UnknownSchemeError):
        return refused(RejectCode.UNKNOWN_SCHEME, str(exc))
    if isinstance(exc, FileTooLargeError):
        return limit.too_many_bytes(exc.size)
    return refused(RejectCode.NOT_ALLOWED, str(exc))


def _detail(exc: OSError) -> str:
    return f" ({exc.strerror})" if exc.strerror and exc.strerror.startswith("HTTP") else ""


def refused(code: RejectCode, message: str) -> PayloadError:
    """Return the refusal of a payload."""
    return PayloadError(code.value, message)


def read_part(part: Range, version: str, context: RequestContext) -> bytes:
    """Return the bytes of a payload in a container, whose size was checked.

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
        limit.check_size(max(part.length, part.stored))
    except PayloadError as exc:
        return exc
    return info_in(part, container)
