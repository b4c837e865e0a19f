"""What is known of each example, as columns of Arrow.

A shard notes facts of all its planned rows, in their order (:func:`noted`); the launcher puts
those of all shards together (:class:`Facts`).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from recordgen.dataset.splits import split_order
from recordgen.lint.findings import LintFinding, Rows
from recordgen.lint.looks import Look
from recordgen.lint.pictures import SIGNATURE_SIDE, PictureFacts, measured

Columns = Any  # pa.Table; Arrow's stubs differ from version to version

#: What a row says, as planned rows have it (:class:`recordgen.rows.planned.PlannedRow`).
SAID = ("source", "line", "uri", "annotation")

_TEXT = pa.dictionary(pa.int32(), pa.string())

# Of images alone; what an image looks like, only if it was looked at.
_IMAGE = {"format": _TEXT, "height": pa.int32(), "width": pa.int32()}
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

_NOTED = pa.schema({"content": pa.uint64(), **_IMAGE, **_LOOK})

_ALL = pa.schema(
    {
        "source": _TEXT,
        "line": pa.int64(),
        "uri": pa.string(),
        "annotation": pa.string(),
        **{field.name: field.type for field in _NOTED},
    }
)

_EXAMPLES = pa.schema(
    {"split": _TEXT, "shard": _TEXT, "record": pa.int32()} | {f.name: f.type for f in _ALL}
)


class Noted:
    """Takes notes of planned rows one by one, in their order."""

    def __init__(self) -> None:
        self._contents: list[int] = []
        self._refused: list[int] = []
        self._images: list[tuple[str | None, int | None, int | None]] = []
        self._looks: list[Look | None] = []

    def refuse(self) -> None:
        """Note that the next row became no example."""
        self._refused.append(len(self._contents))
        self.add(0, None, None, None)

    def add(
        self,
        sort_key: int,
        content: bytes | None,
        image: tuple[str, int | None, int | None] | None,
        look: Look | None,
    ) -> None:
        """Note the next row.

        Args:
            sort_key: see :class:`recordgen.rows.planned.PlannedRow`.
            content: a digest of what a trainer sees of its payload; None: it is all in the row.
            image: format, height and width.
            look: what the image looks like.
        """
        self._contents.append(sort_key if content is None else content_of(content))
        self._images.append((None, None, None) if image is None else image)
        self._looks.append(look)

    def columns(self) -> Columns:
        """Return what was noted."""
        notes = noted(self._contents, self._refused)
        if any(self._images):
            for name, values in zip(_IMAGE, zip(*self._images, strict=True), strict=True):
                notes = notes.set_column(
                    notes.column_names.index(name), name, pa.array(values, _NOTED.field(name).type)
                )
        return notes if not any(self._looks) else self._with_looks(notes)

    def _with_looks(self, notes: Columns) -> Columns:
        is_there = np.array([look is not None for look in self._looks])
        facts = measured([look for look in self._looks if look is not None])
        # The place of each row's look among those that are there.
        places = pa.array(np.cumsum(is_there) - 1, mask=~is_there)
        for name, kind in _LOOK.items():
            values = getattr(facts, name)
            if name == "signature":
                values = [signature.tobytes() for signature in values]
            taken = pa.array(values, kind).take(places)
            notes = notes.set_column(notes.column_names.index(name), name, taken)
        return notes


def noted(contents: Sequence[int] | npt.NDArray[np.uint64], refused: Sequence[int]) -> Columns:
    """Return what was noted of some planned rows without images.

    Args:
        contents: of each row 64 bits of a digest of what a trainer sees of its payload.
        refused: the places of the rows that became no example.
    """
    is_refused = np.zeros(len(contents), np.bool_)
    is_refused[refused] = True
    known = pa.array(np.asarray(contents, np.uint64), mask=is_refused)
    nothing = [pa.nulls(len(known), field.type) for field in _NOTED if field.name != "content"]
    return pa.Table.from_arrays([known, *nothing], schema=_NOTED)


def content_of(digest: bytes) -> int:
    """Return the first 64 bits of a digest."""
    return int.from_bytes(digest[:8], "big")


def together(rows: Columns, parts: Sequence[Columns], annotations: Sequence[str | None]) -> Columns:
    """Return the facts of a shard.

    Args:
        rows: its planned rows.
        parts: what was noted of them, in their order.
        annotations: what each row says, as far as the checks need it.
    """
    said = rows.select(SAID[:-1]).append_column(SAID[-1], pa.array(annotations, pa.string()))
    facts = pa.concat_tables(parts) if parts else _NOTED.empty_table()
    for name in facts.column_names:
        said = said.append_column(name, facts[name])
    return said.cast(_ALL)


def of_shard(split: str, file: str, facts: Columns) -> Columns:
    """Return the facts of a shard's examples, with what says where they are.

    Args:
        split: the shard's split.
        file: the shard's path inside the output.
        facts: of its planned rows, in the order of its records.
    """
    made = facts.filter(facts["content"].is_valid())
    count = len(made)
    for name, value in (("shard", file), ("split", split)):
        made = made.add_column(0, name, pa.repeat(value, count).dictionary_encode())
    return made.add_column(2, "record", pa.array(np.arange(count, dtype=np.int32))).cast(_EXAMPLES)


def renumbered(facts: Columns, rows: Columns) -> Columns:
    """Return the facts of the same payloads with the import files and lines of ``rows``."""
    for at, name in enumerate(SAID[:2]):
        facts = facts.set_column(at, name, rows[name])
    return facts.cast(_ALL)


class Facts:
    """The facts of all examples, by import file and line.

    Attributes:
        columns: a row for each example, as ``examples.parquet`` has it.
    """

    def __init__(self, parts: Iterable[Columns]) -> None:
        """Take the facts of some examples: what :func:`of_shard` gave, or an older ``columns``."""
        columns = pa.concat_tables([_EXAMPLES.empty_table(), *parts]).unify_dictionaries()
        sources = columns["source"].combine_chunks()
        ranks = np.argsort(np.argsort(sources.dictionary.to_pylist() or [""]))
        by_source = ranks[sources.indices.to_numpy(zero_copy_only=False)]
        order = np.lexsort((columns["line"].to_numpy(), by_source))
        self.columns = columns.take(pa.array(order))

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
        numbers: npt.NDArray[np.intp] = ranks[self._splits.indices.to_numpy(zero_copy_only=False)]
        return numbers

    @cached_property
    def _splits(self) -> Any:
        return self.columns["split"].combine_chunks()

    @cached_property
    def contents(self) -> npt.NDArray[np.uint64]:
        """See :func:`noted`."""
        numbers: npt.NDArray[np.uint64] = self.columns["content"].to_numpy()
        return numbers

    @cached_property
    def annotations(self) -> npt.NDArray[np.int32]:
        """A number for each different annotation; -1: the row has none."""
        codes = self.columns["annotation"].combine_chunks().dictionary_encode().indices
        numbers: npt.NDArray[np.int32] = codes.fill_null(-1).to_numpy()
        return numbers

    @cached_property
    def looks(self) -> tuple[Rows, PictureFacts]:
        """The examples whose image was looked at, and what their images look like."""
        rows = np.flatnonzero(self.columns["perceptual_hash"].is_valid().to_numpy())
        seen = self.columns.select(list(_LOOK)).take(pa.array(rows))
        values = {name: seen[name].to_numpy() for name in _LOOK if name != "signature"}
        joined = b"".join(seen["signature"].to_pylist())
        signature = np.frombuffer(joined, np.uint8).reshape(-1, SIGNATURE_SIDE, SIGNATURE_SIDE)
        return rows, PictureFacts(signature=signature, **values)

    def annotation(self, row: int) -> str | None:
        """Return what a row says of its payload."""
        text: str | None = self.columns["annotation"][row].as_py()
        return text

    def place(self, row: int) -> str:
        """Return where a row stands and what it names: ``train.csv:7 (a.jpg, split train)``."""
        said = self._said(row)
        name = "" if "sha256:" in said["uri"] else said["uri"]
        inside = ", ".join(filter(None, (name, f"split {self.split(row)}")))
        return f"{said['source']}:{said['line']} ({inside})"

    def split(self, row: int) -> str:
        """Return the split of an example."""
        return str(self.columns["split"][row].as_py())

    def finding(self, code: str, level: str, row: int, message: str) -> LintFinding:
        """Return a finding about an example."""
        said = self._said(row)
        return LintFinding(
            code, level, said["source"], said["line"], said["uri"], self.split(row), message
        )

    def _said(self, row: int) -> Mapping[str, Any]:
        return {name: self.columns[name][row].as_py() for name in ("source", "line", "uri")}


def to_parquet(facts: Facts) -> bytes:
    """Return the content of ``examples.parquet``."""
    out = io.BytesIO()
    parquet.write_table(facts.columns, out, compression="zstd")
    return out.getvalue()


def from_parquet(data: bytes) -> Columns:
    """Return what :func:`to_parquet` was given. Raises: ValueError: it is something else."""
    return parquet.read_table(io.BytesIO(data)).cast(_EXAMPLES)
