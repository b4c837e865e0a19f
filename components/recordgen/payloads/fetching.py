"""Fetch payloads from storage: their bytes, or the reason for a refusal.

Object stores respond in tens of milliseconds. So remote payloads are requested many at a time, by
threads that mostly wait; local payloads are read by the thread that needs them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from recordgen import storage
from recordgen.core.conversion import Content
from recordgen.core.image_settings import Limits
from recordgen.core.ordered import threads_here
from recordgen.core.rows.row import PlannedRow, Range, file_of
from recordgen.core.settings import PayloadSettings
from recordgen.errors import FileTooLargeError, PayloadError
from recordgen.measures.likeness import Indices, find_alike
from recordgen.measures.pictures import picture_facts
from recordgen.payloads import requests
from recordgen.payloads.check import picture_in_small
from recordgen.rejects import Named, RejectCode
from recordgen.storage import ANY_REQUEST, FileInfo, RequestContext
from recordgen.storage.access import Access

if TYPE_CHECKING:
    from recordgen.core.rows.columns import Columns
from recordgen.storage.retries import retried


class Fetcher:
    """A context that fetches the payloads of planned rows, remote ones ahead of time.

    Leaving the context ends all waiting.
    """

    def __init__(self, paths: Iterable[str], limit: Limits, access: Access) -> None:
        """Prepare to fetch the payloads at ``paths``."""
        self.is_far = not all(map(storage.is_local, paths))
        self._limit = limit
        self._access = access
        self._stop = Event()
        self._containers: dict[str, FileInfo] = {}
        self._pool = ThreadPoolExecutor(requests.FAR_REQUESTS, thread_name_prefix="recordgen-fetch")

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel all requests; callers that still wait for a payload get an error."""
        self._stop.set()
        # Do not wait: a hanging request ends by itself, and its result is not needed.
        self._pool.shutdown(wait=False, cancel_futures=True)

    def start_all(self, rows: Sequence[PlannedRow]) -> Callable[[], list[bytes]]:
        """Start fetching payloads as :meth:`start` does; the result returns them in order."""
        started = [self.start(row) for row in rows]
        return lambda: [payload() for payload in started]

    def start(self, row: PlannedRow) -> Callable[[], bytes]:
        """Start fetching a payload if it is remote, and return a function that returns its bytes.

        The function raises PayloadError if the payload is refused, and StorageError if storage
        failed, which ends the run.
        """
        place = storage.resolve(row.uri, row.source)
        part = Range.of(place)
        path = place if part is None else part.file
        read = partial(self._read, row, path, part)
        return read if storage.is_local(path) else self._pool.submit(read).result

    def _read(self, row: PlannedRow, path: str, part: Range | None) -> bytes:
        """Return the bytes of a payload. Raises: PayloadError: it is not the planned one."""
        if self._stop.is_set():
            raise CancelledError
        requests.check_reach(path, row.source, self._access)

        def request() -> bytes:
            if storage.is_local(path):  # no request, so no context: this runs for every row
                return self._planned(row, path, part, ANY_REQUEST)
            context = requests.context_of(self._access, row.source, self._stop)
            return retried(partial(self._planned, row, path, part, context), path, context)

        return requests.requested(request, path, self._limit)

    def _planned(
        self, row: PlannedRow, path: str, part: Range | None, context: RequestContext
    ) -> bytes:
        if part is not None:
            self._check_container(row, part, context)
        try:
            data = requests.read_payload(path, part, row.version, row.bytes, context)
        except FileTooLargeError as exc:
            raise _changed(row, exc.size) from exc
        if len(data) < row.bytes:
            if (size := storage.info(path, context).size) != row.bytes:
                raise _changed(row, size)
            raise EOFError(f"got {len(data)} of {row.bytes} bytes")
        return data

    def _check_container(self, row: PlannedRow, part: Range, context: RequestContext) -> None:
        """Check that a container is the planned one: in another, other images have its places.

        It is looked up once for all its images. Raises: PayloadError.
        """
        info = self._containers.get(part.file)
        if info is None:
            info = self._containers[part.file] = storage.info(part.file, context)
        if requests.info_in(part, info) != FileInfo(row.bytes, row.version):
            raise requests.refused(
                RejectCode.CHANGED,
                f"{part.file} changed while it was converted, and its images are in other places; "
                f"convert again",
            )


@dataclass(frozen=True)
class PayloadStore:
    """Access to the payloads that rows of import files may reach.

    Attributes:
        access: the files and URLs that rows may reach.
        looking: how a downscaled image of each content is made; None if images are not compared.
        threads: threads that decode images; None: one per core, at least two.
    """

    limit: Limits
    access: Access
    looking: PayloadSettings | None = None
    threads: int | None = None

    def alike(self, pictures: Columns) -> Indices:
        """Return for each picture the number of the first that it is like: int32 [n]."""
        return find_alike(picture_facts(pictures))

    def check_reach(self, path: str, source: str) -> None:
        """Check that a row may reach a payload, see :func:`check_reach`. Raises: PayloadError."""
        requests.check_reach(file_of(path), source, self.access)

    def infos(
        self, uris: Sequence[str], sources: Sequence[str]
    ) -> Iterable[FileInfo | PayloadError]:
        """Return the size and version of each payload, or the error that refuses it.

        ``sources`` has the import file of each uri. Raises: StorageError, which ends the run.
        """
        return requests.payload_infos(uris, sources, self.limit, self.access)

    def contents(self, rows: Sequence[Named]) -> Iterable[Content | PayloadError]:
        """Return the content of each payload, or the error that refuses it.

        Raises: StorageError.
        """
        uris, sources = [row.uri for row in rows], [row.source for row in rows]
        sized = zip(rows, self.infos(uris, sources), strict=True)
        ask = partial(_content, limit=self.limit, access=self.access, looking=self.looking)
        is_far = requests.any_far(map(_path, rows))
        # Decoding keeps threads busy; reading local files does not.
        threads = 1 if self.looking is None else threads_here(self.threads)
        return requests.ask_all(ask, sized, is_far=is_far, threads=threads, bytes_of=_size)

    def fetcher(self, paths: Iterable[str]) -> Fetcher:
        """Return what fetches the payloads at ``paths``."""
        return Fetcher(paths, self.limit, self.access)


def _content(
    item: tuple[Named, FileInfo | PayloadError],
    stop: Event,
    *,
    limit: Limits,
    access: Access,
    looking: PayloadSettings | None,
) -> Content | PayloadError:
    row, info = item
    if isinstance(info, PayloadError):
        return info
    place = _path(row)
    part = Range.of(place)
    path = place if part is None else part.file

    def request() -> bytes:
        context = requests.context_of(access, row.source, stop)
        return requests.read_payload(path, part, info.version, limit.bytes, context)

    try:
        data = requests.requested(request, path, limit)
    except PayloadError as exc:
        return exc
    stored = len(data) if part is None else part.stored
    picture = None if looking is None else picture_in_small(data, looking, stored)
    return Content(hashlib.sha256(data).digest(), picture)


def _size(item: tuple[Named, FileInfo | PayloadError]) -> int:
    _, info = item
    return 0 if isinstance(info, PayloadError) else info.size


def _path(row: Named) -> str:
    return storage.resolve(row.uri, row.source)


def _changed(row: PlannedRow, size: int) -> PayloadError:
    now = f"{size:,} or more" if size > row.bytes else f"{size:,}"
    return requests.refused(
        RejectCode.CHANGED,
        f"the file changed while it was converted: it had {row.bytes:,} bytes, now {now}; convert "
        f"again",
    )
