"""The bytes of a file at any place: read at once, copied first, or requested by range."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from operator import attrgetter
from typing import IO, NamedTuple, TypeAlias
from weakref import finalize

from recordgen import storage
from recordgen.access.counting import cache_file
from recordgen.access.shards import Generation, ShardFile
from recordgen.core.ordered import map_in_order
from recordgen.errors import RecordError, SourceError, StorageError, UsageError
from recordgen.storage.copies import make_room

#: Ranges that are requested at the same time: object stores answer in tens of milliseconds.
RANGES_AT_ONCE = 32

#: Files that a process keeps open: a dataset may have more shards than there are descriptors.
OPEN_FILES = 256

# Ranges next to each other are requested as one, up to this size.
_RANGE_BYTES = 8_000_000

# Bytes that are unpacked at once.
_PIECE_BYTES = 1 << 20

#: Checks that a file, which is open now, belongs to the generation that was opened.
#: Raises: DataError: another dataset replaced it.
Check: TypeAlias = Callable[[], None]


class ChangedError(RecordError):
    """A local file is not what it was when its dataset was opened.

    Attributes:
        file: the :class:`LocalFile`.
    """

    def __init__(self, file: LocalFile, before: int, now: int) -> None:
        what = f"{now:,} bytes instead of {before:,}" if now != before else "other content"
        super().__init__(
            f"its file was changed since it was opened: {what}; restore it, or open it again"
        )
        self.file = file


class LocalFile:
    """A file on this machine, which is opened when it is first read.

    Several threads may read it, also after a fork. It is not mapped into memory: a process dies if
    a mapped file is cut.
    """

    def __init__(self, name: str, find: Callable[[], str], check: Check, version: str = "") -> None:
        """Keep the function that returns the path, and may copy the file there first.

        ``name`` is for errors; ``version`` is that of :func:`recordgen.storage.version`; "" for a
        copy, whose time changes when it is used again.
        """
        self.name = name
        self.find = find
        self.check = check
        self.version = version

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return ranges of this file, which has not changed since it was opened.

        Raises:
            ChangedError: the file was changed.
            DataError: another dataset replaced it.
            RecordError: a packed file is damaged.
            SourceError: it was removed; StorageError: it cannot be read.
        """
        opened = _opened(self)
        try:
            found, state = opened.read(ranges)
        except OSError as exc:
            raise StorageError(f"{self.name}: cannot be read: {exc.strerror}") from exc
        if state != opened.before:
            self.confirm()
        return found

    def confirm(self) -> None:
        """Check that the file has not changed since it was opened. Raises: as :meth:`read`."""
        opened = _opened(self)
        state = opened.state()
        if state != opened.before and (self.version or state[0] != opened.before[0]):
            self.check()
            raise ChangedError(self, opened.before[0], state[0])


class _Opened:
    """An open file. It is closed when no thread uses it, so only its methods use the descriptor.

    Attributes:
        before: its state when it was opened.
    """

    def __init__(self, path: str) -> None:
        # Without waiting for the other end of a pipe, which is refused when it is read.
        self._descriptor = os.open(path, storage.OPEN_FLAGS)
        finalize(self, os.close, self._descriptor).atexit = False  # the system closes it
        self.before = self.state()

    def read(self, ranges: Sequence[Range]) -> tuple[list[bytes], tuple[int, int]]:
        """Return ranges of the file, and its state after they were read."""
        read, file = storage.read_at, self._descriptor
        found = [read(file, stop - start, start) for _, start, stop in ranges]
        # Once for all ranges: it takes longer than reading one of them.
        return found, self.state()

    def state(self) -> tuple[int, int]:
        """Return the size and the time of modification now."""
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns


@lru_cache(OPEN_FILES)
def _opened(file: LocalFile) -> _Opened:
    try:
        opened = _Opened(file.find())
    except FileNotFoundError as exc:
        file.check()
        raise SourceError(f"{file.name}: no such file; it was removed since it was opened") from exc
    except OSError as exc:
        raise StorageError(f"{file.name}: cannot be read: {exc.strerror}") from exc
    file.check()
    if file.version not in ("", "{}:{}".format(*opened.before)):
        raise ChangedError(file, int(file.version.partition(":")[0]), opened.before[0])
    return opened


