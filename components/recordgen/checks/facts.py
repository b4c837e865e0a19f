"""Facts about each example, as columns of Arrow.

A shard collects facts about all its planned rows, in their order (:class:`FactsBuilder`); the
launcher concatenates the facts of all shards (:class:`ExampleFacts`).
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from recordgen.checks.minhash import SIGNATURE_BYTES, Signatures, mixed, similarity
from recordgen.checks.perceptual_hash import SmallPicture, look_at
from recordgen.checks.pictures import SIGNATURE_SIDE, PictureFacts, measured
from recordgen.checks.text_samples import SeenText, TextFacts
from recordgen.checks.text_samples import measured as measured_texts
from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.splits import split_order
from recordgen.core.rows.arrow_files import read_parquet
from recordgen.core.rows.row import is_content_uri
from recordgen.rejects import place_of

#: Indices of examples, in the order of :class:`ExampleFacts`.
RowIndices = npt.NDArray[np.intp]

Columns = Any  # pa.Table; Arrow's stubs differ from version to version

#: Rows kept per split of a table, for checks of its columns.
SAMPLE_ROWS = 10_000

#: The columns that planned rows and facts share (:class:`recordgen.core.rows.planned.PlannedRow`).
SHARED_COLUMNS = ("source", "line", "uri", "annotation")

_TEXT = pa.dictionary(pa.int32(), pa.string())

# Pictures measured at once: 64 at once take a fifth of the time of 64 one by one.
_PICTURES_AT_ONCE = 64

# Texts cost much less than pictures, so more of them are measured at once.
_TEXTS_AT_ONCE = 256

# Only images have these columns, and the second group only if checks look at the pictures.
_IMAGE = {
    **{"format": _TEXT, "height": pa.int32(), "width": pa.int32(), "gray": pa.bool_()},
    **{"colours": _TEXT, "frames": pa.int32()},
}
_LOOK = {
    "perceptual_hash": pa.uint64(),
    "signature": pa.binary(SIGNATURE_SIDE * SIGNATURE_SIDE),
    "brightness": pa.float32(),
    "contrast": pa.float32(),
    "darkest": pa.uint8(),
    "lightest": pa.uint8(),
    "entropy": pa.float32(),
    "sharpness": pa.float32(),
    "colourfulness": pa.float32(),
}

# Only texts have these columns, if checks read them. The similarity of two texts is estimated from
# ``signature``, which has the same size for texts and images: a second column would take its space
# in every dataset.
_READ = {
    "characters": pa.int32(),
    "garbled": pa.string(),
    "named_labels": pa.list_(pa.string()),
}

_NOTED = pa.schema({"content": pa.uint64(), **_IMAGE, **_LOOK, **_READ})

_ALL = pa.schema(
    {
        "source": _TEXT,
        "line": pa.int64(),
        "uri": pa.string(),
        "annotation": pa.string(),
        **{field.name: field.type for field in _NOTED},
    }
)

# Whole rows of tables, and whether they belong to the sample. Only checks need them, so
# examples.parquet has neither column.
_KEPT = {"row": pa.string(), "is_sampled": pa.bool_()}

_WITH_ROWS = pa.schema({field.name: field.type for field in _ALL} | _KEPT)

_EXAMPLES = pa.schema(
    {"split": _TEXT, "shard": _TEXT, "record": pa.int32()} | {f.name: f.type for f in _ALL}
)

_LINTED = pa.schema({field.name: field.type for field in _EXAMPLES} | _KEPT)


# Columns that examples.parquet of earlier versions does not have.
_ADDED = ("colours", "frames")

# Values of the columns of _IMAGE.
_Image = tuple[str, int | None, int | None, bool | None, str | None, int | None]


class _Batch(NamedTuple):
    """Notes about several rows, see :meth:`FactsBuilder.of`."""

    contents: npt.NDArray[np.uint64]
    annotations: Columns | None
    odd: RowIndices


class FactsBuilder:
    """Facts about planned rows, in their order.

    Each batch of rows makes notes, and a shard concatenates them. Columns of Arrow are made once
    per shard: making them for each batch would take longer than measuring its images.
    """

    def __init__(self) -> None:
        self._count = 0
        self._batches: list[_Batch] = []  # come before the rows of the lists below
        self._contents: list[int] = []
        self._refused: list[int] = []
        self._images: dict[int, _Image] = {}
        self._seen: list[int] = []  # the rows that have a picture
        self._pictures: list[SmallPicture] = []  # not measured yet
        self._measured: list[PictureFacts] = []
        self._read: list[int] = []  # the rows that have a text
        self._texts: list[SeenText] = []  # not measured yet
        self._measured_texts: list[TextFacts] = []

    @classmethod
    def of(
        cls,
        contents: npt.NDArray[np.uint64],
        refused: Sequence[int],
        annotations: Columns | None = None,
        odd: RowIndices | None = None,
    ) -> FactsBuilder:
        """Return the notes of rows without images.

        Args:
            contents: 64 bits of a digest of what a trainer sees of each payload.
            refused: indexes of the rows that became no example.
            annotations: the annotations, if they differ from the planned rows'.
            odd: indexes of the rows that checks of columns need.
        """
        notes = cls()
        notes._count = len(contents)
        notes._refused = list(refused)
        notes._batches = [
            _Batch(contents, annotations, np.zeros(0, np.intp) if odd is None else odd)
        ]
        return notes

    def refuse(self) -> None:
        """Note that the next row became no example."""
        self._refused.append(self._count)
        self._contents.append(0)
        self._count += 1

    def add(
        self,
        sort_key: int,
        content: bytes | None,
        image: tuple[str, int | None, int | None] | None,
        picture: SmallPicture | None = None,
        text: SeenText | None = None,
        is_gray: bool | None = None,
        colours: str | None = None,
        frames: int | None = None,
    ) -> None:
        """Note the next row.

        Args:
            sort_key: see :class:`recordgen.core.rows.planned.PlannedRow`.
            content: a digest of what a trainer sees of its payload; None if the sort key is one.
            image: format, height and width.
            picture: the small image; None if no check needs it.
            text: the text; None if no check needs it.
            is_gray: whether the image has one channel; None if unknown.
            colours: what viewers apply to the image's colours; None if nothing.
            frames: pictures in the file; None if unknown.
        """
        row = self._count
        self._count += 1
        self._contents.append(sort_key if content is None else content_of(content))
        if image is not None:
            self._images[row] = (*image, is_gray, colours, frames)
        if picture is not None:
            self._seen.append(row)
            self._pictures.append(picture)
        if text is not None:
            self._read.append(row)
            self._texts.append(text)

    def extend(self, more: FactsBuilder) -> None:
        """Append notes that were not measured yet."""
        start = self._count
        self._count += more._count
        if more._batches:
            self._batches += [*self._rest(), *more._batches]
            self._contents = []
        self._contents += more._contents
        self._refused += [start + row for row in more._refused]
        self._images |= {start + row: image for row, image in more._images.items()}
        self._seen += [start + row for row in more._seen]
        self._pictures += more._pictures
        self._read += [start + row for row in more._read]
        self._texts += more._texts
        self._measure(_PICTURES_AT_ONCE, _TEXTS_AT_ONCE)

    def _measure(self, pictures: int = 1, texts: int = 1) -> None:
        """Measure the pictures and texts if there are at least this many."""
        if len(self._pictures) >= pictures:
            self._measured.append(measured(look_at(self._pictures)))
            self._pictures = []
        if len(self._texts) >= texts:
            self._measured_texts.append(measured_texts(self._texts))
            self._texts = []

    def __len__(self) -> int:
        return self._count

    def _rest(self) -> Sequence[_Batch]:
        """Return the rows that were added one by one since the last batch."""
        contents = np.array(self._contents, np.uint64)
        return [_Batch(contents, None, np.zeros(0, np.intp))] if self._contents else []

    @property
    def annotations(self) -> Columns | None:
        """The annotations, if the notes have any."""
        noted = [batch.annotations for batch in self._batches if batch.annotations is not None]
        return pa.chunked_array(noted, pa.string()) if noted else None

    def kept(self, count: int) -> tuple[RowIndices, npt.NDArray[np.bool_]]:
        """Return the indexes of rows to keep whole, and which of them are the sample.

        Args:
            count: the largest size of the sample.
        """
        contents, is_refused = self._all_contents()
        sampled = _sample(contents, ~is_refused, count)
        starts = np.cumsum([0, *(len(batch.contents) for batch in self._batches)])
        odd = [start + batch.odd for start, batch in zip(starts, self._batches, strict=False)]
        rows = np.unique(np.concatenate([sampled, *odd]).astype(np.intp))
        return rows, np.isin(rows, sampled)

    def _all_contents(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Return the contents of all rows, and whether each became no example."""
        parts = [batch.contents for batch in (*self._batches, *self._rest())]
        contents = np.concatenate([np.zeros(0, np.uint64), *parts])
        is_refused = np.zeros(len(contents), np.bool_)
        is_refused[self._refused] = True
        return contents, is_refused

    def columns(self) -> Columns:
        """Return the notes as columns."""
        self._measure()
        contents, is_refused = self._all_contents()
        count = len(contents)
        found = {"content": pa.array(contents, mask=is_refused)}
        if self._images:
            images = [self._images.get(row, (None,) * len(_IMAGE)) for row in range(count)]
            for name, values in zip(_IMAGE, zip(*images, strict=True), strict=True):
                found[name] = pa.array(values, _NOTED.field(name).type)
        if self._measured:
            found |= self._looks_as_columns(count)
        if self._measured_texts:
            found |= self._texts_as_columns(count)
        return pa.Table.from_arrays(
            [found.get(field.name, pa.nulls(count, field.type)) for field in _NOTED], schema=_NOTED
        )

    def _looks_as_columns(self, count: int) -> Mapping[str, Any]:
        taken = _places(self._seen, count)
        found = {}
        for name, kind in _LOOK.items():
            values: Any = np.concatenate([getattr(facts, name) for facts in self._measured])
            if name == "signature":
                values = [signature.tobytes() for signature in values]
            found[name] = pa.array(values, kind, from_pandas=True).take(taken)  # NaN: not known
        return found

    def _texts_as_columns(self, count: int) -> Mapping[str, Any]:
        texts = self._measured_texts
        signed = [
            signature.tobytes() if has_words else None
            for facts in texts
            for signature, has_words in zip(facts.signatures, facts.has_words, strict=True)
        ]
        values = {
            "signature": signed,
            "characters": np.concatenate([facts.characters for facts in texts]),
            "garbled": [part for facts in texts for part in facts.garbled],
            "named_labels": [labels for facts in texts for labels in facts.named],
        }
        return {
            name: pa.array(found, _NOTED.field(name).type).take(_places(self._read, count))
            for name, found in values.items()
        }


