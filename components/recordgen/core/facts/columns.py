"""The columns of facts about examples, in the staging folder and in ``examples.parquet``."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from recordgen.core.rows.arrow_files import read_parquet

Columns = Any  # pa.Table; Arrow's stubs differ from version to version

#: The columns that planned rows and facts share (:class:`recordgen.core.rows.planned.PlannedRow`).
SHARED_COLUMNS = ("source", "line", "uri", "annotation")

#: What tells whether two pictures or two texts are alike has this size.
SIGNATURE_BYTES = 64

_TEXT = pa.dictionary(pa.int32(), pa.string())

# Only images have these columns, and the second group only if checks look at the pictures.
IMAGE_COLUMNS = {
    **{"format": _TEXT, "height": pa.int32(), "width": pa.int32()},
    **{"colours": _TEXT, "frames": pa.int32()},
}
LOOK_COLUMNS = {
    "perceptual_hash": pa.uint64(),
    "signature": pa.binary(SIGNATURE_BYTES),
    "brightness": pa.float32(),
    "contrast": pa.float32(),
    "darkest": pa.uint8(),
    "lightest": pa.uint8(),
    "sharpness": pa.float32(),
}

# Only texts have these columns, if checks read them. The similarity of two texts is estimated from
# ``signature``, which has the same size for texts and images: a second column would take its space
# in every dataset.
_READ = {
    "characters": pa.int32(),
    "garbled": pa.string(),
}

NOTED = pa.schema({"content": pa.uint64(), **IMAGE_COLUMNS, **LOOK_COLUMNS, **_READ})

_ALL = pa.schema(
    {
        "source": _TEXT,
        "line": pa.int64(),
        "uri": pa.string(),
        "annotation": pa.string(),
        **{field.name: field.type for field in NOTED},
    }
)

# Whole rows of tables, and whether they belong to the sample. Only checks need them, so
# examples.parquet has neither column.
KEPT_COLUMNS = {"row": pa.string(), "is_sampled": pa.bool_()}

WITH_ROWS = pa.schema({field.name: field.type for field in _ALL} | KEPT_COLUMNS)

_EXAMPLES = pa.schema(
    {"split": _TEXT, "shard": _TEXT, "record": pa.int32()} | {f.name: f.type for f in _ALL}
)

# All examples together have more than 2 GiB of text at some 20 million rows: 64-bit offsets.
_OF_ALL = {"uri": pa.large_string(), "annotation": pa.large_string()}

LINTED = pa.schema({field.name: field.type for field in _EXAMPLES} | _OF_ALL | KEPT_COLUMNS)
_WITHOUT_SHARD = pa.schema([field for field in LINTED if field.name in WITH_ROWS.names])

# Rows of a group, which is in memory twice, and the largest text of one: half of what fits.
GROUP_ROWS = 1 << 18
GROUP_BYTES = 1 << 30

# Rows of a chunk of an empty column.
_EMPTY_ROWS = 1 << 16

# Columns that examples.parquet of earlier versions does not have.
_ADDED = ("colours", "frames")


def without_empty(facts: Columns) -> Columns:
    """Return the facts of a shard without empty columns: tables have values in few of them."""
    return facts.select(
        [name for name in facts.column_names if facts[name].null_count < len(facts)]
    )


def whole(facts: Columns, schema: Any = WITH_ROWS) -> Columns:
    """Undo :func:`without_empty`."""
    there = dict(zip(facts.column_names, facts.columns, strict=True))
    return pa.table(
        [
            there[it.name].cast(it.type) if it.name in there else empty_column(len(facts), it.type)
            for it in schema
        ],
        schema=schema,
    )


def empty_column(rows: int, kind: Any) -> Any:
    """Return a column without values, whose chunks share their memory."""
    chunk = pa.nulls(min(rows, _EMPTY_ROWS), kind)
    chunks = [chunk] * (rows // _EMPTY_ROWS) + [chunk.slice(0, rows % _EMPTY_ROWS)]
    return pa.chunked_array(chunks)


def facts_of(values: Mapping[str, Any]) -> Columns:
    """Return the facts of a shard, given the values of some columns."""
    kinds = {name: WITH_ROWS.field(name).type for name in values}
    return whole(
        pa.table(
            {
                name: pa.array(values[name]).dictionary_encode()
                if kind == _TEXT
                else pa.array(values[name], kind)
                for name, kind in kinds.items()
            }
        )
    )


def of_shard(split: str, file: str, facts: Columns) -> Columns:
    """Return the facts of a shard's examples, with split, shard and record.

    ``facts`` about its planned rows are in the order of its records, without empty columns.
    """
    made = whole(facts, _WITHOUT_SHARD)
    if made["content"].null_count:
        made = made.filter(made["content"].is_valid())
    count = len(made)
    for name, value in (("shard", file), ("split", split)):
        made = made.add_column(0, name, pa.repeat(value, count).dictionary_encode())
    return made.add_column(2, "record", pa.array(np.arange(count, dtype=np.int32)))


def renumbered(facts: Columns, rows: Columns) -> Columns:
    """Return the facts of the same payloads with the import files and lines of ``rows``."""
    for at, name in enumerate(SHARED_COLUMNS[:2]):
        facts = facts.set_column(at, name, rows[name])
    return facts.cast(WITH_ROWS)


class _Pieces(io.RawIOBase):
    """Collects what is written until it is taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._position += len(data)
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def bytes_of(column: Any) -> npt.NDArray[np.uint8]:
    """Return a column of texts of one size, without nulls, as bytes: uint8 [rows, size]."""
    size = column.type.byte_width
    parts = [
        np.frombuffer(part.buffers()[1], np.uint8)[part.offset * size :][: len(part) * size]
        for part in column.chunks
        if len(part)
    ]
    return np.concatenate([np.zeros(0, np.uint8), *parts]).reshape(-1, size)


