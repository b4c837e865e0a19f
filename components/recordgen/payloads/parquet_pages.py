"""How much a Parquet file unpacks to, read from its headers before anything is unpacked.

    footer: a schema of 3 columns │ header: dictionary, 60 MB unpacked, 2 kB packed │ 2 kB │ …

Sums in the footer may lie. The headers of pages cannot: the library allocates what they announce,
and refuses a page that unpacks to another size. Rules: "Parquet Thrift definition" and "Thrift
compact protocol specification".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import IO, Any, NamedTuple

from recordgen.core.limits import (
    COLUMN_LEVELS,
    COLUMNS,
    LIST_VALUES,
    TEXT_BYTES,
    UNPACKED_BYTES,
    UNPACKED_TIMES,
)

#: Most rows that are held in memory at once.
ROWS_AT_ONCE = 16

_DICTIONARY_PAGE = 2
_OF_DICTIONARY = (2, 8)  # PLAIN_DICTIONARY, RLE_DICTIONARY
_DELTA_BYTE_ARRAY = 7  # a value repeats the beginning of the one before

# Bytes of a page's header: of most, and of the largest that Arrow reads.
_HEADER_BYTES = (1 << 12, 16 << 20)
_TAIL_BYTES = 8  # the size of the footer, and "PAR1"
_FAR_BYTES = 8_000_000
_MAX_DEPTH = 16
_MASK = 0xFFFFFFFF

# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class Unpacking(NamedTuple):
    """How the columns of a row group are read.

    Attributes:
        rows: rows that are held in memory at once.
        shared: rows at the beginning that share values of the dictionary.
    """

    rows: int
    shared: int


class Page(NamedTuple):
    """The header of a page of rows, or of the dictionary of their values."""

    is_dictionary: bool
    unpacked: int
    packed: int
    values: int
    encoding: int


def check_schema(raw: IO[bytes]) -> None:
    """Check the number and the depth of columns: the library recurses. Raises: ValueError."""
    end = raw.seek(0, 2)
    raw.seek(max(0, end - _TAIL_BYTES))
    size = min(int.from_bytes(raw.read(4), "little"), end)  # a damaged size would be allocated
    raw.seek(max(0, end - _TAIL_BYTES - size))
    inside: list[int] = []  # columns that follow in each open group
    for number, children in enumerate(_children(raw.read(size))):
        COLUMNS.check(number)
        while inside and not inside[-1]:
            inside.pop()
        if inside:
            inside[-1] -= 1
        if children:
            inside.append(children)
            COLUMN_LEVELS.check(len(inside))


def _children(footer: bytes) -> Iterator[int]:
    """Yield the number of children of each column in a footer, whose second field they are."""
    try:
        _, at = _value(footer, 1, _I32, 0)
        if footer[at] != 0x10 + _LIST:
            raise ValueError("its schema is not where it should be")
        count, kind, at = _list_head(footer, at + 1)
        for _ in range(count):
            column, at = _value(footer, at, kind, 0)
            yield _number(column, 5)
    except (IndexError, AttributeError) as exc:
        raise ValueError("its schema is damaged") from exc


def unpacking(
    raw: IO[bytes],
    file: Any,
    group: int,
    columns: Set[str],
    image: str,
    most_rows: int,
    *,
    is_far: bool,
) -> Unpacking:
    """Return how columns of a row group are read within the limits.

    Args:
        raw: the file.
        file: the same as ``pyarrow.parquet.ParquetFile``.
        group: the number of the row group.
        columns: names of the columns that are read, or the path of one; empty: all.
        image: the path of the column of images, if there is one.
        most_rows: rows that are held in memory at once, unless they are too large.
        is_far: headers of pages are requests. They are not read if packed pages have more than
            :data:`_FAR_BYTES`, which a bomb does not need.

    Raises: ValueError: the largest pages or the lists take too much memory.
    """
    row_group, shared = file.metadata.row_group(group), 0
    held = largest = packed = in_lists = list_bytes = text_bytes = 0
    for number in range(row_group.num_columns):
        chunk = row_group.column(number)
        path = chunk.path_in_schema
        if columns and columns.isdisjoint((path, path.partition(".")[0])):
            continue
        if is_far and chunk.total_compressed_size > _FAR_BYTES:
            continue
        pages = list(_pages(raw, chunk))
        packed += sum(page.packed for page in pages)
        held += max((page.unpacked for page in pages), default=0)
        if held > UNPACKED_TIMES.most * packed:
            UNPACKED_BYTES.check(held)
        is_text = "BYTE" in chunk.physical_type
        value = max((page.unpacked for page in pages if is_text and _repeats(page)), default=0)
        if path == image:
            shared = _shared(pages)
            largest += value
            continue
        column = file.schema.column(number)  # a cycle of references, which no row group needs
        value = max(value, column.length or 0)
        is_list = column.max_repetition_level > 0
        in_pages = sum(page.values for page in pages if not page.is_dictionary)
        values = in_pages if is_list else row_group.num_rows
        if value * values > (UNPACKED_BYTES if is_list else TEXT_BYTES).most:
            value = _longest(raw, group, path)
        if is_list:
            in_lists += values
            list_bytes += value * values
        else:
            largest += value
            text_bytes += value * values
    if max(in_lists, list_bytes, text_bytes) > UNPACKED_TIMES.most * packed:
        LIST_VALUES.check(in_lists)
        UNPACKED_BYTES.check(list_bytes)
        TEXT_BYTES.check(text_bytes)
    return Unpacking(max(1, min(most_rows, UNPACKED_BYTES.most // max(1, largest))), shared)


def _shared(pages: Sequence[Page]) -> int:
    """Return how many rows have values of the dictionary; 0 if it has one for each of them."""
    rows = sum(it.values for it in pages if not it.is_dictionary and it.encoding in _OF_DICTIONARY)
    return rows if rows > sum(it.values for it in pages if it.is_dictionary) else 0


def _repeats(page: Page) -> bool:
    """Return whether values of a page may take more bytes than the page."""
    return page.is_dictionary or page.encoding == _DELTA_BYTE_ARRAY


def _longest(raw: IO[bytes], group: int, leaf: str) -> int:
    """Return the bytes of the longest text in the dictionary of a column. Raises: ValueError."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.PythonFile(raw, "r"), read_dictionary=[leaf], pre_buffer=False)
    try:
        array = next(file.iter_batches(1, row_groups=[group], columns=[leaf])).column(0)
        while not pa.types.is_dictionary(array.type):
            array = array.field(0) if pa.types.is_struct(array.type) else array.values
        return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)
    except (pa.ArrowException, OSError, StopIteration, AttributeError) as exc:
        raise ValueError(f"the dictionary of {leaf} cannot be read: {exc}") from exc


