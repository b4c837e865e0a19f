"""Shards: the unit of work. One worker turns the rows of one shard into one file.

``write_shard(task) -> ShardResult`` is all that a runner has to carry. Threads fetch, check and
serialise; the calling thread writes in the task's order, so the bytes do not depend on timing.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import PIL
import simplejpeg

from recordgen import storage
from recordgen.dataset import ImageStats, Shard, shard_file
from recordgen.errors import PayloadError
from recordgen.fetching import IN_FLIGHT_BYTES, Fetcher
from recordgen.labels import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.ordered import map_in_order
from recordgen.resolving import PlannedRow, payload_rows
from recordgen.rows import Reject
from recordgen.tasks import task_for
from recordgen.tasks.task import Made, Payloads
from recordgen.tfrecord import frame, write_frames
from recordgen.version import __version__

# What makes bytes of pixels, and gzip of bytes: other versions may make others.
_ENCODERS = (PIL.__version__, simplejpeg.__version__, zlib.ZLIB_RUNTIME_VERSION)

# Threads take a batch at a time: handing over each row by itself costs more than reading it.
_BATCH_BYTES = 2_000_000

# Batches under way while payloads that are far away are fetched.
_BATCHES_FROM_AFAR = 64

# Rows of small payloads are many: what a fingerprint is of need not be in memory all at once.
_ROWS_AT_ONCE = 1000

#: Called now and then with (examples, rejects, payload bytes) of the shard so far.
OnProgress = Callable[[int, int, int], None]


class Planned(Protocol):
    """What a shard is made of, in the order in which it is written."""

    @property
    def payload_bytes(self) -> int:
        """What the payloads take."""

    def identity(self, vocabulary: Vocabulary, options: ConvertOptions) -> Iterable[bytes] | None:
        """Return what decides, beside the options, what becomes of them; None: that is not known.

        Import files and lines are left out, which only rejects name.
        """

    def renumbered(self, rejects: Sequence[Reject]) -> Sequence[Reject]:
        """Return rejects of the same payloads with the import files and lines that name them."""

    def frames(
        self, tally: Tally, vocabulary: Vocabulary, options: ConvertOptions, threads: int
    ) -> Iterator[Sequence[bytes]]:
        """Yield framed records, each in pieces, or several at once; the tally is told of each."""


@dataclass(frozen=True)
class ShardTask:
    """One shard to write.

    Attributes:
        split: its split.
        label: the one label of all its rows, if it is sharded by label; see :class:`Shard`.
        index: its number in the split.
        count: number of shards in the split.
        rows: what it is made of.
    """

    split: str
    label: str | None
    index: int
    count: int
    rows: Planned

    def file(self, compression: str) -> str:
        """Return the shard's path inside the output."""
        return shard_file(self.split, self.index, self.count, compression)

    def fingerprint(self, vocabulary: Vocabulary, options: ConvertOptions) -> str:
        """Return the sha256 (hex) of all that decides what becomes of the shard.

        Equal fingerprints, equal bytes and results. Empty if storage cannot tell a payload from one
        that replaced it: then nothing is known.
        """
        # How many rejects a run may have decides whether it succeeds, but not what is written.
        recorded = {**options.recorded(), "max_reject_fraction": None}
        place = [self.split, self.label, self.index, self.count]
        said = hashlib.sha256(json.dumps([__version__, _ENCODERS, recorded, place]).encode())
        identity = self.rows.identity(vocabulary, options)
        if identity is None:
            return ""
        for part in identity:
            said.update(part)
        return said.hexdigest()


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