def _places(rows: Sequence[int], count: int) -> Any:
    """Return for each of ``count`` rows its index in ``rows``, null if it is not there."""
    places = np.full(count, -1)
    places[rows] = np.arange(len(rows))
    return pa.array(places, mask=places < 0)


def content_of(digest: bytes) -> int:
    """Return the first 64 bits of a digest."""
    return int.from_bytes(digest[:8], "big")


def _sample(
    contents: npt.NDArray[np.uint64], is_there: npt.NDArray[np.bool_], count: int
) -> RowIndices:
    """Sample ``count`` of the rows that are there; only their contents decide which.

    Rows with equal contents are sampled independently of each other.
    """
    rows = np.flatnonzero(is_there)
    if len(rows) <= count:
        return rows
    order = np.argsort(contents[rows], kind="stable")
    ordered = contents[rows][order]
    starts = np.maximum.accumulate(
        np.where(np.append(True, ordered[1:] != ordered[:-1]), np.arange(len(ordered)), 0)
    )
    nth = (np.arange(len(ordered)) - starts).astype(np.uint64)  # among equal contents
    lots = mixed(ordered + mixed(nth + np.uint64(1)))
    return np.sort(rows[order[np.argsort(lots, kind="stable")[:count]]])


def together(
    rows: Columns, notes: FactsBuilder, annotations: Sequence[str | None] | None, sample: int = 0
) -> Columns:
    """Return the facts of a shard.

    Args:
        rows: its planned rows.
        notes: the notes about them, in their order.
        annotations: the annotations that checks need; None if there are none, or the notes have
            them.
        sample: rows to keep whole, in addition to those that the notes name.
    """
    noted = notes.annotations if annotations is None else pa.array(annotations, pa.string())
    if noted is None:
        noted = pa.nulls(len(rows), pa.string())
    found = rows.select(SHARED_COLUMNS[:-1]).append_column(SHARED_COLUMNS[-1], noted)
    facts = notes.columns()
    for name in facts.column_names:
        found = found.append_column(name, facts[name])
    places, is_sampled = np.full(len(rows), -1), np.zeros(0, np.bool_)
    texts = pa.array([], pa.string())
    if sample:
        kept, is_sampled = notes.kept(sample)
        places[kept] = np.arange(len(kept))
        texts = rows["annotation"].take(pa.array(kept)).combine_chunks()
    taken = pa.array(places, mask=places < 0)
    found = found.append_column("row", texts.take(taken))
    found = found.append_column("is_sampled", pa.array(is_sampled).take(taken))
    return found.cast(_WITH_ROWS)


