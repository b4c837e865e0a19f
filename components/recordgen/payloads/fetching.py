"""Payloads from storage: their bytes, their size, or why one is refused.

Object stores answer in tens of milliseconds. So payloads that are far away are asked for many at
a time, by threads that do little but wait; local ones by the thread that needs them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import BoundedSemaphore, Condition, Event
from types import TracebackType
from typing import TypeVar

from recordgen import storage
from recordgen.errors import FileTooLargeError, NotAllowedError, PayloadError, UnknownSchemeError
from recordgen.options import ConvertOptions
from recordgen.payloads.image import check_size, too_many_bytes
from recordgen.rejects import Named, RejectCode
from recordgen.rows.planned import PlannedRow
from recordgen.storage import FileInfo, Terms
from recordgen.storage.access import Access, RowGate
from recordgen.storage.retries import retried

#: How many payloads that are far away are asked for at once by one process, and so by each shard.
FAR_REQUESTS = 64

#: Bytes of payloads that are held at once, unless a single one has more.
IN_FLIGHT_BYTES = 64_000_000

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

    def start(self, row: PlannedRow) -> Callable[[], bytes]:
        """Begin to fetch a payload if it is far away; the result gives it.

        What it raises: PayloadError if the payload is refused, StorageError if storage failed.
        """
        path = _path(row)
        if storage.is_local(path):
            return partial(self._read_local, row, path)
        return self._pool.submit(self._read_far, row, path).result

    def _read_local(self, row: PlannedRow, path: str) -> bytes:
        check_reach(path, row, self._access)
        try:
            return storage.read_bytes(path, self._options.max_image_bytes)
        except _REFUSALS as exc:
            raise _refusal(exc, path, self._options) from exc

    def _read_far(self, row: PlannedRow, path: str) -> bytes:
        check_reach(path, row, self._access)
        terms = Terms(RowGate(self._access, row.source), self._stop)

        def read() -> bytes:
            try:
                data = storage.read_bytes(path, row.bytes, terms)
            except FileTooLargeError as exc:
                raise _changed(row, exc.size) from exc
            if len(data) < row.bytes:
                if (size := storage.info(path, terms).size) != row.bytes:
                    raise _changed(row, size)
                raise EOFError(f"{len(data)} of {row.bytes} bytes came")
            return data

        with _slot():
            try:
                return retried(read, path, self._stop)
            except _REFUSALS as exc:
                raise _refusal(exc, path, self._options) from exc


def payload_infos(
    rows: Sequence[Named], options: ConvertOptions
) -> Iterable[FileInfo | PayloadError]:
    """Return each payload's size and version, or why it is refused. Raises: StorageError."""
    return _ask_all(partial(_payload_info, options=options, access=options.access), rows)


def content_keys(rows: Sequence[Named], options: ConvertOptions) -> Iterable[bytes | PayloadError]:
    """Return the sha256 of each payload, or why it is refused. Raises: StorageError."""
    room = _Room(IN_FLIGHT_BYTES)
    ask = partial(_content_key, options=options, access=options.access, room=room)
    return _ask_all(ask, rows)


def check_reach(path: str, row: Named, access: Access) -> None:
    """Check that a row may reach its payload; no storage is asked. Raises: PayloadError."""
    reason = access.refusal(path, row.source)
    if reason is None:
        return
    if not storage.is_known(path):
        raise _refused(RejectCode.UNKNOWN_SCHEME, f"no storage is known for {path}")
    raise _refused(RejectCode.NOT_ALLOWED, f"{path}: {reason}")


def _ask_all(ask: Callable[[Named, Event], _Answer], rows: Sequence[Named]) -> Iterable[_Answer]:
    """Ask about every row's payload: about many at once if any of them is far away."""
    stop = Event()
    if not any("://" in row.uri or "://" in row.source for row in rows):  # all of them are local
        return (ask(row, stop) for row in rows)
    with ThreadPoolExecutor(FAR_REQUESTS, thread_name_prefix="recordgen-ask") as pool:
        try:
            return list(pool.map(ask, rows, [stop] * len(rows)))
        except BaseException:
            stop.set()
            raise


def _payload_info(
    row: Named, stop: Event, *, options: ConvertOptions, access: Access
) -> FileInfo | PayloadError:
    path = _path(row)
    try:
        check_reach(path, row, access)
        if storage.is_local(path):
            info = storage.info(path)
        else:
            terms = Terms(RowGate(access, row.source), stop, options.max_image_bytes)
            with _slot():
                info = storage.info(path, terms)
        if info.size == 0:
            return _refused(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
        check_size(info.size, options)
    except PayloadError as exc:
        return exc
    except _REFUSALS as exc:
        return _refusal(exc, path, options)
    return info


def _content_key(
    row: Named, stop: Event, *, options: ConvertOptions, access: Access, room: _Room
) -> bytes | PayloadError:
    info = _payload_info(row, stop, options=options, access=access)
    if isinstance(info, PayloadError):
        return info
    path = _path(row)
    terms = Terms(RowGate(access, row.source), stop)
    with room.taken(info.size), nullcontext() if storage.is_local(path) else _slot():
        try:
            data = storage.read_bytes(path, options.max_image_bytes, terms)
        except _REFUSALS as exc:
            return _refusal(exc, path, options)
        return hashlib.sha256(data).digest()


class _Room:
    """Room for so many bytes: who wants more than is left waits, unless nothing is taken."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._left = Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        with self._left:
            self._left.wait_for(lambda: not self._taken or self._taken + size <= self._size)
            self._taken += size
        try:
            yield
        finally:
            with self._left:
                self._taken -= size
                self._left.notify_all()


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