def _pages(raw: IO[bytes], chunk: Any) -> Iterator[Page]:
    """Yield the headers of a column's pages, up to damage, at which the library ends, too."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while 0 <= at < end:
        for most in _HEADER_BYTES:
            raw.seek(at)
            data = raw.read(min(most, end - at))
            try:
                header, size = _struct(data, 0, 0)
                page = page_of(header)
                break
            except IndexError:
                continue
            except ValueError:
                return
        else:
            return
        if page.packed < 0:
            return
        yield page
        at += size + page.packed


def page_of(header: Mapping[int, Any]) -> Page:
    """Return the header of a page. Raises: ValueError: a field has another type."""
    data = header.get(5) or header.get(8) or header.get(7) or {}
    if not isinstance(data, dict):
        raise ValueError("a page's header is no struct")
    values, encoding = _number(data, 1), _number(data, 2 if 5 in header else 4)
    is_dictionary = header.get(1) == _DICTIONARY_PAGE
    return Page(is_dictionary, _number(header, 2), _number(header, 3), values, encoding)


def _number(fields: Mapping[int, Any], field: int) -> int:
    """Return a field of a struct; 0 if it is missing. Raises: ValueError: it is no number."""
    value = fields.get(field, 0)
    if not isinstance(value, int):
        raise ValueError(f"field {field} must be a number")
    return value


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a value and where it ends: a number, or the fields of a struct; None for others.

    Raises: IndexError: the bytes end; ValueError: it is damaged.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deep")
    if kind in (_I16, _I32, _I64):
        number, at = _varint(data, at)
        number = number if kind == _I64 else number & _MASK
        return (number >> 1) ^ -(number & 1), at
    if kind in (_TRUE, _FALSE, _BYTE):  # within a list
        return data[at], at + 1
    if kind == _BINARY:
        size, at = _varint(data, at)
        return None, at + size
    if kind == _DOUBLE:
        return None, at + 8
    if kind in (_LIST, _SET):
        count, inner, at = _list_head(data, at)
        for _ in range(count):
            _, at = _value(data, at, inner, depth + 1)
        return None, at
    if kind != _STRUCT:  # no map is used
        raise ValueError(f"no type {kind}")
    return _struct(data, at, depth)


def _struct(data: bytes, at: int, depth: int) -> tuple[Mapping[int, Any], int]:
    fields: dict[int, Any] = {}
    field = 0
    while head := data[at]:
        step, kind = head >> 4, head & 15
        at += 1
        if step:
            field += step
        else:
            field, at = _value(data, at, _I16, depth)
        if kind in (_TRUE, _FALSE):
            fields[field] = kind == _TRUE
        else:
            fields[field], at = _value(data, at, kind, depth + 1)
    return fields, at + 1


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number of items in a list, their type, and where they begin."""
    count, kind = data[at] >> 4, data[at] & 15
    if count < 15:
        return count, kind, at + 1
    count, at = _varint(data, at + 1)
    return count, kind, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
