"""Values of a Parquet column that is compressed or encoded, read at random.

A column is only readable from the beginning of a row group. So its values are unpacked once on each
machine, one after the other, into a file in the temporary folder (``TMPDIR``):

    a.parquet␞3.0:512+20480   20,480 bytes from 512 of the values in column 0 of row group 3

All processes of a user share these files. They take at most :data:`CACHE_BYTES`, beyond which those
that were not used for the longest time are removed. When a process ends, it removes those that it
made, and those that nobody used for a day, which killed processes left. Memory is bounded by a page
of the column, for which Parquet's limit is 2 GiB, and by :data:`ROWS_AT_ONCE` values, for each of
:data:`UNPACKED_AT_ONCE` row groups.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from recordgen import storage
from recordgen.core.ordered import slot
from recordgen.core.rows.ranges import Range
from recordgen.errors import PayloadError, StorageError
from recordgen.rejects import RejectCode
from recordgen.storage import RequestContext
from recordgen.storage.copies import CACHE_BYTES, locked, make_room, remove_at_end

#: Rows that are held in memory at once.
ROWS_AT_ONCE = 16

#: Row groups that a process unpacks at once, although more threads wait for far payloads.
UNPACKED_AT_ONCE = 2

_BUFFER_BYTES = 1 << 20

# Another process may remove a file between two steps, to make room.
_ATTEMPTS = 8


def parquet_file(raw: IO[bytes]) -> Any:
    """Return a Parquet file whose pages are read one by one. Raises: ArrowException, OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pa.PythonFile(raw, "r")
    return pq.ParquetFile(source, buffer_size=_BUFFER_BYTES, pre_buffer=False)


def read_value(part: Range, container: str, context: RequestContext) -> bytes:
    """Return a value of a column.

    Raises:
        PayloadError: its row group is damaged.
        OSError, StorageError: as :func:`recordgen.storage.open_read`.
    """
    for _ in range(_ATTEMPTS):
        path = _unpacked(part, container, context)
        with suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:
            os.utime(path)  # used now
            data = os.pread(file.fileno(), part.stored, part.offset)
            if len(data) == part.stored:
                return data
            group = part.values.partition(".")[0]
            raise PayloadError(
                RejectCode.CORRUPT.value,
                f"{part.file}: row group {group} is damaged before this image; copy the file again",
            )
    raise StorageError(
        f"{tempfile.gettempdir()}: unpacked columns of {part.file} are removed as soon as they are "
        f"written; set TMPDIR to a folder in which files stay"
    )


def _unpacked(part: Range, container: str, context: RequestContext) -> str:
    """Return the path of the unpacked values of a column, which are made if they are missing."""
    folder = os.path.join(tempfile.gettempdir(), f"recordgen-columns-{os.getuid()}")
    lines = (os.path.abspath(part.file), container or str(os.getpid()), part.values)
    key = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    path = storage.inside(folder, key)
    _make_private(folder)
    if not os.path.exists(path):
        with locked(path):
            if not os.path.exists(path):
                with slot("unpack", UNPACKED_AT_ONCE), storage.open_read(part.file, context) as raw:
                    _unpack(raw, part, path)
    return path


def _make_private(folder: str) -> None:
    """Make a folder that no other user can write. Raises: StorageError."""
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, mode=0o700)
        found = os.lstat(folder)
    except OSError as exc:
        raise StorageError(f"{folder}: cannot write: {exc.strerror or exc}") from exc
    if found.st_uid != os.getuid() or found.st_mode & 0o22:
        raise StorageError(f"{folder}: other users can write here; set TMPDIR to another folder")


def _unpack(raw: IO[bytes], part: Range, path: str) -> None:
    """Write the values of a column to ``path``; those before the first damaged page."""
    import pyarrow as pa

    group, column = map(int, part.values.split("."))
    try:
        file = parquet_file(raw)
        leaf = file.metadata.row_group(group).column(column)
    except (pa.ArrowException, OSError, IndexError) as exc:
        if _is_real(exc):
            raise
        raise PayloadError(RejectCode.CORRUPT.value, f"{part.file}: {exc}") from exc
    make_room(os.path.dirname(path), leaf.total_uncompressed_size, CACHE_BYTES)
    remove_at_end(path)
    size = 0
    with storage.replacing(path) as copy:
        for value in _values(file, group, leaf.path_in_schema):
            size += len(value)
            if size > CACHE_BYTES:
                break
            copy.write(value)


def _values(file: Any, group: int, leaf: str) -> Iterator[memoryview]:
    """Yield the values of a column of bytes in a row group, up to the first damaged page."""
    import pyarrow as pa

    try:
        for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=[leaf]):
            array = batch.column(0)
            if pa.types.is_struct(array.type):
                array = array.field(0)
            yield from (memoryview(each.as_buffer()) for each in array if each.is_valid)
    except (pa.ArrowException, OSError) as exc:
        if _is_real(exc):
            raise


def _is_real(exc: Exception) -> bool:
    """Return whether an error is the system's; Arrow's about damage are OSErrors, too."""
    return isinstance(exc, OSError) and (type(exc) is not OSError or exc.errno is not None)
