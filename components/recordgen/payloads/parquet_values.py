"""Values of a Parquet column that is compressed or encoded, read at random.

A column is only readable from the beginning of a row group. So its values are unpacked once on each
machine, one after the other, into a file in the temporary folder (``TMPDIR``):

    a.parquet␞3.0:512+2048>20480   20,480 bytes from 512 of the values in column 0 of row group 3

All processes of a user share these files. They take at most :data:`CACHE_BYTES`, beyond which those
that were not used for the longest time are removed. When a process ends, it removes those that it
made, and those that nobody used for a day, which killed processes left. Values for which there is
no room are refused. Limits bound memory, for each of :data:`UNPACKED_AT_ONCE` row groups.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator, Set
from contextlib import suppress
from typing import IO, Any

from recordgen import storage
from recordgen.core import limits
from recordgen.core.ordered import slot
from recordgen.core.rows.row import Range
from recordgen.errors import PayloadError, StorageError
from recordgen.rejects import RejectCode
from recordgen.storage import RequestContext
from recordgen.storage.copies import CACHE_BYTES, locked, make_room, remove_at_end
from recordgen.storage.local import writing

# --- open Parquet files, and read them within limits for what a file says of itself ---------------

#     100 rows: labels of 2 kB that unpack to 60 MB ─▶ one reject; images of 20 MB ─▶ 3 rows at once
#
# A column may hold a value once for all of its rows (a dictionary), so a few bytes in the file may
# stand for any number of bytes in memory. A file whose sizes are lies meets the allowance of the
# process that reads it.

#: Most rows that are held in memory at once.
ROWS_AT_ONCE = 16

_FAR_BYTES = 8_000_000
_BUFFER_BYTES = 1 << 20


def parquet_file(raw: IO[bytes], footer: Any = None) -> Any:
    """Return a Parquet file whose pages are read one by one.

    Args: footer: its metadata, if the same file was opened before.

    Raises: ArrowException, OSError, ValueError.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(
        pa.PythonFile(raw, "r"),
        metadata=footer,
        buffer_size=_BUFFER_BYTES,
        pre_buffer=False,
        thrift_container_size_limit=limits.COLUMNS.most,  # the library recurses into columns
    )
    for number in range(len(file.schema)):
        limits.COLUMN_LEVELS.check(file.schema.column(number).path.count("."))
    return file


