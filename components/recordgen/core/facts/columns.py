"""The columns of facts about examples, in the staging folder and in ``examples.parquet``."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import methodcaller
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from recordgen.core.facts import ImageNote, Seen
from recordgen.core.facts.kept_rows import RowIndices, sample_of
from recordgen.core.rows.columns import gathered, read_parquet

Columns = Any  # pa.Table; Arrow's stubs differ from version to version

#: The columns that planned rows and facts share (:class:`recordgen.core.rows.row.PlannedRow`).
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

# Rows of a group, which is in memory twice, and the largest text of one.
GROUP_ROWS = 1 << 18
GROUP_BYTES = 16 << 20

# Parts of a shard's annotations that become one table of facts.
_PARTS_AT_ONCE = 8

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
    kinds = {field.name: field.type for field in WITH_ROWS}
    return whole(pa.table({name: pa.array(each, kinds[name]) for name, each in values.items()}))


def of_shard(split: str, file: str, parts: Iterable[Columns]) -> Iterator[Columns]:
    """Yield the facts of a shard's examples in parts, with split, shard and record.

    ``parts`` are about its planned rows, in the order of its records, without empty columns.
    """
    records = 0
    for part in parts:
        made = whole(part, _WITHOUT_SHARD)
        if made["content"].null_count:
            made = made.filter(made["content"].is_valid())
        count = len(made)
        for name, value in (("shard", file), ("split", split)):
            made = made.add_column(0, name, pa.repeat(value, count).dictionary_encode())
        numbers = np.arange(records, records + count, dtype=np.int32)
        records += count
        yield made.add_column(2, "record", pa.array(numbers))


def renumbered(parts: Iterable[Columns], rows: Columns) -> Iterator[Columns]:
    """Yield the facts of the same payloads with the import files and lines of ``rows``."""
    start = 0
    for facts in parts:
        for at, name in enumerate(SHARED_COLUMNS[:2]):
            facts = facts.set_column(at, name, rows[name].slice(start, len(facts)))
        start += len(facts)
        yield facts.cast(WITH_ROWS)


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
    out, repeated = io.BytesIO(), [field.name for field in _EXAMPLES if field.type == _TEXT]

    def taken() -> bytes:
        """Return what was written since the last call; Arrow counts the bytes before."""
        found = out.getvalue()
        out.seek(0)
        out.truncate()
        return found

    with parquet.ParquetWriter(out, _EXAMPLES, compression="zstd", use_dictionary=repeated) as file:

        def encoded(group: Columns) -> bytes:
            for name in repeated:
                at = group.schema.get_field_index(name)
                group = group.set_column(at, name, _in_row_order(group[name].combine_chunks()))
            file.write_table(group.cast(_EXAMPLES))
            return taken()

        selected = map(methodcaller("select", _EXAMPLES.names), parts)  # keeps no part
        some = gathered(selected, group_rows, GROUP_BYTES, _OF_ALL)
        groups = map(row_groups, map(_together, some), repeat(group_rows))
        yield from map(encoded, chain.from_iterable(groups))
    yield taken()


def _in_row_order(texts: Any) -> Any:
    """Return texts whose dictionary has the order of the rows, however their parts were read."""
    found = texts.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(found.indices, texts.dictionary.take(found.dictionary))


def _together(parts: Sequence[Columns]) -> Columns:
    empty = LINTED.empty_table().select(_EXAMPLES.names)
    return pa.concat_tables([empty, *parts]).unify_dictionaries()


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

    See :func:`recordgen.core.rows.columns.read_parquet`.

    Raises: ValueError: the file is something else.
    """
    return read_parquet(file, _EXAMPLES, names, added=_ADDED, group=group)


def with_kept(columns: Columns) -> Columns:
    """Add the columns that ``examples.parquet`` does not have, without values."""
    for name, kind in KEPT_COLUMNS.items():
        columns = columns.append_column(name, empty_column(len(columns), kind))
    return columns.cast(LINTED)


#: Rows kept per split of a table, for checks of its columns.
SAMPLE_ROWS = 10_000

# Notes measured at once: 256 texts at once take a quarter of the time of 64 at once.
_AT_ONCE = 256


class ExampleNote(NamedTuple):
    """What a worker notes about an example."""

    content: int  # 64 bits of a digest of what a trainer sees of its payload
    image: ImageNote | None = None  # its image; None if it has none
    seen: Seen | None = None  # its picture or text; None if no check needs it


