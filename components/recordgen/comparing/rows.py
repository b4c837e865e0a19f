"""All records of a dataset as columns: hashes, and what is shown of a row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.comparing.fingerprints import Fingerprint, Layout, fingerprint
from recordgen.comparing.sides import Side
from recordgen.errors import RecordError, SourceError
from recordgen.records.tfrecord import read_records

# Arrow's stubs, where there are any, differ from version to version.
ArrowColumn: TypeAlias = Any  # pa.ChunkedArray

#: Numbers of rows, in the order of their dataset.
Places: TypeAlias = "npt.NDArray[np.int64]"

#: Python objects of so many records wait to become columns, or are made of columns.
BLOCK_ROWS = 8192

# Columns of numbers, as in Fingerprint, and where the record lies.
_NUMBERS: Mapping[str, Any] = {
    "key": np.uint64,
    "payload": np.uint64,
    "label": np.uint64,
    "annotation": np.uint64,
    "rest": np.uint64,
    "objects": np.uint32,
    "width": np.uint32,
    "height": np.uint32,
    "split": np.uint16,
    "file": np.uint32,
    "record": np.uint32,
}
_TEXTS: Mapping[str, Any] = {"uri": pa.large_string(), "labels": pa.large_list(pa.large_string())}


class RowRef(NamedTuple):
    """One row of a dataset, as it is shown.

    Attributes:
        uri: of its payload; empty: it has none.
        split: the split it is in.
        labels: its labels, sorted.
        objects: how many boxes or entities it has.
        file: its shard, relative to the dataset's folder.
        record: its place in the shard, from 0.
    """

    uri: str
    split: str
    labels: tuple[str, ...]
    objects: int
    file: str
    record: int


@dataclass(frozen=True)
class Rows:
    """All rows of a dataset.

    Attributes:
        numbers: columns of :data:`_NUMBERS`, each [n], by name.
        uris: of all rows.
        labels: of all rows, lists.
        splits: the names that the column ``split`` numbers.
        files: the shards that the column ``file`` numbers.
        label_counts: examples of each label, by split.
        unlabelled: examples without a label, by split.
    """

    numbers: Mapping[str, npt.NDArray[Any]]
    uris: ArrowColumn
    labels: ArrowColumn
    splits: tuple[str, ...]
    files: tuple[str, ...]
    label_counts: Mapping[str, Mapping[str, int]]
    unlabelled: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.numbers["key"])

    def in_splits(self, wanted: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Say of each row whether it is in one of some splits."""
        codes = [code for code, name in enumerate(self.splits) if name in wanted]
        return np.isin(self.numbers["split"], codes)

    def refs(self, places: Places) -> Iterator[RowRef]:
        """Yield rows as they are shown."""
        for start in range(0, len(places), BLOCK_ROWS):
            block = places[start : start + BLOCK_ROWS]
            taken = pa.array(block)
            columns = [self.numbers[n][block].tolist() for n in ("split", "objects", "file")]
            for uri, labels, split, objects, file, record in zip(
                self.uris.take(taken).to_pylist(),
                self.labels.take(taken).to_pylist(),
                *columns,
                self.numbers["record"][block].tolist(),
                strict=True,
            ):
                yield RowRef(
                    uri, self.splits[split], tuple(labels), objects, self.files[file], record
                )


def read_rows(side: Side) -> Rows:
    """Read all records of a dataset.

    Raises:
        RecordError: a shard is damaged, or holds something else.
        SourceError: a shard is missing.
        StorageError: storage failed.
    """
    layout = Layout.of(side.dataset)
    builder = _Builder()
    for split, files in side.files.items():
        for file in files:
            _read_shard(side.path(file), layout, builder.shard(split, file))
    return builder.build()


def _read_shard(path: str, layout: Layout, add: Any) -> None:
    try:
        for number, record in enumerate(read_records(path)):
            try:
                found = fingerprint(record, layout)
            except (ValueError, IndexError) as exc:
                raise RecordError(f"{path}: record {number}: {exc}") from exc
            add(found, number)
    except OSError as exc:
        raise SourceError(
            f"{path}: cannot be read, though the dataset names this shard: "
            f"{exc.strerror or exc}; convert again, or copy all of the dataset's files"
        ) from exc


@dataclass
class _Builder:
    """Collects records block by block."""

    splits: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    label_counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unlabelled: Counter[str] = field(default_factory=Counter)
    _waiting: list[tuple[Any, ...]] = field(default_factory=list)
    _numbers: dict[str, list[npt.NDArray[Any]]] = field(default_factory=lambda: defaultdict(list))
    _texts: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def shard(self, split: str, file: str) -> Any:
        """Return a function that adds the records of the next shard."""
        if split not in self.splits:
            self.splits.append(split)
        self.files.append(file)
        place = self.splits.index(split), len(self.files) - 1
        counts = self.label_counts[split]

        def add(found: Fingerprint, number: int) -> None:
            for label in found.labels:
                counts[label] += 1
            if not found.labels:
                self.unlabelled[split] += 1
            self._waiting.append((*found, *place, number))
            if len(self._waiting) >= BLOCK_ROWS:
                self._flush()

        return add

    def _flush(self) -> None:
        if not self._waiting:
            return
        names = (*Fingerprint._fields, "split", "file", "record")
        columns = dict(zip(names, zip(*self._waiting, strict=True), strict=True))
        for name, dtype in _NUMBERS.items():
            self._numbers[name].append(np.array(columns[name], dtype))
        for name, kind in _TEXTS.items():
            self._texts[name].append(pa.array(columns[name], kind))
        self._waiting.clear()

    def build(self) -> Rows:
        """Return all that was added."""
        self._flush()
        numbers: dict[str, npt.NDArray[Any]] = {}
        for name, dtype in _NUMBERS.items():
            numbers[name] = np.concatenate([np.zeros(0, dtype), *self._numbers.pop(name, [])])
        texts = {name: pa.chunked_array(self._texts[name], kind) for name, kind in _TEXTS.items()}
        return Rows(
            numbers,
            texts["uri"],
            texts["labels"],
            tuple(self.splits),
            tuple(self.files),
            {name: dict(counts) for name, counts in self.label_counts.items()},
            dict(self.unlabelled),
        )