def rows_at_once(
    raw: IO[bytes],
    file: Any,
    group: int,
    columns: Set[str],
    image: str,
    most_rows: int,
    *,
    is_far: bool,
) -> int:
    """Return how many rows of a row group may be in memory at once.

    Args:
        raw: the file.
        file: the same as ``pyarrow.parquet.ParquetFile``.
        group: the number of the row group.
        columns: names of the columns that are read, or the path of one; empty: all.
        image: the path of the column of images, if there is one.
        most_rows: rows that are held in memory at once, unless they are too large.
        is_far: dictionaries are requests. Those of columns with more than :data:`_FAR_BYTES`,
            which a bomb does not need, are not read.

    Raises: ValueError: the columns or their lists take too much memory.
    """
    row_group = file.metadata.row_group(group)
    held = largest = packed = in_lists = list_bytes = text_bytes = 0
    for number in range(row_group.num_columns):
        chunk, column = row_group.column(number), file.schema.column(number)
        path = chunk.path_in_schema
        if columns and columns.isdisjoint((path, path.partition(".")[0])):
            continue
        packed += chunk.total_compressed_size
        held += chunk.total_uncompressed_size
        if held > limits.UNPACKED_TIMES.most * packed:
            limits.UNPACKED_BYTES.check(held)
        is_list = column.max_repetition_level > 0
        values = chunk.num_values if is_list else row_group.num_rows
        value = column.length or _largest(chunk)
        if path == image:
            largest += value
            continue
        is_small = (
            chunk.total_uncompressed_size < limits.UNPACKED_TIMES.most * chunk.total_compressed_size
        )
        if is_small and not column.length and value * values > limits.UNPACKED_BYTES.most:
            is_skipped = is_far and chunk.total_compressed_size > _FAR_BYTES
            value = 0 if is_skipped else _longest(raw, file, group, path)
        if is_list:
            in_lists += values
            list_bytes += value * values
        else:
            largest += value
            text_bytes += value * values
    if held > limits.UNPACKED_TIMES.most * packed:  # a value is in the dictionary and in its row
        limits.UNPACKED_BYTES.check(held + largest)
    if max(in_lists, list_bytes, text_bytes) > limits.UNPACKED_TIMES.most * packed:
        limits.LIST_VALUES.check(in_lists)
        limits.UNPACKED_BYTES.check(list_bytes)
        limits.TEXT_BYTES.check(text_bytes)
    return max(1, min(most_rows, limits.UNPACKED_BYTES.most // max(1, largest)))


def _largest(chunk: Any) -> int:
    """Return an upper bound of the bytes of a value that takes fewer bytes in its own page."""
    if chunk.physical_type != "BYTE_ARRAY":
        return 0
    if "DELTA_BYTE_ARRAY" in chunk.encodings:  # a value repeats the beginning of the one before
        return int(chunk.total_uncompressed_size)
    if not chunk.has_dictionary_page:
        return 0
    # Other pages unpack to no fewer bytes than they have.
    dictionary = chunk.data_page_offset - chunk.dictionary_page_offset
    return int(chunk.total_uncompressed_size - chunk.total_compressed_size + dictionary)


def _longest(raw: IO[bytes], file: Any, group: int, leaf: str) -> int:
    """Return the bytes of the longest text in the dictionary of a column. Raises: ValueError."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(
        pa.PythonFile(raw, "r"), metadata=file.metadata, read_dictionary=[leaf], pre_buffer=False
    )
    try:
        array = next(opened.iter_batches(1, row_groups=[group], columns=[leaf])).column(0)
        while not pa.types.is_dictionary(array.type):
            array = array.field(0) if pa.types.is_struct(array.type) else array.values
        return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)
    except (pa.ArrowException, OSError, StopIteration, AttributeError) as exc:
        raise ValueError(f"the dictionary of {leaf} cannot be read: {exc}") from exc


# --- values ---------------------------------------------------------------------------------------


#: Row groups that a process unpacks at once, although more threads wait for far payloads.
UNPACKED_AT_ONCE = 2

# Another process may remove a file between two steps, to make room.
_ATTEMPTS = 8

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# The suffix of an empty file beside one in which only the first values have room.
_CUT = ".cut"

# Row groups that this process cannot unpack, by their paths.
_refused: dict[str, PayloadError] = {}

# The file that was opened last, and its version, with its footer: each row group is unpacked on its
# own, and a footer grows with their number.
_footers: dict[tuple[str, str], Any] = {}


def read_value(part: Range, container: str, context: RequestContext) -> bytes:
    """Return a value of a column.

    Raises:
        PayloadError: its row group is damaged, or too large.
        OSError, StorageError: as :func:`recordgen.storage.open_read`.
    """
    for _ in range(_ATTEMPTS):
        path = _unpacked(part, container, context)
        with suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:
            os.utime(path)  # used now
            data = storage.read_at(file.fileno(), part.length, part.offset)
            if len(data) == part.length:
                return data
            if os.path.exists(path + _CUT):
                raise _no_room(path)
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
    folder = os.path.join(tempfile.gettempdir(), f"recordgen-columns-{_user()}")
    lines = (storage.absolute(part.file), container or str(os.getpid()), part.values)
    key = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    path = storage.inside(folder, key)
    _make_private(folder)
    if not os.path.exists(path):
        with locked(path):
            if path in _refused:
                raise _refused[path]
            if not os.path.exists(path):
                try:
                    with (
                        slot("unpack", UNPACKED_AT_ONCE),
                        storage.open_read(part.file, context) as raw,
                    ):
                        _unpack(raw, part, container, path)
                except PayloadError as exc:
                    _refused[path] = exc
                    raise
    return path


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # Windows has a folder for each user


def _make_private(folder: str) -> None:
    """Make a folder that no other user can write. Raises: StorageError."""
    with writing(folder):
        with suppress(FileExistsError):
            os.mkdir(folder, mode=0o700)
        found = os.lstat(folder)
    if hasattr(os, "getuid") and (found.st_uid != _user() or found.st_mode & 0o22):
        raise StorageError(f"{folder}: other users can write here; set TMPDIR to another folder")


def _unpack(raw: IO[bytes], part: Range, container: str, path: str) -> None:
    """Write the values of a column to ``path``; those before the first damaged page.

    Raises: PayloadError: it is damaged, or too large for the limits or the temporary folder.
    """
    import pyarrow as pa

    group, column = map(int, part.values.split("."))
    try:
        file = _opened(raw, part.file, container)
        chunk = file.metadata.row_group(group).column(column)
        leaf, is_far = chunk.path_in_schema, not storage.is_local(part.file)
        rows = rows_at_once(raw, file, group, {leaf}, leaf, ROWS_AT_ONCE, is_far=is_far)
    except (pa.ArrowException, OSError, IndexError) as exc:
        if _is_real(exc):
            raise
        raise PayloadError(RejectCode.CORRUPT.value, f"{part.file}: {exc}") from exc
    except ValueError as exc:
        raise PayloadError(RejectCode.TOO_MANY_BYTES.value, f"{part.file}: {exc}") from exc
    room = make_room(os.path.dirname(path), chunk.total_uncompressed_size, CACHE_BYTES)
    remove_at_end(path)
    try:
        with storage.replacing(path) as copy:
            for value in _values(file, group, leaf, rows):
                room -= len(value)
                if room < 0:
                    with open(path + _CUT, "wb"):
                        remove_at_end(path + _CUT)
                    break
                copy.write(value)
    except StorageError as exc:
        if isinstance(exc.__cause__, OSError) and exc.__cause__.errno in _FULL:
            raise _no_room(path) from exc
        raise


def _opened(raw: IO[bytes], name: str, container: str) -> Any:
    """Return a Parquet file, with the footer that was read before if it is of the same version."""
    file = parquet_file(raw, _footers.get((name, container)))
    if (name, container) not in _footers:
        _footers.clear()
        _footers[name, container] = file.metadata
    return file


def _no_room(path: str) -> PayloadError:
    folder = os.path.dirname(os.path.dirname(path))
    return PayloadError(
        RejectCode.OUT_OF_MEMORY.value,
        f"{folder}: there is no room here for the unpacked images of this row group; set TMPDIR to "
        f"a larger folder, or write the file with smaller row groups",
    )


def _values(file: Any, group: int, leaf: str, rows: int) -> Iterator[memoryview]:
    """Yield the values of a column in a row group, up to the first damaged page."""
    import pyarrow as pa

    try:
        for batch in file.iter_batches(rows, row_groups=[group], columns=[leaf]):
            array = batch.column(0)
            if pa.types.is_struct(array.type):
                array = array.field(0)
            for each in array:
                if each.is_valid:
                    yield memoryview(each.as_buffer())
    except (pa.ArrowException, OSError) as exc:
        if _is_real(exc):
            raise


def _is_real(exc: Exception) -> bool:
    """Return whether an error is the system's; Arrow's about damage are OSErrors, too."""
    return isinstance(exc, OSError) and (type(exc) is not OSError or exc.errno is not None)