class FarFile:
    """A file in an object store, of which each range is a request."""

    def __init__(self, name: str, check: Check, confirm: Check) -> None:
        """Keep what checks the generation: now and then, and always."""
        self.name = name
        self.check = check
        self.confirm = confirm

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return ranges next to each other, by one request.

        Raises: OSError, StorageError: it cannot be read; DataError: another dataset replaced it.
        """
        first, last = ranges[0].start, ranges[-1].stop
        try:
            data = storage.read_range(self.name, first, last - first)
        except (OSError, StorageError):
            self.confirm()
            raise
        self.check()
        return [data[start - first : stop - first] for _, start, stop in ranges]


File: TypeAlias = LocalFile | FarFile


class Range(NamedTuple):
    """The bytes of a file from ``start`` up to ``stop``."""

    file: File
    start: int
    stop: int


def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
    """Return the bytes of each range; those of far files are requested at the same time.

    Raises: as :meth:`LocalFile.read`.
    """
    by_file: dict[File, list[Range]] = {}
    for each in ranges:
        by_file.setdefault(each.file, []).append(each)
    found: dict[Range, bytes] = {}
    requests: list[list[Range]] = []
    for file, parts in by_file.items():
        if isinstance(file, LocalFile):
            found.update(zip(parts, file.read(parts), strict=True))
        else:
            requests += _requests(parts)
    answers = map_in_order(lambda its: its[0].file.read(its), requests, threads=RANGES_AT_ONCE)
    for request, answer in zip(requests, answers, strict=True):
        found.update(zip(request, answer, strict=True))
    return [found[each] for each in ranges]


def _requests(ranges: Sequence[Range]) -> list[list[Range]]:
    """Return the ranges of one file, those next to each other together."""
    found: list[list[Range]] = []
    for each in sorted(ranges, key=attrgetter("start")):
        is_next = found and found[-1][-1].stop == each.start
        if is_next and each.stop - found[-1][0].start <= _RANGE_BYTES:
            found[-1].append(each)
        else:
            found.append([each])
    return found


def open_file(
    file: ShardFile, size: int, generation: Generation | None, *, cache_bytes: int
) -> File:
    """Return a file for reading, given its size before compression; nothing is opened yet."""
    check = partial(generation.check, file.path) if generation is not None else _no_check
    # A gzip stream has no random access, and web servers need not have it.
    if file.is_packed or storage.is_http(file.path):
        return LocalFile(file.path, partial(_copied, file, size, cache_bytes, check), check)
    if storage.is_local(file.path):
        return LocalFile(file.path, partial(storage.local_path, file.path), check, file.version)
    far = partial(generation.check_far, file.path) if generation is not None else _no_check
    return FarFile(file.path, far, check)


def _no_check() -> None:
    """Accept files that no dataset.json lists."""


def _copied(file: ShardFile, size: int, cache_bytes: int, check: Check) -> str:
    """Return the path of an unpacked copy in the user's cache folder."""
    path = file.path
    if size > cache_bytes:
        raise UsageError(
            f"{path}: needs a copy of {size:,} bytes, more than cache_bytes ({cache_bytes:,}); "
            f"raise it, or convert without --compression gzip"
        )
    _check_version(file, check)
    kept = cache_file("copies", [path])
    with suppress(OSError):
        if os.path.getsize(kept) == size:
            os.utime(kept)  # used now
            return kept
    make_room(os.path.dirname(kept), size, cache_bytes)
    with storage.open_read(path) as packed, storage.replacing(kept) as copy:
        try:
            _copy(gzip.GzipFile(fileobj=packed) if file.is_packed else packed, copy, size)
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as exc:
            check()
            what = "" if isinstance(exc, ValueError) else "damaged gzip stream: "
            raise RecordError(f"{path}: {what}{exc}") from exc
        check()  # the copy is named after the version that was here before
        _check_version(file, check)
    return kept


def _check_version(file: ShardFile, check: Check) -> None:
    """Check that a file has the version that it had when it was found. Raises: RecordError."""
    if file.version and file.version != storage.version(file.path):
        check()
        raise RecordError(f"{file.path}: it was changed since it was opened; open it again")


def _copy(source: IO[bytes] | gzip.GzipFile, copy: IO[bytes], size: int) -> None:
    """Copy a stream. Raises: ValueError: it has another size; no more is read or written."""
    left = size
    while piece := source.read(min(left + 1, _PIECE_BYTES)):
        left -= len(piece)
        if left < 0:
            break
        copy.write(piece)
    if left:
        found = f"more than {size:,}" if left < 0 else f"{size - left:,}"
        raise ValueError(
            f"its records take {size:,} bytes, but the file holds {found}; convert again"
        )
