"""Folders of copies on this machine, which several processes share and whose bytes are limited."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from recordgen.storage.local import writing

if sys.platform != "win32":
    import fcntl

#: Limit for the bytes of all copies in a folder.
CACHE_BYTES = 20_000_000_000

# A file that was written this recently may not be complete.
_WRITTEN_SECONDS = 600

_DAY_SECONDS = 24 * 60 * 60

# Copies are counted again when this share of their bytes was written: counting takes time that
# grows with their number.
_COUNTED_SHARE = 1 / 64

# Bytes that this process may write before it counts the copies again, and those that all copies may
# have then, by folder and limit.
_uncounted: dict[tuple[str, int], tuple[int, int]] = {}

# By process: a fork removes nothing of its parent.
_own: dict[int, set[str]] = {}


def make_room(folder: str, size: int, most: int) -> int:
    """Remove the copies that were not used for the longest time, until another one fits.

    Whoever has opened a copy can still read it. All take at most ``most`` bytes, and at most half
    of the disk's free space; each further process may exceed that by a 64th.

    Returns:
        The most bytes that another one may have.
    """
    left, room = _uncounted.get((folder, most), (0, most))
    if left < size:
        room, held = _counted(folder, size, most)
        left = size + int(min(room - held, room * _COUNTED_SHARE))
    _uncounted[folder, most] = left - size, room
    return room


def _counted(folder: str, size: int, most: int) -> tuple[int, int]:
    """Remove copies until another one fits; return the limit, and the bytes of all with it."""
    found = []
    with suppress(FileNotFoundError):
        for each in os.scandir(folder):
            with suppress(FileNotFoundError):  # another process removes copies, too
                found.append((each.stat(follow_symlinks=False), each.path))
        most = min(most, (sum(it.st_size for it, _ in found) + shutil.disk_usage(folder).free) // 2)
    kept = held = size
    now = time.time()
    for stat, path in sorted(found, key=lambda each: each[0].st_mtime, reverse=True):
        held += stat.st_size
        is_written = path.endswith(".tmp") and now - stat.st_mtime < _WRITTEN_SECONDS
        if held > most and not is_written:
            with suppress(FileNotFoundError):
                os.remove(path)
        else:
            kept = held
    return most, kept


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Wait until no other thread or process of this machine makes the copy at ``path``.

    On Windows, several may make it; the last one stays. Raises: StorageError.
    """
    name = f"{path}.lock"
    with writing(name):
        lock = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
        # Whoever waits for it finds the copy; so does whoever makes another lock.
        with suppress(FileNotFoundError, PermissionError):
            os.remove(name)


def remove_at_end(path: str) -> None:
    """Remove the copy at ``path`` when this process ends."""
    if os.getpid() not in _own:
        _own[os.getpid()] = set()
        from multiprocessing.util import Finalize

        Finalize(None, remove_own, exitpriority=0)  # worker processes run no atexit
    _own[os.getpid()].add(path)


def remove_own() -> None:
    """Remove the copies of this process now, and those that nobody used for a day."""
    own = _own.get(os.getpid(), set())
    for folder in set(map(os.path.dirname, own)):
        with suppress(FileNotFoundError):
            for each in os.scandir(folder):
                with suppress(FileNotFoundError):
                    if each.path in own or time.time() - each.stat().st_mtime > _DAY_SECONDS:
                        os.remove(each.path)
    own.clear()