def without_empty(facts: Columns) -> Columns:
    """Return the facts of a shard without empty columns: tables have values in few of them."""
    return facts.select(
        [name for name in facts.column_names if facts[name].null_count < len(facts)]
    )


def whole(facts: Columns) -> Columns:
    """Undo :func:`without_empty`."""
    return pa.Table.from_arrays(
        [
            facts[field.name]
            if field.name in facts.column_names
            else pa.nulls(len(facts), field.type)
            for field in _WITH_ROWS
        ],
        schema=_WITH_ROWS,
    )


def of_shard(split: str, file: str, facts: Columns) -> Columns:
    """Return the facts of a shard's examples, with split, shard and record.

    Args:
        split: the shard's split.
        file: the shard's path inside the output.
        facts: facts about its planned rows, in the order of its records.
    """
    made = facts
    if facts["content"].null_count:
        made = facts.filter(facts["content"].is_valid())
    count = len(made)
    for name, value in (("shard", file), ("split", split)):
        made = made.add_column(0, name, pa.repeat(value, count).dictionary_encode())
    return made.add_column(2, "record", pa.array(np.arange(count, dtype=np.int32))).cast(_LINTED)


def renumbered(facts: Columns, rows: Columns) -> Columns:
    """Return the facts of the same payloads with the import files and lines of ``rows``."""
    for at, name in enumerate(SHARED_COLUMNS[:2]):
        facts = facts.set_column(at, name, rows[name])
    return facts.cast(_WITH_ROWS)


