"""All records of a dataset as columns: hashes, and the values that are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
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

#: Indices of rows, in the order of their dataset.
Places: TypeAlias = "npt.NDArray[np.int64]"

#: Records that are Python objects at a time, before they become columns or when they are shown.
BLOCK_ROWS = 8192

# Columns of numbers: fields of Fingerprint, and the position of the record.
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
_COLUMNS = (*Fingerprint._fields, "split", "file", "record")


class RowRef(NamedTuple):
    """One row of a dataset, for display.

    Attributes:
        uri: uri of its payload; empty if it has none.
        split: its split.
        labels: its labels, sorted.
        objects: number of boxes or entities.
        file: its shard, relative to the dataset's folder.
        record: its index in the shard, from 0.
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
        uris: the uris of all rows.
        labels: the lists of labels of all rows.
        splits: the names of the splits; the column ``split`` has their indices.
        files: the shards; the column ``file`` has their indices.
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
        """Return whether each row is in one of the wanted splits."""
        codes = [code for code, name in enumerate(self.splits) if name in wanted]
        return np.isin(self.numbers["split"], codes)

    def refs(self, places: Places) -> Iterator[RowRef]:
        """Yield rows for display."""
        for start in range(0, len(places), BLOCK_ROWS):
            block = places[start : start + BLOCK_ROWS]
            taken = pa.array(block)
            names = ("split", "objects", "file", "record")
            columns = (self.numbers[name][block].tolist() for name in names)
            for uri, labels, split, objects, file, record in zip(
                self.uris.take(taken).to_pylist(),
                self.labels.take(taken).to_pylist(),
                *columns,
                strict=True,
            ):
                yield RowRef(
                    uri, self.splits[split], tuple(labels), objects, self.files[file], record
                )


def read_rows(side: Side) -> Rows:
    """Read all records of a dataset.

    Raises:
        RecordError: a shard is damaged, or does not hold ``tf.train.Example`` records.
        SourceError: a shard is missing.
        StorageError: storage failed.
    """
    layout = Layout.of(side.dataset)
    splits = tuple(name for name, files in side.files.items() if files)
    files = [(code, file) for code, name in enumerate(splits) for file in side.files[name]]
    counts: list[Counter[str]] = [Counter() for _ in splits]
    unlabelled: Counter[str] = Counter()
    numbers: dict[str, list[npt.NDArray[Any]]] = {
        name: [np.zeros(0, dtype)] for name, dtype in _NUMBERS.items()
    }
    texts: dict[str, list[Any]] = {name: [] for name in _TEXTS}
    records = (
        (*found, code, place, number)
        for place, (code, file) in enumerate(files)
        for number, found in _read_shard(side.path(file), layout)
    )
    while block := list(islice(records, BLOCK_ROWS)):
        columns = dict(zip(_COLUMNS, zip(*block, strict=True), strict=True))
        for name, parts in numbers.items():
            parts.append(np.array(columns[name], _NUMBERS[name]))
        for name, chunks in texts.items():
            chunks.append(pa.array(columns[name], _TEXTS[name]))
        for code, labels in zip(columns["split"], columns["labels"], strict=True):
            for label in labels:
                counts[code][label] += 1
            if not labels:
                unlabelled[splits[code]] += 1
    return Rows(
        {name: np.concatenate(numbers.pop(name)) for name in _NUMBERS},
        pa.chunked_array(texts["uri"], _TEXTS["uri"]),
        pa.chunked_array(texts["labels"], _TEXTS["labels"]),
        splits,
        tuple(file for _, file in files),
        dict(zip(splits, counts, strict=True)),
        unlabelled,
    )


def _read_shard(path: str, layout: Layout) -> Iterator[tuple[int, Fingerprint]]:
    """Yield each record's index in its shard, and its fingerprint."""
    try:
        for number, record in enumerate(read_records(path)):
            try:
                yield number, fingerprint(record, layout)
            except (ValueError, IndexError) as exc:
                raise RecordError(f"{path}: record {number}: {exc}") from exc
    except OSError as exc:
        raise SourceError(
            f"{path}: the dataset names this shard, but it cannot be read: "
            f"{exc.strerror or exc}; convert again, or copy all of the dataset's files"
        ) from exc