@dataclass(frozen=True)
class ShardResult:
    """What became of a ShardTask.

    Attributes:
        split: the split's name.
        shard: file, counts and digest (no bytes if only checked).
        labels: examples by label; one with several counts for each of them.
        drawn: examples whose split was assigned, not named.
        reencoded: images whose bytes were not passed through, by reason.
        rejects: rows whose payload was refused.
        images: what the images have in common; None: not known, or there are none.
        fingerprint: the task's, see :meth:`ShardTask.fingerprint`.
        kept: it is the work of an earlier run.
        unlabelled: examples without a label.
    """

    split: str
    shard: Shard
    labels: Mapping[str, int]
    drawn: int
    reencoded: Mapping[str, int]
    rejects: tuple[Reject, ...]
    images: ImageStats | None
    fingerprint: str
    kept: bool = False
    unlabelled: int = 0

    def to_json(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ShardResult:
        """Parse what :meth:`to_json` gave."""
        values: dict[str, Any] = json.loads(text)
        values["shard"] = Shard(**values["shard"])
        values["rejects"] = tuple(Reject(*item) for item in values["rejects"])
        values["images"] = ImageStats.from_json(values["images"])
        return cls(**values)


class _Record(NamedTuple):
    """One example: its frame, ready to write, and what the result says of it."""

    frame: tuple[bytes, ...]
    made: Made
    drawn: bool


def default_threads() -> int:
    """Return one thread per core, at least two: decoders release the interpreter's lock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, cores or 2)


def write_shard(
    task: ShardTask,
    target: str,
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Write one shard under the folder ``target``.

    The file is written under another name and renamed: it is there whole or not at all, and a
    second attempt replaces it with the same bytes.

    Raises:
        StorageError: storage failed; says nothing about the data.
    """
    tally = Tally(on_progress)
    file = task.file(options.compression)
    frames = _frames(task, tally, vocabulary, options)
    with storage.replacing(storage.join(target, file)) as out:
        size = write_frames(out, frames, options.compression)
    return tally.result(task, file, size, task.fingerprint(vocabulary, options))


def check_shard(
    task: ShardTask,
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Do all that :func:`write_shard` does, but write nothing."""
    tally = Tally(on_progress)
    for _ in _frames(task, tally, vocabulary, options):
        pass
    file = task.file(options.compression)
    return tally.result(task, file, 0, task.fingerprint(vocabulary, options))


def _frames(
    task: ShardTask, tally: Tally, vocabulary: Vocabulary, options: ConvertOptions
) -> Iterator[Sequence[bytes]]:
    threads = options.threads or default_threads()
    return task.rows.frames(tally, vocabulary, options, threads)


class Tally:
    """Counts what passes on its way to the file, and keeps the rejects aside."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.examples = 0
        self._bytes = 0
        self._digest = hashlib.sha256()
        self._drawn = 0
        self._labels: Counter[str] = Counter()
        self._unlabelled = 0
        self._reencoded: Counter[str] = Counter()
        self._images: Counter[tuple[str, int | None, int | None]] = Counter()
        self._rejects: list[Reject] = []
        self._on_progress = on_progress

    def count(self, items: Iterable[tuple[PlannedRow, _Record | Reject]]) -> Iterator[_Record]:
        """Yield records; of others, the rejects are kept."""
        for row, item in items:
            self._bytes += row.bytes
            if isinstance(item, Reject):
                self._rejects.append(item)
            else:
                self.examples += 1
                made = item.made
                self._digest.update(made.digested)
                self._drawn += item.drawn
                for label in made.labels:
                    self._labels[label] += 1
                self._unlabelled += not made.labels
                if made.reencoded is not None:
                    self._reencoded[made.reencoded] += 1
                if made.image is not None:
                    self._images[made.image] += 1
                yield item
            self._report()

    def add(
        self,
        examples: int,
        digested: memoryview,
        *,
        drawn: int,
        labels: Mapping[str, int],
        rejects: Sequence[Reject],
        payload_bytes: int,
    ) -> None:
        """Count many examples at once, each with one label at most.

        Args:
            examples: how many there are.
            digested: what they add to the digest, one behind the other.
            drawn: how many have a split that was assigned, not named.
            labels: how many have which label.
            rejects: those beside them that were refused.
            payload_bytes: of all of them.
        """
        self.examples += examples
        self._digest.update(digested)
        self._drawn += drawn
        self._labels.update(labels)
        self._unlabelled += examples - sum(labels.values())
        self._rejects += rejects
        self._bytes += payload_bytes
        self._report()

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.examples, len(self._rejects), self._bytes)

    def result(self, task: ShardTask, file: str, size: int, fingerprint: str) -> ShardResult:
        """Return what was counted."""
        return ShardResult(
            task.split,
            Shard(file, self.examples, size, self._digest.hexdigest(), task.label),
            dict(sorted(self._labels.items())),
            self._drawn,
            dict(sorted(self._reencoded.items())),
            tuple(self._rejects),
            ImageStats.of(self._images),
            fingerprint,
            unlabelled=self._unlabelled,
        )


def _records(
    rows: Sequence[PlannedRow], vocabulary: Vocabulary, options: ConvertOptions, threads: int
) -> Iterator[tuple[PlannedRow, _Record | Reject]]:
    """Yield each row's record or reject, in the rows' order, with a bounded number in flight."""

    def start(batch: Sequence[PlannedRow]) -> tuple[Sequence[PlannedRow], Sequence[Payloads]]:
        return batch, [fetcher.start_all(payload_rows(row, task)) for row in batch]

    def make(
        started: tuple[Sequence[PlannedRow], Sequence[Payloads]],
    ) -> list[tuple[PlannedRow, _Record | Reject]]:
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


def _record(row: PlannedRow, made: Made | PayloadError) -> _Record | Reject:
    if isinstance(made, PayloadError):
        return Reject(row.source, row.line, row.uri, made.code, made.message)
    return _Record(frame(made.record), made, row.drawn)