def _taken(columns: Columns, rows: Any) -> Columns:
    """Return some rows. Empty columns, of which tables have many, are made anew."""
    taken = [
        pa.nulls(len(rows), column.type) if column.null_count == len(column) else column.take(rows)
        for column in columns.columns
    ]
    return pa.Table.from_arrays(taken, schema=columns.schema)


class ExampleFacts:
    """The facts of all examples, by import file and line.

    Attributes:
        columns: a row per example, as in ``examples.parquet``, and the rows that are kept whole.
    """

    def __init__(self, parts: Iterable[Columns]) -> None:
        """Concatenate facts from :func:`of_shard`, or ``columns`` of other facts."""
        columns = pa.concat_tables([_LINTED.empty_table(), *parts]).unify_dictionaries()
        sources = columns["source"].combine_chunks()
        ranks = np.argsort(np.argsort(sources.dictionary.to_pylist() or [""]))
        by_source = ranks[sources.indices.to_numpy(zero_copy_only=False)]
        order = np.lexsort((columns["line"].to_numpy(), by_source))
        self.columns = _taken(columns, pa.array(order))

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of the splits, train first."""
        return sorted(set(self._splits.dictionary.to_pylist()), key=split_order)

    @cached_property
    def splits(self) -> npt.NDArray[np.intp]:
        """The number of each example's split in :attr:`names`."""
        names: list[str] = self._splits.dictionary.to_pylist()
        ranks = np.array([self.names.index(name) for name in names], np.intp)
        return ranks[self._splits.indices.to_numpy(zero_copy_only=False)]

    @cached_property
    def _splits(self) -> Any:
        return self.columns["split"].combine_chunks()

    @cached_property
    def contents(self) -> npt.NDArray[np.uint64]:
        """See :class:`FactsBuilder`."""
        return self.columns["content"].to_numpy()

    @cached_property
    def annotations(self) -> npt.NDArray[np.int32]:
        """A number for each distinct annotation, -1 for rows without one."""
        codes = self.columns["annotation"].combine_chunks().dictionary_encode().indices
        return codes.fill_null(-1).to_numpy()

    @cached_property
    def kept(self) -> tuple[RowIndices, Columns, npt.NDArray[np.bool_]]:
        """The rows kept whole: their indexes, their texts, and whether each is in the sample."""
        rows = np.flatnonzero(np.asarray(self.columns["row"].is_valid()))
        kept = self.columns.select(list(_KEPT)).take(pa.array(rows)).combine_chunks()
        return rows, kept["row"].combine_chunks(), np.asarray(kept["is_sampled"])

    @cached_property
    def looks(self) -> tuple[RowIndices, PictureFacts]:
        """Indexes of the examples whose image was measured, and the measures."""
        rows = np.flatnonzero(self.columns["perceptual_hash"].is_valid().to_numpy())
        return rows, picture_facts(self.columns.select(list(_LOOK)).take(pa.array(rows)))

    @cached_property
    def signatures(self) -> tuple[RowIndices, Signatures]:
        """Indexes of the examples whose text was measured and has words, and their signatures."""
        is_text = self.columns["characters"].is_valid().to_numpy()
        rows = np.flatnonzero(self.columns["signature"].is_valid().to_numpy() & is_text)
        joined = b"".join(self.columns["signature"].take(pa.array(rows)).to_pylist())
        return rows, np.frombuffer(joined, np.uint8).reshape(-1, SIGNATURE_BYTES)

    def similarity(self, row: int, other: int) -> float | None:
        """Estimate the similarity of two texts, 0 to 1; None if one was not measured."""
        rows, signatures = self.signatures
        one, two = places = np.searchsorted(rows, [row, other])
        if places.max() >= len(rows) or [*rows[places]] != [row, other]:
            return None
        return float(similarity(signatures[one : one + 1], signatures[two : two + 1])[0])

    def annotation(self, row: int) -> str | None:
        """Return the annotation of a row."""
        return self._value("annotation", row)

    def place(self, row: int) -> str:
        """Return a row as messages name it: ``train.csv:7 (a.jpg, split train)``."""
        origin = self._origin(row)
        is_named = origin["source"].endswith("/") or is_content_uri(origin["uri"])
        inside = ("" if is_named else origin["uri"], f"split {self.split(row)}")
        return f"{place_of(**origin)} ({', '.join(filter(None, inside))})"

    def payload(self, row: int) -> tuple[str, str]:
        """Return the uri of an example's payload, and the import file that names it."""
        origin = self._origin(row)
        return origin["uri"], origin["source"]

    def split(self, row: int) -> str:
        """Return the split of an example."""
        return str(self._value("split", row))

    def finding(
        self, code: str, level: str, row: int, message: str, other: int | None = None
    ) -> LintFinding:
        """Return a finding about an example, which may name another example."""
        origin = self._origin(row)
        found = LintFinding(
            code, level, origin["source"], origin["line"], origin["uri"], self.split(row), message
        )
        if other is None:
            return found
        there = self._origin(other)
        return found._replace(other_source=there["source"], other_line=there["line"])

    def _origin(self, row: int) -> Mapping[str, Any]:
        return {name: self._value(name, row) for name in ("source", "line", "uri")}

    def _value(self, name: str, row: int) -> Any:
        return self._arrays[name][row].as_py()

    @cached_property
    def _arrays(self) -> Mapping[str, Any]:
        """Contiguous columns: finding a row in many chunks takes a hundred times as long."""
        names = ("source", "line", "uri", "split", "annotation")
        return {name: self.columns[name].combine_chunks() for name in names}


