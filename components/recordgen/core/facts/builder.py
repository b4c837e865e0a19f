"""The facts about planned rows, in their order, which a shard collects while it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.facts import ImageNote, Seen
from recordgen.core.facts.columns import (
    IMAGE_COLUMNS,
    NOTED,
    SHARED_COLUMNS,
    WITH_ROWS,
    Columns,
)
from recordgen.core.facts.kept_rows import RowIndices, sample_of

#: Rows kept per split of a table, for checks of its columns.
SAMPLE_ROWS = 10_000

# Notes measured at once: 256 texts at once take a quarter of the time of 64 at once.
_AT_ONCE = 256


class ExampleNote(NamedTuple):
    """What a worker notes about an example."""

    content: int  # 64 bits of a digest of what a trainer sees of its payload
    image: ImageNote | None = None  # its image; None if it has none
    seen: Seen | None = None  # its picture or text; None if no check needs it


class _Chunk(NamedTuple):
    """Facts about several rows."""

    contents: npt.NDArray[np.uint64]  # see ExampleNote; 0 for rows that became no example
    is_refused: npt.NDArray[np.bool_]  # which rows became no example
    annotations: Columns | None = None  # the annotations, if they differ from the planned rows'
    odd: RowIndices = np.zeros(0, np.intp)  # indexes of the rows that checks of columns need
    measures: Mapping[str, Any] = {}  # the columns of images and texts, as far as there are any


class FactsBuilder:
    """Facts about planned rows, in their order.

    Each batch of rows has its own, and a shard concatenates them. Notes wait until there are enough
    to measure them together; then they become a chunk of columns.
    """

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._notes: list[ExampleNote | None] = []  # the rows after the chunks, None: refused

    @classmethod
    def of(
        cls,
        contents: npt.NDArray[np.uint64],
        refused: Sequence[int],
        annotations: Columns | None = None,
        odd: RowIndices | None = None,
    ) -> FactsBuilder:
        """Return the facts about rows without images and texts; see :class:`_Chunk`."""
        builder = cls()
        is_refused = np.zeros(len(contents), np.bool_)
        is_refused[list(refused)] = True
        odd = np.zeros(0, np.intp) if odd is None else odd
        builder._chunks = [_Chunk(contents, is_refused, annotations, odd)]
        return builder

    def add(self, note: ExampleNote | None) -> None:
        """Add the next row; None if it became no example."""
        self._notes.append(note)
        self._measure(_AT_ONCE)

    def extend(self, more: FactsBuilder) -> None:
        """Append the facts about the rows of another batch."""
        if more._chunks:
            self._measure()
            self._chunks += more._chunks
        self._notes += more._notes
        self._measure(_AT_ONCE)

    def _measure(self, least: int = 1) -> None:
        """Make a chunk of the notes that wait, if there are this many."""
        if len(self._notes) >= least:
            self._chunks.append(_chunk_of(self._notes))
            self._notes = []

    def __len__(self) -> int:
        return sum(len(chunk.contents) for chunk in self._chunks) + len(self._notes)

    @property
    def annotations(self) -> Columns | None:
        """The annotations, if the rows have their own."""
        own = [chunk.annotations for chunk in self._chunks if chunk.annotations is not None]
        return pa.chunked_array(own, pa.string()) if own else None

    def kept(self, count: int) -> tuple[RowIndices, npt.NDArray[np.bool_]]:
        """Return the indexes of rows to keep whole, and which of them are the sample."""
        contents, is_refused = self._contents()
        sampled = sample_of(contents, ~is_refused, count)
        starts = np.cumsum([0, *(len(chunk.contents) for chunk in self._chunks)])
        odd = [start + chunk.odd for start, chunk in zip(starts, self._chunks, strict=False)]
        rows = np.unique(np.concatenate([sampled, *odd]).astype(np.intp))
        return rows, np.isin(rows, sampled)

    def _contents(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Return the contents of all rows, and whether each became no example."""
        self._measure()
        contents = [chunk.contents for chunk in self._chunks]
        is_refused = [chunk.is_refused for chunk in self._chunks]
        return (
            np.concatenate([np.zeros(0, np.uint64), *contents]),
            np.concatenate([np.zeros(0, np.bool_), *is_refused]),
        )

    def columns(self) -> Columns:
        """Return the facts as columns."""
        contents, is_refused = self._contents()
        found = {"content": pa.array(contents, mask=is_refused)}
        for field in NOTED:
            if field.name not in found:
                found[field.name] = self._measures(field.name, field.type)
        return pa.table(found)

    def _measures(self, name: str, kind: Any) -> Any:
        """Return one column of all rows; null where it was not measured."""
        if not any(name in chunk.measures for chunk in self._chunks):
            return pa.nulls(len(self), kind)
        parts = [
            chunk.measures.get(name, pa.nulls(len(chunk.contents), kind)) for chunk in self._chunks
        ]
        return pa.chunked_array(parts).unify_dictionaries().combine_chunks()


def _chunk_of(notes: Sequence[ExampleNote | None]) -> _Chunk:
    """Measure rows together."""
    contents = np.array([0 if note is None else note.content for note in notes], np.uint64)
    is_refused = np.array([note is None for note in notes], np.bool_)
    found: dict[str, Any] = {}
    for name, column in (*_image_columns(notes), *_seen_columns(notes)):
        # Pictures and texts share a column.
        found[name] = pc.coalesce(found[name], column) if name in found else column
    return _Chunk(contents, is_refused, measures=found)


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


def together(
    rows: Columns, builder: FactsBuilder, annotations: Sequence[str | None] | None, sample: int = 0
) -> Columns:
    """Return the facts of a shard: of its planned rows, in the order of the builder.

    ``sample`` rows are kept whole, in addition to those that the builder names.
    """
    noted = builder.annotations if annotations is None else pa.array(annotations, pa.string())
    if noted is None:
        noted = pa.nulls(len(rows), pa.string())
    found = rows.select(SHARED_COLUMNS[:-1]).append_column(SHARED_COLUMNS[-1], noted)
    facts = builder.columns()
    for name in facts.column_names:
        found = found.append_column(name, facts[name])
    places, is_sampled = np.full(len(rows), -1), np.zeros(0, np.bool_)
    texts = pa.array([], pa.string())
    if sample:
        kept, is_sampled = builder.kept(sample)
        places[kept] = np.arange(len(kept))
        texts = rows["annotation"].take(pa.array(kept)).combine_chunks()
    taken = pa.array(places, mask=places < 0)
    found = found.append_column("row", texts.take(taken))
    found = found.append_column("is_sampled", pa.array(is_sampled).take(taken))
    return found.cast(WITH_ROWS)
