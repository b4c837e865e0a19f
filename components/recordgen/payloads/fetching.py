"""Fetch payloads from storage: their bytes, or the reason for a refusal.

Object stores respond in tens of milliseconds. So remote payloads are requested many at a time, by
threads that mostly wait; local payloads are read by the thread that needs them.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, repeat
from threading import Event
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from recordgen import storage
from recordgen.core.conversion import IN_FLIGHT_BYTES, Content
from recordgen.core.image_settings import Limits, PayloadSettings
from recordgen.core.ordered import map_in_order, slot, threads_here
from recordgen.core.rows.row import PlannedRow, Range, file_of
from recordgen.errors import (
    FileTooLargeError,
    NotAllowedError,
    PayloadError,
    ResponseError,
    UnknownSchemeError,
    UnreachableError,
)
from recordgen.measures.likeness import Indices, find_alike
from recordgen.measures.pictures import picture_facts
from recordgen.payloads.check import picture_in_small
from recordgen.rejects import Named, RejectCode
from recordgen.storage import ANY_REQUEST, FileInfo, RequestContext
from recordgen.storage.access import Access, RowUrlPolicy, watched
from recordgen.storage.retries import deadline, retried

if TYPE_CHECKING:
    from recordgen.core.rows.columns import Columns


# --- requests: which rows may send them, how many at a time, what errors mean ---------------------

# Sizes of payloads in object stores come from listings, if these take fewer requests:
#
#     1.jpg 2.jpg 3.jpg … of gs://bucket/images ─▶ GET 1,000 objects of images/, GET the next …
#
# A folder is listed if many of its payloads are needed, and as long as its pages contain many of
# them; if very many are needed, ranges of names are listed concurrently.

#: Most concurrent requests for remote payloads in one process, and so of each shard.
FAR_REQUESTS = 64

#: Look-ups that a page must save. A page of 1,000 objects takes the processor time of 13 look-ups,
#: costs as much as 12, and is estimated to take as long as 10.
SAVED_BY_PAGE = 20

#: Least needed names in each range of a folder.
RANGE_NAMES = 2_000

# Ranges listed concurrently.
_LISTINGS = 32

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


def read_payload(
    path: str, part: Range | None, version: str, most: int, context: RequestContext
) -> bytes:
    """Return the bytes of a file of at most ``most`` bytes, or of its part. Raises: as both do."""
    if part is None:
        return storage.read_bytes(path, most, context)
    return read_part(part, version, context)


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


# Containers have no limit, but the payloads in them do.
_ANY_MB = 1e12

#: A payload's path, the import file that names it, and its info if already known.
_Named: TypeAlias = "tuple[str, str, FileInfo | None]"
_Info: TypeAlias = "FileInfo | PayloadError"


# --- listings -----------------------------------------------------------------------------------


def worth_listing(wanted: int, pages: int) -> bool:
    """Return whether listing this many pages pays off if they contain ``wanted`` payloads."""
    return wanted >= pages * SAVED_BY_PAGE


def listed_infos(paths: Iterable[str]) -> dict[str, FileInfo]:
    """Return sizes and versions of the payloads for which listings cost less than look-ups.

    All others must be looked up one by one, as well as local and missing payloads.

    Args:
        paths: the payloads, in any order; rows must be allowed to reach them.

    Returns:
        Results of :func:`recordgen.storage.info`, by path.

    Raises: StorageError: storage failed.
    """
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        wanted[path.rpartition("/")[0]].add(path)
    ranges = (
        files
        for all_files in wanted.values()
        if worth_listing(len(all_files), 1)
        for files in _ranges(sorted(all_files))
    )
    stop = Event()
    found = map_in_order(
        lambda files: _listed(files, RequestContext(stop=stop)),
        ranges,
        threads=_LISTINGS,
        on_leave=stop.set,
    )
    return {path: info for infos in found for path, info in infos.items()}


def _ranges(files: list[str]) -> list[list[str]]:
    """Cut paths into runs of nearly equal lengths, of ``RANGE_NAMES`` or a little more."""
    count = max(1, len(files) // RANGE_NAMES)
    edges = [len(files) * number // count for number in range(count + 1)]
    return [files[start:end] for start, end in pairwise(edges)]


def _listed(files: list[str], context: RequestContext) -> dict[str, FileInfo]:
    """Return the infos of sorted files in one folder from listings, as long as they pay off."""
    folder, _, first = files[0].rpartition("/")
    last = files[-1].rpartition("/")[2]
    wanted = frozenset(files)
    found: dict[str, FileInfo] = {}
    pages = storage.list_infos(folder, context, first=first, last=last)
    for number, page in enumerate(pages, 1):
        found.update((path, page[path]) for path in wanted.intersection(page))
        if len(found) == len(wanted) or not worth_listing(len(found), number):
            break
    return found


# --- payloads -------------------------------------------------------------------------------------


class Fetcher:
    """Fetches the payloads of planned rows, remote ones ahead of time, until it is closed."""

    def __init__(self, paths: Iterable[str], limit: Limits, access: Access) -> None:
        """Prepare to fetch the payloads at ``paths``."""
        self.is_far = not all(map(storage.is_local, paths))
        self._limit = limit
        self._access = access
        self._stop = Event()
        self._containers: dict[str, FileInfo] = {}
        self._pool = ThreadPoolExecutor(FAR_REQUESTS, thread_name_prefix="recordgen-fetch")

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
        check_reach(path, row.source, self._access)

        def request() -> bytes:
            if storage.is_local(path):  # no request, so no context: this runs for every row
                return self._planned(row, path, part, ANY_REQUEST)
            context = context_of(self._access, row.source, self._stop)
            return retried(partial(self._planned, row, path, part, context), path, context)

        return requested(request, path, self._limit)

    def _planned(
        self, row: PlannedRow, path: str, part: Range | None, context: RequestContext
    ) -> bytes:
        if part is not None:
            self._check_container(row, part, context)
        try:
            data = read_payload(path, part, row.version, row.bytes, context)
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
        if info_in(part, info) != FileInfo(row.bytes, row.version):
            raise refused(
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
        check_reach(file_of(path), source, self.access)

    def infos(self, uris: Sequence[str], sources: Sequence[str]) -> Iterable[_Info]:
        """Return the size and version of each payload, or the error that refuses it.

        ``sources`` has the import file of each uri. Raises: StorageError, which ends the run.
        """
        paths = list(map(storage.resolve, uris, sources))
        named = list(zip(paths, sources, strict=True))
        parts = list(map(Range.of, paths))
        return self._part_infos(named, parts) if any(parts) else self.file_infos(named)

    def _part_infos(
        self, named: Sequence[tuple[str, str]], parts: Sequence[Range | None]
    ) -> Iterator[_Info]:
        """Yield the infos of payloads, some in containers, each of which is looked up once."""
        both = list(zip(named, parts, strict=True))
        places = [part and (part.file, source) for (_, source), part in both]
        inside = list(dict.fromkeys(filter(None, places)))
        found = iter(self.file_infos([item for item, part in both if part is None]))
        # Containers have no limit, but the payloads in them do.
        unlimited = replace(self, limit=replace(self.limit, mb=_ANY_MB))
        known = dict(zip(inside, unlimited.file_infos(inside), strict=True))
        for part, place in zip(parts, places, strict=True):
            info = next(found) if place is None else known[place]
            if part is not None and not isinstance(info, PayloadError):
                info = checked_info_in(part, info, self.limit)
            yield info

    def file_infos(self, named: Sequence[tuple[str, str]]) -> Iterable[_Info]:
        """Return the infos of whole files, each named with its import file."""
        access = self.access
        paths, sources = [path for path, _ in named], [source for _, source in named]
        known: Iterator[FileInfo | None]
        if is_far := any_far(paths):
            reached = [path for path, source in named if access.refusal(path, source) is None]
            listed = listed_infos(path for path in reached if not storage.is_local(path))
            known = map(listed.get, paths)
        elif any_far(set(sources)):  # rows of remote import files never reach local files
            known = repeat(None, len(paths))
        else:
            known = storage.local_infos(paths)
            if access.prefixes or access.confined:
                reach = map(access.refusal, paths, sources)
                known = (None if no else info for info, no in zip(known, reach, strict=True))
        asked = zip(paths, sources, known, strict=True)
        return ask_all(self._info, asked, is_far=True) if is_far else self._local_infos(asked)

    def _local_infos(self, asked: Iterable[_Named]) -> Iterator[_Info]:
        """Yield known infos within the size limit; look up the other local payloads."""
        stop, sizes = Event(), range(1, self.limit.bytes + 1)
        for named in asked:
            info = named[2]
            yield info if info is not None and info.size in sizes else self._info(named, stop)

    def _info(self, named: _Named, stop: Event) -> _Info:
        path, source, info = named
        try:
            if info is None:
                check_reach(path, source, self.access)

                def request() -> FileInfo:
                    context = context_of(self.access, source, stop, self.limit.bytes)
                    return storage.info(path, context)

                info = requested(request, path, self.limit)
            if info.size == 0:
                return refused(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
            self.limit.check_size(info.size)
        except PayloadError as exc:
            return exc
        return info

    def contents(self, rows: Sequence[Named]) -> Iterable[Content | PayloadError]:
        """Return the content of each payload, or the error that refuses it.

        Raises: StorageError.
        """
        uris, sources = [row.uri for row in rows], [row.source for row in rows]
        sized = zip(rows, self.infos(uris, sources), strict=True)
        is_far = any_far(map(_path, rows))
        # Decoding keeps threads busy; reading local files does not.
        threads = 1 if self.looking is None else threads_here(self.threads)
        return ask_all(self._content, sized, is_far=is_far, threads=threads, bytes_of=_size)

    def _content(self, item: tuple[Named, _Info], stop: Event) -> Content | PayloadError:
        row, info = item
        if isinstance(info, PayloadError):
            return info
        place = _path(row)
        part = Range.of(place)
        path = place if part is None else part.file

        def request() -> bytes:
            context = context_of(self.access, row.source, stop)
            return read_payload(path, part, info.version, self.limit.bytes, context)

        try:
            data = requested(request, path, self.limit)
        except PayloadError as exc:
            return exc
        stored = len(data) if part is None else part.stored
        picture = None if self.looking is None else picture_in_small(data, self.looking, stored)
        return Content(hashlib.sha256(data).digest(), picture)

    def fetcher(self, paths: Iterable[str]) -> Fetcher:
        """Return what fetches the payloads at ``paths``."""
        return Fetcher(paths, self.limit, self.access)


def _size(item: tuple[Named, _Info]) -> int:
    _, info = item
    return 0 if isinstance(info, PayloadError) else info.size


def _path(row: Named) -> str:
    return storage.resolve(row.uri, row.source)


def _changed(row: PlannedRow, size: int) -> PayloadError:
    now = f"{size:,} or more" if size > row.bytes else f"{size:,}"
    return refused(
        RejectCode.CHANGED,
        f"the file changed while it was converted: it had {row.bytes:,} bytes, now {now}; convert "
        f"again",
    )
