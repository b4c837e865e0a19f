"""The rows of a shard: their payloads fetched and checked, in order, many at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from recordgen import storage
from recordgen.dataset.vocabulary import Vocabulary
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.ordered import map_in_order
from recordgen.payloads.fetching import IN_FLIGHT_BYTES, Fetcher
from recordgen.records.tfrecord import frame
from recordgen.rejects import Reject
from recordgen.rows.planned import PlannedRow, with_uri
from recordgen.shards.task import FramedRecord, ShardStats
from recordgen.tasks import task_for
from recordgen.tasks.task import BuiltExample, Payloads, Task

# Threads take a batch at a time: handing over each row by itself costs more than reading it.
_BATCH_BYTES = 2_000_000


# Batches under way while payloads that are far away are fetched.
_BATCHES_FROM_AFAR = 64


# Rows of small payloads are many: what a fingerprint is of need not be in memory all at once.
_ROWS_AT_ONCE = 1000


@dataclass(frozen=True)
class PlannedRows:
    """Rows of payloads, or rows that say all themselves, each an example of its own.

    Attributes:
        rows: in the order in which they are written.
    """

    rows: tuple[PlannedRow, ...]

    @property
    def payload_bytes(self) -> int:
        """What the payloads take."""
        return sum(row.bytes for row in self.rows)

    def identity(self, vocabulary: Vocabulary, options: ConvertOptions) -> Iterator[bytes] | None:
        """Return what decides what becomes of the rows.

        None: storage cannot tell a payload from one that replaced it.
        """
        task = task_for(options)
        parts = [payload_rows(row, task) for row in self.rows]
        if not all(row.version for row in (*self.rows, *chain.from_iterable(parts))):
            return None
        rows = (
            (
                [storage.resolve(part.uri, row.source) for part in mine],
                row.uri,
                row.annotation,
                task.numbers_in_record(row.annotation, vocabulary)
                if row.annotation is not None
                else None,
                row.bytes,
                row.version,
                row.drawn,
            )
            for row, mine in zip(self.rows, parts, strict=True)
        )
        some = iter(lambda: list(islice(rows, _ROWS_AT_ONCE)), [])
        return (json.dumps(item).encode() for item in some)

    def renumbered(self, rejects: Sequence[Reject]) -> Sequence[Reject]:
        """Return rejects of the same payloads with the import files and lines of these rows."""
        rows = {(storage.resolve(row.uri, row.source), row.uri): row for row in self.rows}
        found = [rows[storage.resolve(item.uri, item.source), item.uri] for item in rejects]
        return [
            item._replace(source=row.source, line=row.line)
            for item, row in zip(rejects, found, strict=True)
        ]

    def frames(
        self, stats: ShardStats, vocabulary: Vocabulary, options: ConvertOptions, threads: int
    ) -> Iterator[Sequence[bytes]]:
        """Yield the frame of each row whose payload is not refused."""
        for record in stats.count(_records(self.rows, vocabulary, options, threads)):
            yield record.frame


def _records(
    rows: Sequence[PlannedRow], vocabulary: Vocabulary, options: ConvertOptions, threads: int
) -> Iterator[tuple[PlannedRow, FramedRecord | Reject]]:
    """Yield each row's record or reject, in the rows' order, with a bounded number in flight."""

    def start(batch: Sequence[PlannedRow]) -> tuple[Sequence[PlannedRow], Sequence[Payloads]]:
        return batch, [fetcher.start_all(payload_rows(row, task)) for row in batch]

    def make(
        started: tuple[Sequence[PlannedRow], Sequence[Payloads]],
    ) -> list[tuple[PlannedRow, FramedRecord | Reject]]:
        batch, payloads = started
        made = task.make_all(batch, payloads, vocabulary, options)
        return list(zip(batch, map(_record, batch, made), strict=True))

    task = task_for(options)
    stored = [part for row in rows for part in payload_rows(row, task)]
    with Fetcher(stored, options) as fetcher:
        for records in map_in_order(
            make,
            map(start, _batches(rows, threads, task.batch_rows)),
            threads=threads,
            ahead=_BATCHES_FROM_AFAR if fetcher.is_far else None,
            bytes_of=lambda started: sum(row.bytes for row in started[0]),
            max_bytes=IN_FLIGHT_BYTES,
            on_leave=fetcher.close,
        ):
            yield from records


def _batches(
    rows: Sequence[PlannedRow], threads: int, batch_rows: int
) -> Iterator[Sequence[PlannedRow]]:
    """Cut rows into batches of at most so many rows and, but for a single row, so many bytes.

    The last ones are small, so that no thread is left with work when the others have none.
    """
    start = size = 0
    most = min(batch_rows, max(1, len(rows) // (2 * threads)))
    for at, row in enumerate(rows):
        if at > start and (at - start >= most or size + row.bytes > _BATCH_BYTES):
            yield rows[start:at]
            start, size = at, 0
            most = min(batch_rows, max(1, (len(rows) - at) // (2 * threads)))
        size += row.bytes
    if rows:
        yield rows[start:]


def _record(row: PlannedRow, made: BuiltExample | PayloadError) -> FramedRecord | Reject:
    if isinstance(made, PayloadError):
        return Reject(row.source, row.line, row.uri, made.code, made.message)
    return FramedRecord(frame(made.record), made, row.drawn)


def payload_rows(row: PlannedRow, task: Task) -> list[PlannedRow]:
    """Return a row for each payload in storage that it needs, with that one's uri and size."""
    uris = task.uris(row)
    if len(uris) < 2:
        return [with_uri(row, uri) for uri in uris]
    return [
        row._replace(uri=uri, bytes=size, version=version)
        for uri, (size, version) in zip(uris, json.loads(row.version), strict=True)
    ]
