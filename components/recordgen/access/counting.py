"""Read the lengths of records once, and remember them in the user's cache folder.

``$XDG_CACHE_HOME/recordgen/…`` (``~/.cache`` without it) has one small file for each result, named
by the paths and versions (size and time, generation or etag) of the files that were read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from recordgen import storage
from recordgen.core.dataset.manifest import DTYPE, Lengths, decoded, head
from recordgen.core.records import RECORDS
from recordgen.errors import StorageError


def lengths_in(path: str) -> Lengths:
    """Return the length of each record in a TFRecord file, compressed or not.

    For a local file that is not compressed, only the frames are read, not the records.

    Raises:
        RecordError: the file is truncated or damaged; the message names the offset.
        FileNotFoundError: there is no such file.
        StorageError: storage failed.
    """
    kept = cache_file("lengths", [path])
    with suppress(OSError, ValueError, StorageError):  # not read yet, or not readable as lengths
        return decoded(storage.read_bytes(kept))
    found = read_lengths_in(path)
    with suppress(StorageError):  # without a writable cache folder, read again next time
        storage.write_bytes(kept, head(len(found)) + found.tobytes())
    return found


def read_lengths_in(path: str) -> Lengths:
    """Return what :func:`lengths_in` returns, by a pass over the file."""
    return np.fromiter(RECORDS.lengths(path), DTYPE)


def is_cheap(path: str) -> bool:
    """Return whether a file's records can be counted without reading all of it."""
    return storage.is_local(path) and not RECORDS.is_gzip(path)


def remembered(paths: Sequence[str], what: str, count: Callable[[], int]) -> int:
    """Return the remembered count, or call ``count`` and remember its result.

    The key consists of the files' ``paths`` and states, and of ``what`` is counted.
    """
    kept = cache_file("counts", paths, what)
    with suppress(OSError, ValueError, StorageError):  # not counted yet, or not readable as a count
        return int(storage.read_text(kept))
    found = count()
    with suppress(StorageError):  # without a writable cache folder, count again next time
        storage.write_text(kept, str(found))
    return found


def cache_file(folder: str, paths: Sequence[str], what: str = "") -> str:
    """Return the path in the user's cache folder for ``what`` belongs to files in their state."""
    lines = [what, *map(state_of, paths)]
    key = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return storage.inside(os.path.join(root, "recordgen", folder), key)


def state_of(path: str) -> str:
    """Return a text that changes when a file does, also if it keeps its size and its time."""
    if not storage.is_local(path):
        return f"{path} {storage.version(path)}"
    local = storage.absolute(path)
    # Whoever unpacks an archive gets its times of modification, but not of change.
    return f"{local} {storage.version(path)} {os.stat(local).st_ctime_ns}"
