"""The bytes of a file at any place: mapped into memory, copied once, or requested by range."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from mmap import ACCESS_READ, mmap
from typing import NamedTuple, TypeAlias

from recordgen import storage
from recordgen.access.counting import cache_file
from recordgen.access.shards import ShardFile
from recordgen.core.ordered import map_in_order
from recordgen.errors import RecordError, UsageError
from recordgen.storage.copies import make_room

#: Ranges that are requested at the same time: object stores answer in tens of milliseconds.
RANGES_AT_ONCE = 32

#: Maps of files in a process: each holds a file descriptor, and a dataset may have more shards.
MAPS = 256

# Ranges next to each other are requested as one, up to this size.
_RANGE_BYTES = 8_000_000


class LocalFile:
    """A file on this machine, mapped into memory when it is first read.

    Several threads may read it, also after a fork.
    """

    def __init__(self, find: Callable[[], str]) -> None:
        """Keep the function that returns the path, and may copy the file there first."""
        self.find = find

    def read(self, start: int, stop: int) -> memoryview:
        """Return a range of bytes; fewer at the end of the file.

        Raises: RecordError: the file is damaged; OSError, StorageError: it cannot be read.
        """
        return _mapped(self)[start:stop]

    def size(self) -> int:
        """Return the number of bytes. Raises: as :meth:`read`."""
        return len(_mapped(self))


@lru_cache(MAPS)
def _mapped(file: LocalFile) -> memoryview:
    """Return the content of a file; views of it keep its map alive."""
    with open(file.find(), "rb") as opened:
        return memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ))


class FarFile(NamedTuple):
    """A file in an object store, of which each range is a request."""

    path: str

    def read(self, start: int, stop: int) -> memoryview:
        """Return a range of bytes. Raises: OSError, StorageError: it cannot be read."""
        return memoryview(storage.read_range(self.path, start, stop - start))

    def size(self) -> int:
        """Return the number of bytes. Raises: as :meth:`read`."""
        return storage.size(self.path)


File: TypeAlias = LocalFile | FarFile


class Range(NamedTuple):
    """The bytes of a file from ``start`` up to ``stop``."""

    file: File
    start: int
    stop: int

    def read(self) -> memoryview:
        """Return the bytes. Raises: as :meth:`LocalFile.read`."""
        return self.file.read(self.start, self.stop)


def read_ranges(ranges: Sequence[Range]) -> list[memoryview]:
    """Return the bytes of each range; those of far files are requested at the same time.

    Raises: as :meth:`LocalFile.read`.
    """
    found = [memoryview(b"") if isinstance(it.file, FarFile) else it.read() for it in ranges]
    far = [at for at, (file, _, _) in enumerate(ranges) if isinstance(file, FarFile)]
    groups: list[list[int]] = []  # places of ranges next to each other
    for at in sorted(far, key=ranges.__getitem__):
        if groups and _follows(ranges[at], ranges[groups[-1][-1]], ranges[groups[-1][0]]):
            groups[-1].append(at)
        else:
            groups.append([at])
    whole = [ranges[group[0]]._replace(stop=ranges[group[-1]].stop) for group in groups]
    answers = map_in_order(Range.read, whole, threads=RANGES_AT_ONCE)
    for group, wanted, data in zip(groups, whole, answers, strict=True):
        for at in group:
            found[at] = data[ranges[at].start - wanted.start : ranges[at].stop - wanted.start]
    return found


def _follows(each: Range, last: Range, first: Range) -> bool:
    is_next = (each.file, each.start) == (last.file, last.stop)
    return is_next and each.stop - first.start <= _RANGE_BYTES


def open_file(file: ShardFile, size: int, cache_bytes: int) -> File:
    """Return a file for reading, given its size before compression; nothing is opened yet."""
    # A gzip stream has no random access, and web servers need not have it.
    if file.path.endswith(".gz") or file.is_gzip or storage.is_http(file.path):
        return LocalFile(partial(_copied, file, size, cache_bytes))
    if storage.is_local(file.path):
        return LocalFile(partial(storage.local_path, file.path))
    return FarFile(file.path)


def _copied(file: ShardFile, size: int, cache_bytes: int) -> str:
    """Return the path of an unpacked copy in the user's cache folder."""
    path = file.path
    if size > cache_bytes:
        raise UsageError(
            f"{path}: needs a copy of {size:,} bytes, more than cache_bytes ({cache_bytes:,}); "
            f"raise it, or convert without --compression gzip"
        )
    kept = cache_file("copies", [path])
    with suppress(OSError):
        if os.path.getsize(kept) == size:
            os.utime(kept)  # used now
            return kept
    make_room(os.path.dirname(kept), size, cache_bytes)
    is_gzip = path.endswith(".gz") or file.is_gzip
    with storage.open_read(path) as packed, storage.replacing(kept) as copy:
        try:
            shutil.copyfileobj(gzip.GzipFile(fileobj=packed) if is_gzip else packed, copy)
        except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
            raise RecordError(f"{path}: damaged gzip stream: {exc}") from exc
    return kept
