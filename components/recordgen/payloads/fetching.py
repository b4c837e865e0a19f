"""Payloads from storage: their bytes, their size, or why one is refused.

Object stores answer in tens of milliseconds. So payloads that are far away are asked for many at
a time, by threads that do little but wait; local ones by the thread that needs them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from threading import BoundedSemaphore, Event
from types import TracebackType
from typing import TypeVar

from recordgen import storage
from recordgen.errors import FileTooLargeError, NotAllowedError, PayloadError, UnknownSchemeError
from recordgen.options import ConvertOptions
from recordgen.ordered import map_in_order
from recordgen.payloads.image import check_size, too_many_bytes
from recordgen.rejects import Named, RejectCode
from recordgen.rows.planned import PlannedRow
from recordgen.storage import FileInfo, RequestContext
from recordgen.storage.access import Access, RowUrlPolicy
from recordgen.storage.retries import retried

#: How many payloads that are far away are asked for at once by one process, and so by each shard.
FAR_REQUESTS = 64

#: Bytes of payloads that are held at once, unless a single one has more.
IN_FLIGHT_BYTES = 64_000_000

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


class Fetcher:
    """Gives the bytes of planned rows' payloads; those that are far away are fetched ahead.

    Leaving the context ends waiting for them.
    """

    def __init__(self, rows: Iterable[PlannedRow], options: ConvertOptions) -> None:
        self.is_far = any(not storage.is_local(_path(row)) for row in rows)
        self._options = options
        self._access = options.access
        self._stop = Event()
        self._pool = ThreadPoolExecutor(FAR_REQUESTS, thread_name_prefix="recordgen-fetch")

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what is under way; who still waits for a payload gets an error."""
        self._stop.set()
        # Not waiting: a request that hangs ends by itself, and nobody wants its answer.
        self._pool.shutdown(wait=False, cancel_futures=True)

    def start_all(self, rows: Sequence[PlannedRow]) -> Callable[[], list[bytes]]:
        """Begin to fetch some payloads, as :meth:`start`; the result gives them in order."""
        started = [self.start(row) for row in rows]
        return lambda: [payload() for payload in started]

    def start(self, row: PlannedRow) -> Callable[[], bytes]:
        """Begin to fetch a payload if it is far away; the result gives it.

        What it raises: PayloadError if the payload is refused, StorageError if storage failed.
        """
        path = _path(row)
        if storage.is_local(path):
            return partial(self._read_local, row, path)
        return self._pool.submit(self._read_far, row, path).result

    def _read_local(self, row: PlannedRow, path: str) -> bytes:
        check_reach(path, row.source, self._access)
        try:
            return storage.read_bytes(path, self._options.max_image_bytes)
        except _REFUSALS as exc:
            raise _refusal(exc, path, self._options) from exc

    def _read_far(self, row: PlannedRow, path: str) -> bytes:
        check_reach(path, row.source, self._access)
        context = RequestContext(RowUrlPolicy(self._access, row.source), self._stop)

        def read() -> bytes:
            try:
                data = storage.read_bytes(path, row.bytes, context)
            except FileTooLargeError as exc:
                raise _changed(row, exc.size) from exc
            if len(data) < row.bytes:
                if (size := storage.info(path, context).size) != row.bytes:
                    raise _changed(row, size)
                raise EOFError(f"{len(data)} of {row.bytes} bytes came")
            return data

        with _slot():
            try:
                return retried(read, path, self._stop)
            except _REFUSALS as exc:
                raise _refusal(exc, path, self._options) from exc


def payload_infos(
    uris: Sequence[str], sources: Sequence[str], options: ConvertOptions
) -> Iterable[FileInfo | PayloadError]:
    """Return each payload's size and version, or why it is refused.

    Args:
        uris: of payloads.
        sources: the import file that names each.
        options: how large a payload may be, and what rows may reach.

    Raises:
        StorageError: storage failed.
    """
    ask = partial(_payload_info, options=options, access=options.access)
    is_far = _any_far(uris) or _any_far(set(sources))
    return _ask_all(ask, zip(uris, sources, strict=True), is_far=is_far)


def content_keys(rows: Sequence[Named], options: ConvertOptions) -> Iterable[bytes | PayloadError]:
    """Return the sha256 of each payload, or why it is refused. Raises: StorageError."""
    uris, sources = [row.uri for row in rows], [row.source for row in rows]
    sized = zip(rows, payload_infos(uris, sources, options), strict=True)
    ask = partial(_content_key, options=options, access=options.access)
    is_far = _any_far(uris) or _any_far(sources)
    return _ask_all(ask, sized, is_far=is_far, bytes_of=_size)


