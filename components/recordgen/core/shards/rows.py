"""The planned rows of a shard, and the examples built from them in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TypeVar

import numpy as np

from recordgen import storage
from recordgen.core.conversion import IN_FLIGHT_BYTES, Conversion
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.ordered import map_in_order
from recordgen.core.rows.columns import Columns, PlannedBatch, content_of, values_of
from recordgen.core.rows.planned import PlannedRow, requested_uris, with_uri
from recordgen.core.task.task import BuiltBatch, FetchPayloads, Task, count_labels
from recordgen.rejects import Reject

_Result = TypeVar("_Result")

# Payload bytes of a batch. Threads take a batch at a time: passing single rows costs more than
# reading them.
_BATCH_BYTES = 2_000_000

# The last batches are small, but never smaller than this share of a full batch: tasks whose batches
# hold thousands of rows gain nothing from tiny ones.
_SMALLEST_SHARE = 16

# Batches in flight while payloads are fetched from remote storage.
_BATCHES_FROM_AFAR = 64

# A shard of small payloads has many rows; this many are turned into tuples at once.
_ROWS_AT_ONCE = 1000


@dataclass(frozen=True)
class PlannedRows:
    """The planned rows of a shard, in the order in which they are written."""

    columns: Columns  # the columns of PlannedRow

    @property
    def payload_bytes(self) -> int:
        """Total size of the payloads."""
        return PlannedBatch(self.columns).payload_bytes

    def identity(self, vocabulary: Vocabulary, task: Task) -> Iterator[bytes | memoryview] | None:
        """Return everything besides the options that affects the examples of the rows.

        Import files and lines are not part of it: only rejects name them. None if storage cannot
        distinguish a payload from its replacement.
        """
        if not all(starmap(_are_versioned, self._stored(task))):
            return None
        return self._identity(task, vocabulary)

    def _identity(self, task: Task, vocabulary: Vocabulary) -> Iterator[bytes | memoryview]:
        yield json.dumps(self._numbers(task, vocabulary)).encode()
        for batch in self._in_turn(max(task.batch_rows, _ROWS_AT_ONCE)):
            for name in ("uri", "annotation", "bytes", "version", "assigned"):
                yield from content_of(batch.columns[name])
        for paths in self._paths(task):
            yield json.dumps(paths).encode()

    def _numbers(self, task: Task, vocabulary: Vocabulary) -> Sequence[object]:
        """Return the numbers of the labels that the rows use."""
        if not task.names_payloads:  # small rows: finding their labels costs more than it saves
            return vocabulary.names
        labels: set[str] = set()
        for batch in self._in_turn():
            labels.update(count_labels(batch.columns["annotation"], task))
        return [(label, vocabulary.index(label)) for label in sorted(labels)]

    def _in_turn(self, count: int = _ROWS_AT_ONCE) -> Iterator[PlannedBatch]:
        """Yield the rows in parts: an Arrow array holds at most 2 GB of text."""
        for start in range(0, len(self.columns), count):
            yield PlannedBatch(self.columns.slice(start, count))

    def _stored(self, task: Task) -> Iterator[tuple[Columns, Sequence[Sequence[str]]]]:
        """Yield the rows in parts, with the uris of each row's payloads in storage."""
        if task.names_payloads:
            for batch in self._in_turn():
                uris, annotations = (values_of(batch.columns[n]) for n in ("uri", "annotation"))
                yield batch.columns, task.stored_uris(uris, annotations)

    def _paths(self, task: Task) -> Iterator[Sequence[Sequence[str]]]:
        """Yield the paths of each row's payloads in storage."""
        for columns, uris in self._stored(task):
            sources = values_of(columns["source"])
            yield [
                [storage.resolve(uri, source) for uri in mine]
                for mine, source in zip(uris, sources, strict=True)
            ]

    def renumbered(self, rejects: Sequence[Reject]) -> Sequence[Reject]:
        """Give rejects of the same payloads the import files and lines of these rows."""
        if not rejects:
            return rejects
        rows = {
            (storage.resolve(row.uri, row.source), row.uri): row
            for row in PlannedBatch(self.columns).rows
        }
        found = [rows[storage.resolve(item.uri, item.source), item.uri] for item in rejects]
        return [
            item._replace(source=row.source, line=row.line)
            for item, row in zip(rejects, found, strict=True)
        ]

    def build(
        self,
        vocabulary: Vocabulary,
        conversion: Conversion,
        threads: int,
        then: Callable[[BuiltBatch], _Result],
    ) -> Iterator[_Result]:
        """Yield the result of ``then`` for the examples of the rows, in order.

        Threads make examples and call ``then``. The number of examples in flight is bounded.
        """
        task = conversion.task
        paths = (path for part in self._paths(task) for mine in part for path in mine)

        def start(batch: PlannedBatch) -> tuple[PlannedBatch, Sequence[FetchPayloads]]:
            return batch, list(map(fetcher.start_all, payload_rows(batch, task)))

        def make(started: tuple[PlannedBatch, Sequence[FetchPayloads]]) -> _Result:
            return then(task.make(*started, vocabulary, conversion.payloads))

        with conversion.store.fetcher(paths) as fetcher:
            yield from map_in_order(
                make,
                map(start, self._batches(threads, task.batch_rows)),
                threads=threads,
                ahead=_BATCHES_FROM_AFAR if fetcher.is_far else None,
                bytes_of=lambda started: started[0].payload_bytes,
                max_bytes=IN_FLIGHT_BYTES,
                on_leave=fetcher.close,
            )

    def _batches(self, threads: int, batch_rows: int) -> Iterator[PlannedBatch]:
        """Cut the rows into batches of at most ``batch_rows`` rows and ``_BATCH_BYTES`` bytes.

        A larger payload is a batch of its own. The last batches are small, so that all threads
        finish at about the same time.
        """

        def at_most(left: int) -> int:
            return max(1, batch_rows // _SMALLEST_SHARE, min(batch_rows, left // (2 * threads)))

        ends = np.cumsum(self.columns["bytes"].to_numpy())  # where each row's payload ends
        start = done = behind = 0
        for part in self._in_turn(max(batch_rows, _ROWS_AT_ONCE)):
            first, behind = behind, behind + len(part.columns)
            while start < behind:
                full = int(ends.searchsorted(done + _BATCH_BYTES, side="right"))
                stop = max(start + 1, min(start + at_most(len(ends) - start), full, behind))
                batch = part.slice(start - first, stop - start)
                end = int(ends[stop - 1])
                batch.payload_bytes = end - done  # known already, without another sum
                yield batch
                start, done = stop, end


def _are_versioned(columns: Columns, uris: Sequence[Sequence[str]]) -> bool:
    """Return whether storage can distinguish each payload from its replacement."""
    return all(
        all(each for _, each in json.loads(version)) if len(mine) > 1 else version or not mine
        for version, mine in zip(values_of(columns["version"]), uris, strict=True)
    )


def payload_rows(batch: PlannedBatch, task: Task) -> list[Sequence[PlannedRow]]:
    """Return for each row one row per payload in storage, with the payload's size and version.

    Its uri is the URL to request, which may hold secrets. Empty if the task's rows name no
    payloads.
    """
    if not task.names_payloads:
        return []
    rows = batch.rows
    uris = task.stored_uris([row.uri for row in rows], [row.annotation for row in rows])
    return [_payloads_of(row, mine) for row, mine in zip(rows, uris, strict=True)]


def _payloads_of(row: PlannedRow, uris: Sequence[str]) -> Sequence[PlannedRow]:
    asked = requested_uris(uris, row.addresses)
    if len(uris) < 2:
        return [with_uri(row, uri) for uri in asked]
    return [
        row._replace(uri=uri, bytes=size, version=version)
        for uri, (size, version) in zip(asked, json.loads(row.version), strict=True)
    ]
