"""What is known of each example, as columns of Arrow.

A shard notes facts of all its planned rows, in their order (:class:`Notes`); the launcher puts
those of all shards together (:class:`Facts`).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from recordgen.dataset.splits import split_order
from recordgen.lint.findings import LintFinding, Rows
from recordgen.lint.looks import SmallPicture, look_at
from recordgen.lint.minhash import SIGNATURE_BYTES, Signatures, mixed, similarity
from recordgen.lint.pictures import SIGNATURE_SIDE, PictureFacts, measured
from recordgen.lint.seen_texts import SeenText, TextFacts
from recordgen.lint.seen_texts import measured as measured_texts
from recordgen.rows.row import is_content_uri

Columns = Any  # pa.Table; Arrow's stubs differ from version to version

#: So many rows of each split of a table are kept as they are, for checks of its columns.
SAMPLE_ROWS = 10_000

#: What a row says, as planned rows have it (:class:`recordgen.rows.planned.PlannedRow`).
SAID = ("source", "line", "uri", "annotation")

_TEXT = pa.dictionary(pa.int32(), pa.string())

# How many pictures are looked at together: 64 at once take a fifth of the time of 64 one by one.
_AT_ONCE = 64

# Texts cost much less than pictures, so it takes more of them.
_TEXTS_AT_ONCE = 256

# Of images alone; what an image looks like, only if it was looked at.
_IMAGE = {"format": _TEXT, "height": pa.int32(), "width": pa.int32(), "gray": pa.bool_()}
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

# Of texts alone, only if they were looked at. What two of them share is estimated from
# ``signature``, which has the same size as that of images: a column of its own would take its space
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

# The rows of tables that are kept as they are, and whether as a part of the sample. Only checks
# need them, so examples.parquet has neither.
_KEPT = {"row": pa.string(), "is_drawn": pa.bool_()}

_WITH_ROWS = pa.schema({field.name: field.type for field in _ALL} | _KEPT)

_EXAMPLES = pa.schema(
    {"split": _TEXT, "shard": _TEXT, "record": pa.int32()} | {f.name: f.type for f in _ALL}
)

_LINTED = pa.schema({field.name: field.type for field in _EXAMPLES} | _KEPT)


class _Batch(NamedTuple):
    """Rows that were noted together, see :meth:`Notes.of`."""

    contents: npt.NDArray[np.uint64]
    annotations: Columns | None
    odd: Rows


class Notes:
    """What was noted of planned rows, in their order.

    A batch of rows takes notes, and a shard puts those of its batches together: to make columns of
    each batch would take longer than to look at its images.
    """

    def __init__(self) -> None:
        self._batches: list[_Batch] = []  # rows that were noted together come first
        self._contents: list[int] = []
        self._refused: list[int] = []
        self._images: dict[int, tuple[str, int | None, int | None, bool | None]] = {}
        self._seen: list[int] = []  # the rows whose image was looked at
        self._pictures: list[SmallPicture] = []  # those that are not measured yet
        self._measured: list[PictureFacts] = []
        self._read: list[int] = []  # the rows whose text was looked at
        self._texts: list[SeenText] = []  # those that are not measured yet
        self._measured_texts: list[TextFacts] = []

    @classmethod
    def of(
        cls,
        contents: npt.NDArray[np.uint64],
        refused: Sequence[int],
        annotations: Columns | None = None,
        odd: Rows | None = None,
    ) -> Notes:
        """Return the notes of rows without images.

        Args:
            contents: of each row 64 bits of a digest of what a trainer sees of its payload.
            refused: the places of those that became no example.
            annotations: what rows say of their payloads; None: the rows as planned say it.
            odd: the places of rows that are kept for checks of columns.
        """
        notes = cls()
        notes._refused = list(refused)
        notes._batches = [
            _Batch(contents, annotations, np.zeros(0, np.intp) if odd is None else odd)
        ]
        return notes

    def refuse(self) -> None:
        """Note that the next row became no example."""
        self._refused.append(len(self))
        self._contents.append(0)

    def add(
        self,
        sort_key: int,
        content: bytes | None,
        image: tuple[str, int | None, int | None] | None,
        picture: SmallPicture | None = None,
        text: SeenText | None = None,
        is_gray: bool | None = None,
    ) -> None:
        """Note the next row.

        Args:
            sort_key: see :class:`recordgen.rows.planned.PlannedRow`.
            content: a digest of what a trainer sees of its payload; None: it is all in the row.
            image: format, height and width.
            picture: the image in small; None: nobody looks at it.
            text: the text; None: nobody looks at it.
            is_gray: the image has one channel; None: not known.
        """
        row = len(self)
        self._contents.append(sort_key if content is None else content_of(content))
        if image is not None:
            self._images[row] = (*image, is_gray)
        if picture is not None:
            self._seen.append(row)
            self._pictures.append(picture)
        if text is not None:
            self._read.append(row)
            self._texts.append(text)

    def extend(self, more: Notes) -> None:
        """Add the notes of the rows that follow; none of theirs is measured yet."""
        start = len(self)
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
        self._measure(_AT_ONCE, _TEXTS_AT_ONCE)

    def _measure(self, pictures: int = 1, texts: int = 1) -> None:
        """Measure what was seen, if there are at least so many."""
        if len(self._pictures) >= pictures:
            self._measured.append(measured(look_at(self._pictures)))
            self._pictures = []
        if len(self._texts) >= texts:
            self._measured_texts.append(measured_texts(self._texts))
            self._texts = []

    def __len__(self) -> int:
        return sum(len(batch.contents) for batch in self._batches) + len(self._contents)

    def _rest(self) -> Sequence[_Batch]:
        """Return the rows that were noted one by one since the last batch."""
        contents = np.array(self._contents, np.uint64)
        return [_Batch(contents, None, np.zeros(0, np.intp))] if self._contents else []

    @property
    def annotations(self) -> Columns | None:
        """What rows say of their payloads, if that was noted."""
        noted = [batch.annotations for batch in self._batches if batch.annotations is not None]
        return pa.chunked_array(noted, pa.string()) if noted else None

    def kept(self, count: int) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Return the rows that are kept as they are, and which of them are a sample.

        Args:
            count: the size of the sample, at most.
        """
        contents, is_refused = self._all_contents()
        drawn = _sample(contents, ~is_refused, count)
        starts = np.cumsum([0, *(len(batch.contents) for batch in self._batches)])
        odd = [start + batch.odd for start, batch in zip(starts, self._batches, strict=False)]
        rows = np.unique(np.concatenate([drawn, *odd]).astype(np.intp))
        return rows, np.isin(rows, drawn)

    def _all_contents(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Return the contents of all rows, and which of them became no example."""
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
            images = [self._images.get(row, (None, None, None, None)) for row in range(count)]
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
    """Return for each of ``count`` rows its place among some of them; null: it is none of these."""
    places = np.full(count, -1)
    places[rows] = np.arange(len(rows))
    return pa.array(places, mask=places < 0)


def content_of(digest: bytes) -> int:
    """Return the first 64 bits of a digest."""
    return int.from_bytes(digest[:8], "big")


def _sample(contents: npt.NDArray[np.uint64], is_there: npt.NDArray[np.bool_], count: int) -> Rows:
    """Return ``count`` of the rows that are there, drawn by their contents alone.

    Rows of one content are drawn independently of each other, as are all others.
    """
    rows = np.flatnonzero(is_there)
    if len(rows) <= count:
        return rows
    order = np.argsort(contents[rows], kind="stable")
    ordered = contents[rows][order]
    starts = np.maximum.accumulate(
        np.where(np.append(True, ordered[1:] != ordered[:-1]), np.arange(len(ordered)), 0)
    )
    nth = (np.arange(len(ordered)) - starts).astype(np.uint64)  # of those with this content
    lots = mixed(ordered + mixed(nth + np.uint64(1)))
    return np.sort(rows[order[np.argsort(lots, kind="stable")[:count]]])


def together(
    rows: Columns, notes: Notes, annotations: Sequence[str | None] | None, sample: int = 0
) -> Columns:
    """Return the facts of a shard.

    Args:
        rows: its planned rows.
        notes: what was noted of them, in their order.
        annotations: what each row says, as far as the checks need it; None: no row says anything,
            or the notes have it.
        sample: how many rows are kept as they are, beside those that the notes name.
    """
    noted = notes.annotations if annotations is None else pa.array(annotations, pa.string())
    if noted is None:
        noted = pa.nulls(len(rows), pa.string())
    said = rows.select(SAID[:-1]).append_column(SAID[-1], noted)
    facts = notes.columns()
    for name in facts.column_names:
        said = said.append_column(name, facts[name])
    places, is_drawn = np.full(len(rows), -1), np.zeros(0, np.bool_)
    texts = pa.array([], pa.string())
    if sample:
        kept, is_drawn = notes.kept(sample)
        places[kept] = np.arange(len(kept))
        texts = rows["annotation"].take(pa.array(kept)).combine_chunks()
    taken = pa.array(places, mask=places < 0)
    said = said.append_column("row", texts.take(taken))
    said = said.append_column("is_drawn", pa.array(is_drawn).take(taken))
    return said.cast(_WITH_ROWS)


def without_empty(facts: Columns) -> Columns:
    """Return the facts of a shard without columns that hold nothing, as most do of a table's."""
    return facts.select(
        [name for name in facts.column_names if facts[name].null_count < len(facts)]
    )


def whole(facts: Columns) -> Columns:
    """Return what :func:`without_empty` was given."""
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
    """Return the facts of a shard's examples, with what says where they are.

    Args:
        split: the shard's split.
        file: the shard's path inside the output.
        facts: of its planned rows, in the order of its records.
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
    for at, name in enumerate(SAID[:2]):
        facts = facts.set_column(at, name, rows[name])
    return facts.cast(_WITH_ROWS)


def _taken(columns: Columns, rows: Any) -> Columns:
    """Return some rows; columns without any value, as most of a table's are, are not looked at."""
    taken = [
        pa.nulls(len(rows), column.type) if column.null_count == len(column) else column.take(rows)
        for column in columns.columns
    ]
    return pa.Table.from_arrays(taken, schema=columns.schema)


class Facts:
    """The facts of all examples, by import file and line.

    Attributes:
        columns: a row for each example, as ``examples.parquet`` has it, and rows that are kept.
    """

    def __init__(self, parts: Iterable[Columns]) -> None:
        """Take the facts of some examples: what :func:`of_shard` gave, or an older ``columns``."""
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
        """The splits, train first."""
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
        """See :class:`Notes`."""
        return self.columns["content"].to_numpy()

    @cached_property
    def annotations(self) -> npt.NDArray[np.int32]:
        """A number for each different annotation; -1: the row has none."""
        codes = self.columns["annotation"].combine_chunks().dictionary_encode().indices
        return codes.fill_null(-1).to_numpy()

    @cached_property
    def kept(self) -> tuple[Rows, Columns, npt.NDArray[np.bool_]]:
        """The rows of a table that are kept as they are: examples, texts, whether in the sample."""
        rows = np.flatnonzero(np.asarray(self.columns["row"].is_valid()))
        kept = self.columns.select(list(_KEPT)).take(pa.array(rows)).combine_chunks()
        return rows, kept["row"].combine_chunks(), np.asarray(kept["is_drawn"])

    @cached_property
    def looks(self) -> tuple[Rows, PictureFacts]:
        """The examples whose image was looked at, and what their images look like."""
        rows = np.flatnonzero(self.columns["perceptual_hash"].is_valid().to_numpy())
        return rows, picture_facts(self.columns.select(list(_LOOK)).take(pa.array(rows)))

    @cached_property
    def signatures(self) -> tuple[Rows, Signatures]:
        """The examples whose text was looked at and has words, and their signatures."""
        is_text = self.columns["characters"].is_valid().to_numpy()
        rows = np.flatnonzero(self.columns["signature"].is_valid().to_numpy() & is_text)
        joined = b"".join(self.columns["signature"].take(pa.array(rows)).to_pylist())
        return rows, np.frombuffer(joined, np.uint8).reshape(-1, SIGNATURE_BYTES)

    def similarity(self, row: int, other: int) -> float | None:
        """Estimate how much two texts share, 0 to 1; None: one was not looked at."""
        rows, signatures = self.signatures
        one, two = places = np.searchsorted(rows, [row, other])
        if places.max() >= len(rows) or [*rows[places]] != [row, other]:
            return None
        return float(similarity(signatures[one : one + 1], signatures[two : two + 1])[0])

    def annotation(self, row: int) -> str | None:
        """Return what a row says of its payload."""
        return self._value("annotation", row)

    def place(self, row: int) -> str:
        """Return where a row stands and what it names: ``train.csv:7 (a.jpg, split train)``."""
        said = self._said(row)
        name = "" if is_content_uri(said["uri"]) else said["uri"]
        inside = ", ".join(filter(None, (name, f"split {self.split(row)}")))
        return f"{said['source']}:{said['line']} ({inside})"

    def payload(self, row: int) -> tuple[str, str]:
        """Return the uri of an example's payload, and the import file that names it."""
        said = self._said(row)
        return said["uri"], said["source"]

    def split(self, row: int) -> str:
        """Return the split of an example."""
        return str(self._value("split", row))

    def finding(
        self, code: str, level: str, row: int, message: str, other: int | None = None
    ) -> LintFinding:
        """Return a finding about an example, and the one that it was compared with."""
        said = self._said(row)
        found = LintFinding(
            code, level, said["source"], said["line"], said["uri"], self.split(row), message
        )
        if other is None:
            return found
        there = self._said(other)
        return found._replace(other_source=there["source"], other_line=there["line"])

    def _said(self, row: int) -> Mapping[str, Any]:
        return {name: self._value(name, row) for name in ("source", "line", "uri")}

    def _value(self, name: str, row: int) -> Any:
        return self._arrays[name][row].as_py()

    @cached_property
    def _arrays(self) -> Mapping[str, Any]:
        """Columns in one piece: to look into many pieces takes a hundred times as long."""
        names = ("source", "line", "uri", "split", "annotation")
        return {name: self.columns[name].combine_chunks() for name in names}


def picture_facts(seen: Columns) -> PictureFacts:
    """Return what images look like, given some of its columns; the measures of others are empty."""
    unknown = dict.fromkeys(PictureFacts._fields, np.zeros(0, np.float32))
    known = {name: seen[name].to_numpy() for name in seen.column_names if name != "signature"}
    joined = b"".join(seen["signature"].to_pylist())
    signature = np.frombuffer(joined, np.uint8).reshape(-1, SIGNATURE_SIDE, SIGNATURE_SIDE)
    return PictureFacts(**unknown | known | {"signature": signature})


def to_parquet(facts: Facts) -> bytes:
    """Return the content of ``examples.parquet``."""
    out = io.BytesIO()
    repeated = [
        name for name, kind in zip(_EXAMPLES.names, _EXAMPLES.types, strict=True) if kind == _TEXT
    ]
    columns = facts.columns.select(_EXAMPLES.names)
    parquet.write_table(columns, out, compression="zstd", use_dictionary=repeated)
    return out.getvalue()


def from_parquet(data: bytes) -> Columns:
    """Return what :func:`to_parquet` was given. Raises: ValueError: it is something else."""
    columns = parquet.read_table(io.BytesIO(data)).cast(_EXAMPLES)
    for name, kind in _KEPT.items():
        columns = columns.append_column(name, pa.nulls(len(columns), kind))
    return columns