class FactsBuilder:
    """Facts about planned rows, in their order.

    Each batch of rows has its own, and a shard concatenates them. Notes wait until there are enough
    to measure them together; then they become a table of those columns of facts that they have.

    Attributes:
        annotations: the annotations in parts, if they differ from the planned rows'.
    """

    def __init__(self) -> None:
        self.annotations: list[Columns] = []
        self._tables: list[Columns] = []
        self._notes: list[ExampleNote | None] = []  # the rows after the tables, None: refused
        self._odd: list[RowIndices] = []  # indexes of the rows that checks of columns need

    @classmethod
    def of(
        cls,
        contents: npt.NDArray[np.uint64],
        refused: Sequence[int],
        annotations: Columns | None = None,
        odd: RowIndices | None = None,
    ) -> FactsBuilder:
        """Return the facts about rows without images and texts; ``refused`` became no example."""
        builder = cls()
        is_refused = np.zeros(len(contents), np.bool_)
        is_refused[list(refused)] = True
        builder._tables.append(pa.table({"content": pa.array(contents, mask=is_refused)}))
        builder.annotations = [] if annotations is None else [annotations]
        builder._odd = [] if odd is None else [odd]
        return builder

    def add(self, note: ExampleNote | None) -> None:
        """Add the next row; None if it became no example."""
        self._notes.append(note)
        self._measure(_AT_ONCE)

    def extend(self, more: FactsBuilder) -> None:
        """Append the facts about the rows of another batch."""
        self._odd += [len(self) + rows for rows in more._odd]
        if more._tables:
            self._measure()
            self._tables += more._tables
        self._notes += more._notes
        self.annotations += more.annotations
        self._measure(_AT_ONCE)

    def _measure(self, least: int = 1) -> None:
        """Make a table of the notes that wait, if there are this many."""
        if len(self._notes) >= least:
            self._tables.append(_table_of(self._notes))
            self._notes = []

    def __len__(self) -> int:
        return sum(map(len, self._tables)) + len(self._notes)

    def kept(self, count: int) -> tuple[RowIndices, npt.NDArray[np.bool_]]:
        """Return the indexes of rows to keep whole, and which of them are the sample."""
        contents = self.columns()["content"]
        is_there = np.asarray(contents.is_valid())
        sampled = sample_of(contents.fill_null(0).to_numpy(), is_there, count)
        rows = np.unique(np.concatenate([sampled, *self._odd]).astype(np.intp))
        return rows, np.isin(rows, sampled)

    def columns(self) -> Columns:
        """Return the facts as columns; null where they were not measured."""
        self._measure()
        tables = self._tables or [_table_of([])]
        measured = {name for table in tables for name in table.column_names}
        schema = pa.schema([field for field in NOTED if field.name in measured])
        found = pa.concat_tables([whole(table, schema) for table in tables])
        return whole(found.unify_dictionaries().combine_chunks(), NOTED)


def _table_of(notes: Sequence[ExampleNote | None]) -> Columns:
    """Measure rows together."""
    contents = [None if note is None else note.content for note in notes]
    found = {"content": pa.array(contents, pa.uint64())}
    for name, column in (*_image_columns(notes), *_seen_columns(notes)):
        # Pictures and texts share a column.
        found[name] = pc.coalesce(found[name], column) if name in found else column
    return pa.table(found)


def _image_columns(notes: Sequence[ExampleNote | None]) -> Iterator[tuple[str, Any]]:
    images = [None if note is None else note.image for note in notes]
    if any(image is not None for image in images):
        for at, (name, kind) in enumerate(IMAGE_COLUMNS.items()):
            yield name, pa.array([None if image is None else image[at] for image in images], kind)


def _seen_columns(notes: Sequence[ExampleNote | None]) -> Iterator[tuple[str, Any]]:
    seen = [None if note is None else note.seen for note in notes]
    for kind in dict.fromkeys(type(each) for each in seen if each is not None):
        is_kind = np.array([type(each) is kind for each in seen], np.bool_)
        places = pa.array(np.cumsum(is_kind) - 1, mask=~is_kind)
        for name, values in kind.columns([each for each in seen if type(each) is kind]).items():
            # NaN: not known.
            column = pa.array(values, NOTED.field(name).type, from_pandas=True)
            yield name, column.take(places)


def content_of(digest: bytes) -> int:
    """Return the first 64 bits of a digest."""
    return int.from_bytes(digest[:8], "big")


def _taken(parts: Iterable[Any], indexes: RowIndices) -> Iterator[Any]:
    """Yield some texts of several parts, given their ascending indexes in all of them."""
    start = 0
    for part in parts:
        first, last = np.searchsorted(indexes, [start, start + len(part)])
        yield part.take(pa.array(indexes[first:last] - start))
        start += len(part)


def with_facts(
    rows: Columns, builder: FactsBuilder, noted: Iterable[Any], lines: Iterable[Any], sample: int
) -> Iterator[Columns]:
    """Yield the facts of a shard in parts: of its planned rows, in the order of the builder.

    ``noted`` are the annotations of the rows for checks, in parts; None for parts that the builder
    has. Of the whole annotations, the ``lines`` of tables, ``sample`` are kept, in addition to
    those that the builder names.
    """
    found = rows.select(SHARED_COLUMNS[:-1])
    facts = builder.columns()
    for name in facts.column_names:
        found = found.append_column(name, facts[name])
    places, is_sampled = np.full(len(rows), -1), np.zeros(0, np.bool_)
    texts = pa.array([], pa.string())
    if sample:
        kept, is_sampled = builder.kept(sample)
        places[kept] = np.arange(len(kept))
        texts = pa.concat_arrays([texts, *_taken(lines, kept)])
    taken = pa.array(places, mask=places < 0)
    found = found.append_column("row", texts.take(taken))
    found = found.append_column("is_sampled", pa.array(is_sampled).take(taken))
    start, unknown = 0, [pa.nulls(len(rows), pa.string())]
    noted = (pa.array(part, pa.string()) for part in noted if part is not None)
    some = list(islice(noted, _PARTS_AT_ONCE)) or builder.annotations or unknown
    while some:
        texts = pa.chunked_array(some)
        part = found.slice(start, len(texts))
        part = part.add_column(len(SHARED_COLUMNS) - 1, SHARED_COLUMNS[-1], texts)
        yield part.cast(WITH_ROWS)
        start += len(texts)
        some = list(islice(noted, _PARTS_AT_ONCE))
