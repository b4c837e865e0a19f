"""The rows of a shard: their payloads fetched and checked, in order, many at once."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice

from recordgen import storage
from recordgen.dataset.vocabulary import Vocabulary
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.payloads import several
from recordgen.payloads.fetching import IN_FLIGHT_BYTES, Fetcher
from recordgen.records.tfrecord import frame
from recordgen.rejects import Reject
from recordgen.rows.planned import PlannedRow, _of
from recordgen.shards.rows import payload_rows
from recordgen.shards.task import Tally, _Record
from recordgen.tasks import task_for
from recordgen.tasks.task import Made, Payload, Task

# Threads take a batch at a time: handing over each row by itself costs more than reading it.
_BATCH_BYTES = 2_000_000


# Batches held at once: enough to keep the threads busy while the writer waits for the oldest, and
# for payloads that are far away those who fetch them. What is held is also bounded in bytes.
_BATCHES_PER_THREAD = 3


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
        self, tally: Tally, vocabulary: Vocabulary, options: ConvertOptions, threads: int
    ) -> Iterator[Sequence[bytes]]:
        """Yield the frame of each row whose payload is not refused."""
        for record in tally.count(_records(self.rows, vocabulary, options, threads)):
            yield record.frame


def _records(
    rows: Sequence[PlannedRow], vocabulary: Vocabulary, options: ConvertOptions, threads: int
) -> Iterator[tuple[PlannedRow, _Record | Reject]]:
    """Yield each row's record or reject, in the rows' order, with a bounded number in flight."""

    def load_all(
        batch: Sequence[PlannedRow], payloads: Sequence[Payload]
    ) -> list[_Record | Reject]:
        made = task.make_all(batch, payloads, vocabulary, options)
        return list(map(_record, batch, made))

    task = task_for(options)
    batches = iter(_batches(rows, threads, task.batch_rows))
    stored = [part for row in rows for part in payload_rows(row, task)]
    waiting: deque[tuple[Sequence[PlannedRow], Future[list[_Record | Reject]]]] = deque()
    in_flight = 0
    with (
        ThreadPoolExecutor(threads, thread_name_prefix="recordgen") as pool,
        Fetcher(stored, options) as fetcher,
    ):
        most = threads * _BATCHES_PER_THREAD
        if fetcher.is_far:
            most = max(most, _BATCHES_FROM_AFAR)
        try:
            upcoming = next(batches, None)
            while upcoming is not None or waiting:
                room = len(waiting) < most and (not waiting or in_flight < IN_FLIGHT_BYTES)
                if upcoming is not None and room:
                    payloads = [_started(payload_rows(row, task), fetcher) for row in upcoming]
                    waiting.append((upcoming, pool.submit(load_all, upcoming, payloads)))
                    in_flight += sum(row.bytes for row in upcoming)
                    upcoming = next(batches, None)
                    continue
                batch, future = waiting.popleft()
                yield from zip(batch, future.result(), strict=True)
                in_flight -= sum(row.bytes for row in batch)
        finally:
            fetcher.close()  # whoever waits for a payload is in the way of the other threads' end
            pool.shutdown(wait=True, cancel_futures=True)


def _started(parts: Sequence[PlannedRow], fetcher: Fetcher) -> Payload:
    """Begin to fetch the payloads of a row; the result gives the only one, or all of them."""
    started = [fetcher.start(part) for part in parts]
    if len(started) == 1:
        return started[0]
    return lambda: several.join(payload() for payload in started)


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


def _record(row: PlannedRow, made: Made | PayloadError) -> _Record | Reject:
    if isinstance(made, PayloadError):
        return Reject(row.source, row.line, row.uri, made.code, made.message)
    return _Record(frame(made.record), made, row.drawn)


def payload_rows(row: PlannedRow, task: Task) -> list[PlannedRow]:
    """Return a row for each payload in storage that it needs, with that one's uri and size."""
    uris = task.uris(row)
    if len(uris) < 2:
        return [_of(row, uri) for uri in uris]
    return [
        row._replace(uri=uri, bytes=size, version=version)
        for uri, (size, version) in zip(uris, json.loads(row.version), strict=True)
    ]
