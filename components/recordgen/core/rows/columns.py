"""Many rows as Arrow columns, from the bucket to the shard.

    RowBatches ──placed──▶ columns of PlacedRow ──by_bucket──▶ columns of each bucket
    columns of PlannedRow ──PlannedBatch──▶ the rows of examples

A column has the name of a field of the row, see :mod:`recordgen.core.rows.row`. A row is a
tuple; only rows that must be inspected one by one become tuples.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import accumulate
from typing import IO, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from recordgen.core.rows.row import KnownRow, PlacedRow, PlannedRow, RowBatch, placing, seeded_hash
from recordgen.messages import shortened

# Arrow's type stubs, if installed, differ from version to version.
Columns: TypeAlias = Any  # pa.Table

_Row = TypeVar("_Row", PlacedRow, KnownRow, PlannedRow)

_SOURCE = pa.dictionary(pa.int32(), pa.string())

# The types of fields that are not text.
_TYPES: Mapping[str, pa.DataType] = {
    "sort_key": pa.uint64(),
    "split_hash": pa.uint64(),
    "source": _SOURCE,
    "shard": _SOURCE,
    "line": pa.int64(),
    "bytes": pa.int64(),
    "assigned": pa.bool_(),
}

_SCHEMAS: Mapping[type, pa.Schema] = {
    kind: pa.schema({name: _TYPES.get(name, pa.string()) for name in kind._fields})
    for kind in (PlacedRow, KnownRow, PlannedRow)
}


def columns_of(kind: type[_Row], rows: Iterable[tuple[Any, ...]]) -> Columns:
    """Return rows of a kind, or plain tuples of their fields, as columns."""
    schema = _SCHEMAS[kind]
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def rows_of(kind: type[_Row], columns: Columns) -> Iterator[_Row]:
    """Yield the rows of a kind from their columns."""
    names = _SCHEMAS[kind].names
    values = [values_of(columns.column(name)) for name in names]
    return map(kind._make, zip(*values, strict=True))


def values_of(column: Any) -> list[Any]:
    """Return a column's values like ``to_pylist``, but without creating an Arrow scalar for each.

    Numbers must not be null.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    return column.to_numpy(zero_copy_only=False).tolist()


def placed(
    batches: Sequence[RowBatch],
    names: Iterable[str],
    seed: int,
    groups: Sequence[str | None] | None = None,
) -> Columns:
    """Return rows with their places.

    Each name places a row; its group, if it has one, decides its split.
    """
    seeded = seeded_hash(seed)
    digests = []
    for name in names:
        hasher = seeded.copy()
        hasher.update(name.encode("utf-8", "surrogateescape"))
        digests.append(hasher.digest())
    places = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, 2)
    if groups is not None:
        place = placing(seed)
        hash_of = {group: place(group).split_hash for group in set(groups) if group is not None}
        for at, group in enumerate(groups):
            if group is not None:
                places[at, 1] = hash_of[group]
    sources = list(dict.fromkeys(batch.source for batch in batches))
    codes = np.array([sources.index(batch.source) for batch in batches], np.int32)
    source = np.repeat(codes, [len(batch.lines) for batch in batches])
    given = [
        pa.chunked_array([pa.array(batch[at], kind) for batch in batches], kind)
        for at, kind in enumerate((pa.int64(), *[pa.string()] * 3), start=1)
    ]
    addresses = [
        pa.nulls(len(batch.lines), pa.string())
        if batch.addresses is None
        else pa.array(batch.addresses, pa.string())
        for batch in batches
    ]
    arrays = [
        pa.array(places[:, 0]),
        pa.array(places[:, 1]),
        pa.DictionaryArray.from_arrays(pa.array(source), pa.array(sources, pa.string())),
        *given,
        pa.chunked_array(addresses, pa.string()),
    ]
    return pa.Table.from_arrays(arrays, schema=_SCHEMAS[PlacedRow])


def by_bucket(columns: Columns, buckets: int) -> Iterator[tuple[int, Columns]]:
    """Yield placed rows by bucket: equal ranges of ``sort_key``, in order."""
    return grouped(columns, shares_of(columns["sort_key"].to_numpy(), [1] * buckets))