def to_parquet(parts: Iterable[Columns], group_rows: int = GROUP_ROWS) -> Iterator[bytes]:
    """Yield the content of ``examples.parquet`` by row group; small parts share one.

    Nothing refers to a part when the next one is requested: a part may be large.
    """
    out = _Pieces()
    repeated = [
        name for name, kind in zip(_EXAMPLES.names, _EXAMPLES.types, strict=True) if kind == _TEXT
    ]
    with parquet.ParquetWriter(
        out, _EXAMPLES, compression="zstd", use_dictionary=repeated
    ) as writer:

        def encoded(group: Columns) -> bytes:
            for name in repeated:
                at = group.schema.get_field_index(name)
                group = group.set_column(at, name, _in_row_order(group[name].combine_chunks()))
            writer.write_table(group.cast(_EXAMPLES))
            return out.taken()

        groups = map(row_groups, _gathered(parts, group_rows), repeat(group_rows))
        yield from map(encoded, chain.from_iterable(groups))
    yield out.taken()


def _in_row_order(texts: Any) -> Any:
    """Return texts whose dictionary has the order of the rows, however their parts were read."""
    found = texts.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(found.indices, texts.dictionary.take(found.dictionary))


def _gathered(parts: Iterable[Columns], rows: int) -> Iterator[Columns]:
    """Yield tables of at least ``rows`` rows, and one with the rest."""
    waiting = [LINTED.empty_table().select(_EXAMPLES.names)]
    for part in parts:
        waiting.append(part.select(_EXAMPLES.names))
        del part
        if sum(map(len, waiting)) >= rows:
            yield pa.concat_tables(waiting).unify_dictionaries()
            waiting = waiting[:1]
    yield pa.concat_tables(waiting).unify_dictionaries()


def row_groups(
    columns: Columns, rows: int = GROUP_ROWS, text_bytes: int = GROUP_BYTES
) -> Iterator[Columns]:
    """Yield slices of at most ``rows`` rows, whose texts have at most ``text_bytes`` bytes.

    A row with more text is a slice of its own; no rows are one empty slice.
    """
    for start in range(0, max(len(columns), 1), rows):
        group = columns.slice(start, rows)
        if start:  # offsets of a slice begin where it does, and may be too large for 32 bits
            group = group.take(pa.array(np.arange(len(group))))
        if len(group) > 1 and max(group[name].nbytes for name in _OF_ALL) > text_bytes:
            yield from row_groups(group, (len(group) + 1) // 2, text_bytes)
        else:
            yield group


def read_examples(
    file: IO[bytes], names: Collection[str] | None = None, group: int | None = None
) -> Columns:
    """Return columns of ``examples.parquet``.

    See :func:`recordgen.core.rows.arrow_files.read_parquet`.

    Raises: ValueError: the file is something else.
    """
    return read_parquet(file, _EXAMPLES, names, added=_ADDED, group=group)


def with_kept(columns: Columns) -> Columns:
    """Add the columns that ``examples.parquet`` does not have, without values."""
    for name, kind in KEPT_COLUMNS.items():
        columns = columns.append_column(name, empty_column(len(columns), kind))
    return columns.cast(LINTED)