def check_reach(path: str, source: str, access: Access) -> None:
    """Check that a row of an import file may reach a payload; no storage is asked.

    Raises: PayloadError.
    """
    reason = access.refusal(path, source)
    if reason is None:
        return
    if not storage.is_known(path):
        raise _refused(RejectCode.UNKNOWN_SCHEME, f"no storage is known for {path}")
    raise _refused(RejectCode.NOT_ALLOWED, f"{path}: {reason}")


def _any_far(names: Iterable[str]) -> bool:
    return any("://" in name for name in names)


def _ask_all(
    ask: Callable[[_Asked, Event], _Answer],
    items: Iterable[_Asked],
    *,
    is_far: bool,
    bytes_of: Callable[[_Asked], int] | None = None,
) -> Iterator[_Answer]:
    """Ask about every item in order: about many at once if any payload is far away."""
    stop = Event()
    if not is_far:
        return (ask(item, stop) for item in items)
    return map_in_order(
        lambda item: ask(item, stop),
        items,
        threads=FAR_REQUESTS,
        bytes_of=bytes_of,
        max_bytes=IN_FLIGHT_BYTES,
        on_leave=stop.set,
    )


def _payload_info(
    named: tuple[str, str], stop: Event, *, options: ConvertOptions, access: Access
) -> FileInfo | PayloadError:
    uri, source = named
    path = storage.resolve(uri, source)
    try:
        check_reach(path, source, access)
        if storage.is_local(path):
            info = storage.info(path)
        else:
            context = RequestContext(RowUrlPolicy(access, source), stop, options.max_image_bytes)
            with _slot():
                info = storage.info(path, context)
        if info.size == 0:
            return _refused(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
        check_size(info.size, options)
    except PayloadError as exc:
        return exc
    except _REFUSALS as exc:
        return _refusal(exc, path, options)
    return info


def _content_key(
    item: tuple[Named, FileInfo | PayloadError],
    stop: Event,
    *,
    options: ConvertOptions,
    access: Access,
) -> bytes | PayloadError:
    row, info = item
    if isinstance(info, PayloadError):
        return info
    path = _path(row)
    context = RequestContext(RowUrlPolicy(access, row.source), stop)
    with nullcontext() if storage.is_local(path) else _slot():
        try:
            data = storage.read_bytes(path, options.max_image_bytes, context)
        except _REFUSALS as exc:
            return _refusal(exc, path, options)
        return hashlib.sha256(data).digest()


def _size(item: tuple[Named, FileInfo | PayloadError]) -> int:
    _, info = item
    return 0 if isinstance(info, PayloadError) else info.size


def _slot() -> BoundedSemaphore:
    """Wait until one more may be asked for: a process may work on many shards side by side."""
    return _slots.setdefault(os.getpid(), BoundedSemaphore(FAR_REQUESTS))


# By process: a slot that is taken when a process forks would never be given back in the child.
_slots: dict[int, BoundedSemaphore] = {}


def _path(row: Named) -> str:
    return storage.resolve(row.uri, row.source)


# What speaks against one payload; any other StorageError speaks against storage.
_REFUSALS = (OSError, UnknownSchemeError, NotAllowedError, FileTooLargeError)


def _refusal(exc: Exception, path: str, options: ConvertOptions) -> PayloadError:
    """Return what speaks against a payload as its refusal."""
    if isinstance(exc, PermissionError):
        return _refused(RejectCode.PERMISSION_DENIED, f"may not read {path}{_detail(exc)}")
    if isinstance(exc, IsADirectoryError | NotADirectoryError):
        return _refused(RejectCode.NOT_A_FILE, f"expected a regular file: {path}")
    if isinstance(exc, OSError):
        message = f"no such file: {path}{_detail(exc)}{storage.backslash_hint(path)}"
        return _refused(RejectCode.MISSING_FILE, message)
    if isinstance(exc, UnknownSchemeError):
        return _refused(RejectCode.UNKNOWN_SCHEME, str(exc))
    if isinstance(exc, FileTooLargeError):
        return too_many_bytes(exc.size, options)
    return _refused(RejectCode.NOT_ALLOWED, str(exc))


def _detail(exc: OSError) -> str:
    return f" ({exc.strerror})" if exc.strerror and exc.strerror.startswith("HTTP") else ""


def _refused(code: RejectCode, message: str) -> PayloadError:
    return PayloadError(code.value, message)


def _changed(row: PlannedRow, size: int) -> PayloadError:
    return _refused(
        RejectCode.CHANGED,
        f"the file changed while it was converted: it had {row.bytes:,} bytes, now {size:,} or "
        f"more; convert again",
    )