def picture_facts(seen: Columns) -> PictureFacts:
    """Return the measures of images that are in the columns; other measures are empty."""
    unknown = dict.fromkeys(PictureFacts._fields, np.zeros(0, np.float32))
    known = {name: seen[name].to_numpy() for name in seen.column_names if name != "signature"}
    joined = b"".join(seen["signature"].to_pylist())
    signature = np.frombuffer(joined, np.uint8).reshape(-1, SIGNATURE_SIDE, SIGNATURE_SIDE)
    return PictureFacts(**unknown | known | {"signature": signature})


def to_parquet(facts: ExampleFacts) -> bytes:
    """Return the content of ``examples.parquet``."""
    out = io.BytesIO()
    repeated = [
        name for name, kind in zip(_EXAMPLES.names, _EXAMPLES.types, strict=True) if kind == _TEXT
    ]
    columns = facts.columns.select(_EXAMPLES.names)
    parquet.write_table(columns, out, compression="zstd", use_dictionary=repeated)
    return out.getvalue()


def read_examples(file: IO[bytes], names: Collection[str] | None = None) -> Columns:
    """Return columns of ``examples.parquet``.

    See :func:`recordgen.core.rows.arrow_files.read_parquet`.

    Raises:
        ValueError: the file is something else.
    """
    return read_parquet(file, _EXAMPLES, names, added=_ADDED)


def from_parquet(data: bytes) -> Columns:
    """Read the content of ``examples.parquet``. Raises: ValueError: it is something else."""
    columns = read_examples(io.BytesIO(data))
    for name, kind in _KEPT.items():
        columns = columns.append_column(name, pa.nulls(len(columns), kind))
    return columns
