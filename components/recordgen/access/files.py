"""The bytes of a file at any place: mapped into memory, copied once, or requested by range."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from typing import NamedTuple, Protocol

from recordgen import storage
from recordgen.access.counting import cache_file
from recordgen.access.shards import ShardFile
from recordgen.errors import RecordError, UsageError
from recordgen.ordered import map_in_order

#: Ranges that are requested at the same time: object stores answer in tens of milliseconds.
RANGES_AT_ONCE = 32

#: Limit for the bytes of all copies in the user's cache folder.
CACHE_BYTES = 20_000_000_000

#: Maps of files in a process: each holds a file descriptor, and a dataset may have more shards.
MAPS = 256

# Ranges next to each other are requested as one, up to this size.
_RANGE_BYTES = 8_000_000


class RandomFile(Protocol):
    """A file that is read at any place, by several threads and after a fork.

    Attributes:
        is_far: whether a read waits for a remote storage.
    """

    is_far: bool

    def read(self, start: int, size: int) -> memoryview:
        """Return a range of bytes; fewer at the end of the file.

        Raises:
            RecordError: the file is damaged.
            OSError, StorageError: it cannot be read.
        """
        ...


class Wanted(NamedTuple):
    """A range of bytes of a file."""

    file: RandomFile
    start: int
    size: int


def read_ranges(wanted: Sequence[Wanted]) -> list[memoryview]:
    """Return the bytes of each range; those of remote files are requested at the same time.

    Raises: as :meth:`RandomFile.read`.
    """
    found: list[memoryview] = [_NOTHING] * len(wanted)
    far = []
    for at, (file, start, size) in enumerate(wanted):
        if file.is_far:
            far.append((id(file), start, at))
        else:
            found[at] = file.read(start, size)
    if not far:
        return found
    groups = _joined([(at, wanted[at]) for _, _, at in sorted(far)])
    whole = [Wanted(g[0][1].file, g[0][1].start, sum(each.size for _, each in g)) for g in groups]
    for group, data in zip(groups, map_in_order(_read, whole, threads=RANGES_AT_ONCE), strict=True):
        end = 0
        for at, each in group:
            start, end = end, end + each.size
            found[at] = data[start:end]
    return found


_NOTHING = memoryview(b"")


def _read(wanted: Wanted) -> memoryview:
    return wanted.file.read(wanted.start, wanted.size)


def _joined(ranges: Sequence[tuple[int, Wanted]]) -> list[list[tuple[int, Wanted]]]:
    """Group ranges that follow each other without a gap; they are in order."""
    found: list[list[tuple[int, Wanted]]] = []
    joined_bytes = 0
    for at, each in ranges:
        last = found[-1][-1][1] if found else None
        follows = last and last.file is each.file and last.start + last.size == each.start
        if follows and joined_bytes + each.size <= _RANGE_BYTES:
            found[-1].append((at, each))
            joined_bytes += each.size
        else:
            found.append([(at, each)])
            joined_bytes = each.size
    return found


def open_file(file: ShardFile, size: int, cache_bytes: int) -> RandomFile:
    """Return a file for reading; nothing is opened yet.

    Args:
        file: the file.
        size: its size before compression.
        cache_bytes: see :data:`CACHE_BYTES`.
    """
    if file.path.endswith(".gz") or file.is_gzip or storage.is_http(file.path):
        return _CopiedFile(file, size, cache_bytes)
    return _MappedFile(file.path) if storage.is_local(file.path) else _RemoteFile(file.path)


class _MappedFile:
    """A local file."""

    is_far = False

    def __init__(self, path: str) -> None:
        self.path = storage.local_path(path)

    def read(self, start: int, size: int) -> memoryview:
        return _mapped(self)[start : start + size]


@lru_cache(MAPS)
def _mapped(file: _MappedFile) -> memoryview:
    """Return the content of a file; views of it keep its map alive."""
    with open(file.path, "rb") as opened:
        return memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ))


class _CopiedFile:
    """A file that has no random access, such as a gzip stream: copied once, then mapped."""

    is_far = False

    def __init__(self, file: ShardFile, size: int, cache_bytes: int) -> None:
        self._file, self._size, self._cache_bytes = file, size, cache_bytes
        self._copy: _MappedFile | None = None

    def read(self, start: int, size: int) -> memoryview:
        if self._copy is None:
            self._copy = _MappedFile(self._copied())
        return self._copy.read(start, size)

    def _copied(self) -> str:
        path, size = self._file.path, self._size
        if size > self._cache_bytes:
            raise UsageError(
                f"{path}: needs a copy of {size:,} bytes, more than cache_bytes "
                f"({self._cache_bytes:,}); raise it, or convert without --compression gzip"
            )
        kept = cache_file("copies", [path])
        with suppress(OSError):
            if os.path.getsize(kept) == size:
                os.utime(kept)  # used now
                return kept
        _make_room(os.path.dirname(kept), self._cache_bytes - size)
        is_gzip = path.endswith(".gz") or self._file.is_gzip
        with storage.open_read(path) as packed, storage.replacing(kept) as copy:
            try:
                shutil.copyfileobj(gzip.GzipFile(fileobj=packed) if is_gzip else packed, copy)
            except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
                raise RecordError(f"{path}: damaged gzip stream: {exc}") from exc
        return kept


def _make_room(folder: str, most: int) -> None:
    """Remove the copies that were not used for the longest time until at most ``most`` bytes stay.

    Whoever has mapped a copy can still read it.
    """
    with suppress(FileNotFoundError):
        found = sorted(
            ((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in _files(folder)),
            reverse=True,
        )
        held = 0
        for _, size, path in found:
            held += size
            if held > most:
                with suppress(FileNotFoundError):
                    os.remove(path)


def _files(folder: str) -> Iterable[os.DirEntry[str]]:
    return [entry for entry in os.scandir(folder) if entry.is_file()]


class _RemoteFile:
    """A file in an object store."""

    is_far = True

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self, start: int, size: int) -> memoryview:
        return memoryview(storage.read_range(self._path, start, size))
