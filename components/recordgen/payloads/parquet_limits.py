"""Open Parquet files, and read them within limits, which hold for what a file says of itself.

    100 rows: labels of 2 kB that unpack to 60 MB ─▶ one reject; images of 20 MB ─▶ 3 rows at once

A column may hold a value once for all of its rows (a dictionary), so a few bytes in the file may
stand for any number of bytes in memory. A file whose sizes are lies meets the allowance of the
process that reads it.
"""

from __future__ import annotations

from collections.abc import Set
from typing import IO, Any

from recordgen.core import limits

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