def grouped(columns: Columns, numbers: npt.NDArray[Any]) -> Iterator[tuple[int, Columns]]:
    """Yield rows by their number (int [n]), in order of the numbers."""
    ordered = np.argsort(numbers, kind="stable")
    columns = columns.take(pa.array(ordered))
    found, starts = np.unique(numbers[ordered], return_index=True)
    sizes = np.diff(starts, append=len(ordered))
    for number, start, size in zip(found.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        yield number, columns.slice(start, size)


def shares_of(numbers: npt.NDArray[np.uint64], weights: Sequence[int]) -> npt.NDArray[np.intp]:
    """Return the share of the 64-bit range (int [n]) to which each number (uint64 [n]) belongs."""
    *ends, total = accumulate(weights)
    starts = [-(-(end << 64) // total) for end in ends]
    # A share that begins at the end of the range is empty, and so are all later ones.
    inside = np.array([start for start in starts if start < 1 << 64], np.uint64)
    return np.searchsorted(inside, numbers, side="right")


def mixed(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread each hash over 64 bits (Stafford's variant 13, as in SplitMix64)."""
    hashes = (hashes ^ hashes >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ hashes >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return hashes ^ hashes >> np.uint64(31)


def together(kind: type[Any], parts: Iterable[Columns]) -> Columns:
    """Return the rows of several parts in one table."""
    found = list(parts) or [_SCHEMAS[kind].empty_table()]
    return pa.concat_tables(found).unify_dictionaries()


def in_order(columns: Columns) -> Columns:
    """Return placed rows sorted by place; rows in the same place by import file and line."""
    places = columns["sort_key"].to_numpy()
    order = np.argsort(places, kind="stable")
    if not np.diff(places[order]).all():
        sources = columns["source"].combine_chunks()
        names = sources.dictionary.to_pylist()
        rank = np.argsort(np.argsort(names))
        lines, hashes = columns["line"].to_numpy(), columns["split_hash"].to_numpy()
        order = np.lexsort((lines, rank[sources.indices.to_numpy()], hashes, places))
    return columns.take(pa.array(order))


def gathered(
    parts: Iterable[Columns], rows: int, text_bytes: int, texts: Collection[str]
) -> Iterator[list[Columns]]:
    """Yield parts in groups; the last has the rest, or nothing.

    A group ends as soon as it has this many rows, or this many bytes in the columns ``texts``.
    """
    waiting: list[Columns] = []
    count = size = 0
    for part in parts:
        waiting.append(part)
        count += len(part)
        size += sum(part[name].nbytes for name in texts)
        del part  # it may be large, and the caller may free it
        if count >= rows or size >= text_bytes:
            yield waiting
            waiting, count, size = [], 0, 0
    yield waiting


def in_planned_order(columns: Columns) -> Columns:
    """Return planned rows, which are sorted by ``sort_key``, sorted also by uri and import file.

    Rows without a uri already are.
    """
    keys = columns["sort_key"].to_numpy()
    has_uri = np.asarray(pc.greater(pc.binary_length(columns["uri"]), 0), np.bool_)
    if not ((keys[1:] == keys[:-1]) & has_uri[1:]).any():
        return columns
    uris, sources = values_of(columns["uri"]), values_of(columns["source"])
    order = sorted(range(len(keys)), key=lambda at: (keys[at], uris[at], sources[at]))
    return columns.take(pa.array(order))


class PlannedBatch:
    """Planned rows, in order.

    Attributes:
        columns: the rows as columns, see :class:`recordgen.core.rows.row.PlannedRow`.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._rows: Callable[[], Sequence[PlannedRow]] = lambda: [*rows_of(PlannedRow, columns)]

    @cached_property
    def rows(self) -> Sequence[PlannedRow]:
        """The rows one by one, made when they are needed."""
        return self._rows()

    @cached_property
    def payload_bytes(self) -> int:
        """The size of all payloads."""
        return int(self.columns["bytes"].to_numpy().sum())

    def slice(self, start: int, count: int) -> PlannedBatch:
        """Return some of the rows; slices share the tuples of :attr:`rows`."""
        part = PlannedBatch(self.columns.slice(start, count))
        part._rows = lambda: self.rows[start : start + count]
        return part


def packed(columns: Columns) -> bytes:
    """Return columns as bytes for :func:`read_streams`."""
    sink = io.BytesIO()  # unlike Arrow's own, it gives its bytes away without a copy
    with pa.ipc.new_stream(sink, columns.schema) as stream:
        stream.write_table(columns.unify_dictionaries())
    return sink.getvalue()


def joined(items: Any) -> memoryview:
    """Return the concatenated texts or bytes of an Arrow array, without copying them."""
    _, offsets, data = items.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[items.offset : items.offset + len(items) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]


def joined_by_row(parts: Sequence[Any]) -> Any:
    """Return the concatenated parts of each row (binary [rows])."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def heads_by_size(items: Any, head: Callable[[int], bytes]) -> Any:
    """Return the head of each item, which depends only on its size (binary [rows])."""
    sizes = pc.binary_length(items).dictionary_encode()
    return pa.array(map(head, sizes.dictionary.to_pylist()), pa.binary()).take(sizes.indices)


def content_of(column: Any) -> Iterator[bytes | memoryview]:
    """Yield bytes that depend only on the values of a column of texts, numbers or booleans.

    Arrow's memory layout may differ between arrays of the same values.
    """
    column = column.combine_chunks()
    if not pa.types.is_string(column.type):
        yield column.cast(pa.int64()).to_numpy().tobytes()
        return
    yield pc.fill_null(pc.binary_length(column), -1).to_numpy().tobytes()
    yield joined(pc.fill_null(column, ""))


# A file may declare columns of an extension type, whose class reads the file's description of it.
# PyArrow before 14.0.1 has a class that unpickles the description, and so runs any code in it
# (CVE-2023-47248); TFX 1.16 needs PyArrow 10. Recordgen writes no such types, and refuses all of
# them: all reads of Arrow and Parquet in this package pass here.
_PICKLED = "arrow.py_extension_type"
_IS_EXTENSION = b"ARROW:extension:name"


def read_parquet(
    file: IO[bytes],
    schema: Any,
    names: Collection[str] | None = None,
    *,
    added: Collection[str] = (),
    group: int | None = None,
) -> Any:
    """Return the columns of a Parquet file, with the types of ``schema``.

    Args:
        file: the file, at its start.
        schema: a ``pyarrow.Schema``.
        names: the wanted columns; those that the file does not have are missing in the result. By
            default, the file must have all columns of ``schema``; others are of earlier versions.
        added: columns that earlier versions of the file do not have; by default, they are null.
        group: the wanted row group; None: all rows.

    Raises: ValueError: the file is damaged, or has columns of other types.
    """
    forbid_pickled_types()
    try:
        opened = parquet.ParquetFile(file)
        _check_types(opened.schema_arrow)
        there = opened.schema_arrow.names
        wanted = [name for name in (schema.names if names is None else names) if name in there]
        missing = [] if names is not None else [n for n in schema.names if n not in wanted]
        if not {*missing} <= {*added}:
            raise ValueError("it has other columns")
        # Threads that read a Python file wait for the interpreter's lock, and the thread that meets
        # the damage may hold it while it waits for them.
        groups = range(opened.num_row_groups) if group is None else [group]
        found = opened.read_row_groups(groups, wanted, use_threads=False).select(wanted)
        found.validate(full=True)
        found = found.cast(pa.schema([schema.field(name) for name in wanted]))
        for name in missing:
            field = schema.field(name)
            found = found.append_column(field, pa.nulls(len(found), field.type))
        return found if names is not None else found.select(schema.names)
    except (
        pa.ArrowException,
        OSError,
        LookupError,
        ValueError,
        RuntimeError,
    ) as exc:
        reason = shortened(" ".join(str(exc).split()), 300)
        raise ValueError(f"not a Parquet file of this version: {reason}") from exc


def count_groups(file: IO[bytes]) -> int:
    """Return the number of row groups of a Parquet file. Raises: ValueError: it is none."""
    forbid_pickled_types()
    try:
        return int(parquet.ParquetFile(file).num_row_groups)
    except (pa.ArrowException, OSError) as exc:
        raise ValueError(f"not a Parquet file: {exc}") from exc


def read_streams(data: bytes | memoryview | IO[bytes]) -> Iterator[Any]:
    """Yield the table of each Arrow stream in concatenated data, or in the rest of a file.

    The file is closed before the last table is yielded. Raises: ValueError.
    """
    forbid_pickled_types()
    is_in_memory = isinstance(data, bytes | memoryview)
    with pa.BufferReader(data) if is_in_memory else pa.PythonFile(data, "r") as file:
        while not file.closed and file.tell() < file.size():
            try:
                stream = pa.ipc.open_stream(file)
                _check_types(stream.schema)
                table = stream.read_all()
                table.validate(full=True)  # a changed offset or index would be followed anywhere
                _ = table.column_names  # Arrow decodes them when they are asked for
            except (pa.ArrowException, OSError) as exc:
                raise ValueError(f"damaged columns: {exc}") from exc
            if file.tell() == file.size():
                file.close()  # a caller may not ask for more than the last table
            yield table


@cache
def forbid_pickled_types() -> None:
    """Make this process refuse pickled types, as the package ``pyarrow_hotfix`` does.

    Later versions of PyArrow unpickle nothing, but warn or do not know the type.
    """
    with suppress(pa.ArrowKeyError):  # not registered, or another thread is faster
        pa.unregister_extension_type(_PICKLED)
    with suppress(pa.ArrowKeyError):
        pa.register_extension_type(_Forbidden(pa.null(), _PICKLED))


class _Forbidden(pa.ExtensionType):
    """Takes the place of the type that unpickles."""

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Any:
        raise ValueError(f"a column has the type {_PICKLED}, which could run code")


def _check_types(schema: Any) -> None:
    """Check that no column has an extension type. Raises: ValueError."""
    for field in schema:
        if name := _extension_in(field):
            raise ValueError(f"the column {field.name!r:.80} has the extension type {name!r:.80}")


def _extension_in(field: Any) -> str:
    """Return the name of an extension type in a field or in the fields below it, or ""."""
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.extension_name)
    if name := (field.metadata or {}).get(_IS_EXTENSION):
        return str(name, "utf-8", "replace")
    inner = [kind.field(at) for at in range(kind.num_fields)]
    return next(filter(None, map(_extension_in, inner)), "")
