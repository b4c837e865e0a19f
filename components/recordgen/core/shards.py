"""The task of a worker, one shard, and its result."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import PIL
import pyarrow as pa
import simplejpeg

from recordgen import storage
from recordgen.core.conversion import IN_FLIGHT_BYTES, Conversion
from recordgen.core.dataset.counts import Count, ImageStats, Shard, Split
from recordgen.core.dataset.manifest import built, is_shard, shard_file, split_dir
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts import ROWS
from recordgen.core.facts.columns import SAMPLE_ROWS, FactsBuilder, with_facts
from recordgen.core.ordered import map_in_order, threads_here
from recordgen.core.progress import EXAMPLES_WRITTEN, PAYLOAD_BYTES, PAYLOADS_REJECTED
from recordgen.core.records import RECORDS, Record
from recordgen.core.rows.columns import (
    Columns,
    PlannedBatch,
    content_of,
    gathered,
    packed,
    read_streams,
    together,
    values_of,
)
from recordgen.core.rows.row import PlannedRow, requested_uris, with_uri
from recordgen.core.task.task import BuiltBatch, FetchPayloads, Payloads, Tally, Task, count_labels
from recordgen.rejects import Reject
from recordgen.storage.local import Spool
from recordgen.version import __version__

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

# A part of a shard's rows ends when it has this many rows, or annotations of this many bytes.
_PART_ROWS = 1 << 14
_PART_BYTES = 1 << 20

_ANNOTATION = PlannedRow._fields.index("annotation")

# The columns that name payloads, and the one of the files where their paths start.
_NAMING = ["uri", "annotation", "source"]


class PlannedRows:
    """The planned rows of a shard, in the order in which they are written.

    Annotations may be large: whole rows are read part by part, from a temporary file.

    Attributes:
        columns: the columns of :class:`recordgen.core.rows.row.PlannedRow`, without annotations.
    """

    def __init__(self, parts: Iterable[Columns]) -> None:
        """Take columns of whole rows, in parts."""
        self._annotations, kept = Spool(), list[Columns]()
        groups = gathered(parts, _PART_ROWS, _PART_BYTES, ["annotation"])
        for some in filter(None, groups):
            part = together(PlannedRow, some)
            self._annotations.add(packed(part.select(["annotation"])))
            left = _with_annotations(part, pa.nulls(len(part), pa.string()))
            kept.append(left.take(pa.array(np.arange(len(part)))))  # frees the memory of the part
        self.columns = together(PlannedRow, kept)

    @property
    def payload_bytes(self) -> int:
        """Total size of the payloads."""
        return PlannedBatch(self.columns).payload_bytes

    def annotations(self) -> Iterator[Any]:
        """Yield the annotations of the rows in parts, as Arrow arrays."""
        for number in range(len(self._annotations)):
            [part] = read_streams(self._annotations[number])
            yield part["annotation"].combine_chunks()

    def identity(self, vocabulary: Vocabulary, task: Task) -> bytes | None:
        """Return a digest of everything besides the options that affects the rows' examples.

        Import files and lines are not part of it: only rejects name them. None if storage cannot
        distinguish a payload from its replacement.
        """
        # Rows give the same digest however they are cut into parts.
        contents, labels = defaultdict[Any, Any](hashlib.sha256), set[str]()
        for columns in self._parts():
            for name in ("uri", "annotation", "bytes", "version", "assigned"):
                for at, content in enumerate(content_of(columns[name])):
                    contents[name, at].update(content)
            if task.names_payloads:
                labels.update(count_labels(columns["annotation"], task))
                paths = _paths_in(columns, task)
                if not _are_versioned(columns, paths):
                    return None
                contents["paths", 0].update(f"{json.dumps(paths)[1:-1]}, ".encode())
        # Of small rows, finding the labels costs more than it saves.
        names = sorted(labels) if task.names_payloads else vocabulary.names
        said = hashlib.sha256(b"".join(each.digest() for each in contents.values()))
        said.update(json.dumps([(name, vocabulary.index(name)) for name in names]).encode())
        return said.digest()

    def _parts(self) -> Iterator[Columns]:
        """Yield the rows in parts: an Arrow array holds at most 2 GB of text."""
        start = 0
        for texts in self.annotations():
            yield _with_annotations(self.columns.slice(start, len(texts)), texts)
            start += len(texts)

    def _slices(self, rows: int) -> Iterator[Columns]:
        """Yield the rows of each part in slices of at most so many rows."""
        for part in self._parts():
            yield from (part.slice(start, rows) for start in range(0, len(part), rows))

    def renumbered(self, rejects: Sequence[Reject]) -> Sequence[Reject]:
        """Give rejects of the same payloads the import files and lines of these rows."""
        if not rejects:
            return rejects

        def place(item: PlannedRow | Reject) -> tuple[str, str]:
            return storage.resolve(item.uri, item.source), item.uri

        rows = {place(row): row for row in PlannedBatch(self.columns).rows}
        found = [rows[place(item)] for item in rejects]
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

        def start(batch: PlannedBatch) -> tuple[PlannedBatch, Sequence[FetchPayloads]]:
            return batch, list(map(fetcher.start_all, payload_rows(batch, task)))

        def make(started: tuple[PlannedBatch, Sequence[FetchPayloads]]) -> _Result:
            return then(task.make(*started, vocabulary, conversion.payloads))

        parts = self._parts() if task.names_payloads else ()
        paths = chain.from_iterable(_paths_in(columns, task) for columns in parts)
        fetcher = conversion.store.fetcher(chain.from_iterable(paths))
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

        left = len(self.columns)
        for part in map(PlannedBatch, self._slices(max(batch_rows, _ROWS_AT_ONCE))):
            ends = np.cumsum(part.columns["bytes"].to_numpy())  # where each row's payload ends
            start = done = 0
            while start < len(ends):
                full = int(ends.searchsorted(done + _BATCH_BYTES, side="right"))
                stop = max(start + 1, min(start + at_most(left), full))
                batch = part.slice(start, stop - start)
                end = int(ends[stop - 1])
                batch.payload_bytes = end - done  # known already, without another sum
                yield batch
                left -= stop - start
                start, done = stop, end


def _with_annotations(columns: Columns, annotations: Any) -> Columns:
    return columns.set_column(_ANNOTATION, "annotation", annotations)


def _paths_in(columns: Columns, task: Payloads) -> list[list[str]]:
    """Return where the payloads of each row are in storage."""
    uris, annotations, sources = map(values_of, columns.select(_NAMING).columns)
    stored = zip(task.stored_uris(uris, annotations), sources, strict=True)
    return [[storage.resolve(uri, source) for uri in mine] for mine, source in stored]


def _are_versioned(columns: Columns, paths: Sequence[Sequence[str]]) -> bool:
    """Return whether storage can distinguish each payload from its replacement."""
    return all(
        all(each for _, each in json.loads(version)) if len(mine) > 1 else version or not mine
        for version, mine in zip(values_of(columns["version"]), paths, strict=True)
    )


def payload_rows(batch: PlannedBatch, task: Payloads) -> list[Sequence[PlannedRow]]:
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


_SMALL_PAYLOAD_BYTES = 16_000

#: Versions of the libraries that encode pixels and gzip: others may produce other bytes.
ENCODERS = (PIL.__version__, simplejpeg.__version__, zlib.ZLIB_RUNTIME_VERSION)

#: Called repeatedly with the counts of the shard so far, by the names of `core.progress`.
OnProgress = Callable[[Mapping[str, int]], None]


@dataclass(frozen=True)
class ShardTask:
    """One shard to write."""

    split: str
    label: str | None  # with `shard_by=label`, the label that all its rows share; see Shard
    index: int
    count: int  # number of shards in the split
    rows: PlannedRows

    def file(self, compression: str) -> str:
        """Return the shard's path inside the output."""
        return shard_file(self.split, self.index, self.count, compression)

    def fingerprint(self, vocabulary: Vocabulary, conversion: Conversion) -> str:
        """Return the sha256 (hex) of everything that affects the shard.

        Equal fingerprints mean equal bytes and results. Empty if storage cannot distinguish a
        payload from its replacement.
        """
        # The allowed number of rejects decides whether a run succeeds, but not what is written.
        recorded = {**conversion.recorded, "max_reject_fraction": None}
        place = [self.split, self.label, self.index, self.count]
        # Facts that were recorded for fewer checks would hide findings from a later run, and
        # images that took too long must get the time that a later run allows.
        payloads = conversion.payloads
        extra = [payloads.needs_looks, payloads.needs_rows, payloads.limit.seconds]
        known = [__version__, ENCODERS, recorded, place, *extra]
        identity = self.rows.identity(vocabulary, conversion.task)
        if identity is None:
            return ""
        return hashlib.sha256(json.dumps(known).encode() + identity).hexdigest()


@dataclass(frozen=True)
class ShardResult:
    """The result of a ShardTask."""

    split: str
    shard: Shard  # file, counts and digest (no bytes if only checked)
    # Examples by label; an example with several labels counts for each of them.
    labels: Mapping[str, Count]
    assigned: Count  # examples whose split was assigned, not named
    reencoded: Mapping[str, Count]
    rejects: tuple[Reject, ...]
    images: ImageStats | None  # formats and sizes of the images; None if unknown, or without images
    fingerprint: str  # see ShardTask.fingerprint
    kept: bool = False  # whether the shard was written by an earlier run
    unlabelled: Count = 0
    changes: Mapping[str, Count] = field(default_factory=dict)  # see Tally
    # Length of each record in bytes (uint32, little-endian), and `facts`, the facts of its planned
    # rows for the checks in parts: not read with the result; they are stored separately. Facts of
    # a shard that was just written are made while they are read, which can be done once.
    lengths: bytes = field(default=b"", compare=False, repr=False)
    facts: Any = field(default=None, compare=False, repr=False)

    def to_json(self) -> str:
        """Return the result without lengths and facts as one line of JSON."""
        values = asdict(replace(self, lengths=b"", facts=None))
        del values["lengths"], values["facts"]
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def of(cls, values: Any) -> ShardResult:
        """Return the result of parsed JSON of :meth:`to_json`. Raises: ValueError, TypeError."""
        found = built(cls, values)
        found.shard.check_values()
        folder, _, name = found.shard.file.partition("/")
        if folder != split_dir(found.split) or not is_shard(name):
            raise ValueError(f"{found.shard.file!r:.80} is no shard of split {found.split!r:.80}")
        return found


@dataclass
class SplitSum(Tally):
    """The sum of the results of a split's shards; the fields are those of ShardResult."""

    shards: list[Shard] = field(default_factory=list)
    images: ImageStats | None = None
    kept: int = 0

    @property
    def examples(self) -> int:
        """Number of examples."""
        return sum(shard.examples for shard in self.shards)

    def add(self, result: ShardResult) -> None:
        """Add the result of the next shard."""
        if result.shard.examples:  # without images, their stats are unknown
            is_first = not any(shard.examples for shard in self.shards)
            images = [result.images] if is_first else [self.images, result.images]
            self.images = ImageStats.merge(images)
        self.shards.append(result.shard)
        self.count(result)
        self.kept += result.kept

    def split(self) -> Split:
        """Return the split as ``dataset.json`` describes it."""
        return Split.of(
            self.shards,
            self.labels,
            images=self.images,
            unlabelled=self.unlabelled,
            assigned=self.assigned,
        )


def summed(results: Iterable[ShardResult]) -> dict[str, SplitSum]:
    """Return the sum of the results of each split, in the order of the results."""
    found: dict[str, SplitSum] = {}
    for result in results:
        found.setdefault(result.split, SplitSum()).add(result)
    return found


def counts_of(examples: int, rejects: int, size: int) -> dict[str, int]:
    """Return the counts of a shard so far; ``size`` is the bytes of its payloads."""
    return {EXAMPLES_WRITTEN: examples, PAYLOADS_REJECTED: rejects, PAYLOAD_BYTES: size}


class ShardStats:
    """Counts the examples of a shard on their way to the file, and collects its rejects."""

    def __init__(self, on_progress: OnProgress, conversion: Conversion) -> None:
        self._task = conversion.task
        self._keeps_rows = conversion.payloads.needs_rows and ROWS in self._task.facts
        self._sum = BuiltBatch(facts=FactsBuilder())
        self._digest = hashlib.sha256()
        self._lengths: list[bytes] = []
        self._on_progress = on_progress

    def add(self, built: BuiltBatch) -> None:
        """Count a batch of examples."""
        found = self._sum
        found.count(built)
        found.examples += built.examples
        found.images.update(built.images)
        found.facts.extend(built.facts)
        found.payload_bytes += built.payload_bytes
        for part in built.digested:
            self._digest.update(part)
        self._lengths += _lengths(built)
        self._on_progress(counts_of(found.examples, len(found.rejects), found.payload_bytes))

    def result(self, task: ShardTask, file: str, size: int, fingerprint: str) -> ShardResult:
        """Return the counts as a ShardResult."""
        found, rows = self._sum, task.rows
        noted = map(self._task.annotations_for_checks, rows.annotations())
        sample = -(-SAMPLE_ROWS // task.count) if self._keeps_rows else 0
        return ShardResult(
            task.split,
            Shard(file, found.examples, size, self._digest.hexdigest(), task.label),
            dict(sorted(found.labels.items())),
            found.assigned,
            dict(sorted(found.reencoded.items())),
            tuple(found.rejects),
            ImageStats.of(found.images),
            fingerprint,
            unlabelled=found.unlabelled,
            changes=dict(sorted(found.changes.items())),
            lengths=b"".join(self._lengths),
            facts=with_facts(rows.columns, found.facts, noted, rows.annotations(), sample),
        )


def _lengths(built: BuiltBatch) -> Iterator[bytes]:
    """Yield the lengths of the records of a batch, as in :attr:`ShardResult.lengths`."""
    if built.column is not None:
        import pyarrow.compute as pc

        yield pc.binary_length(built.column).to_numpy(zero_copy_only=False).astype("<u4").tobytes()
    sizes = (sum(map(len, record)) for record in built.records)
    yield np.fromiter(sizes, "<u4", len(built.records)).tobytes()


def write_shard(
    task: ShardTask,
    target: str,
    *,
    vocabulary: Vocabulary,
    conversion: Conversion,
    on_progress: OnProgress,
) -> ShardResult:
    """Write one shard under the folder ``target``; check it, and write nothing, if that is empty.

    The file is written under a temporary name and renamed, so it is never incomplete. A second
    attempt replaces it with the same bytes.
    """
    stats = ShardStats(on_progress, conversion)
    compression = conversion.shards.compression
    file, size = task.file(compression), 0
    made = task.rows.build(
        vocabulary,
        conversion,
        _threads(task, conversion),
        _framed if target else lambda built: (built, ()),
    )

    def frames() -> Iterator[Record]:
        for batch, framed in made:
            stats.add(batch)
            yield from framed

    if target:
        with storage.replacing(storage.join(target, file)) as out:
            with RECORDS.writer(out, compression) as writer:
                writer.write(frames())
            size = writer.bytes
    else:
        deque(frames(), maxlen=0)
    return stats.result(task, file, size, task.fingerprint(vocabulary, conversion))


def _threads(task: ShardTask, conversion: Conversion) -> int:
    """Return one thread for small payloads, unless options say otherwise, else all of the share.

    Small payloads keep threads in Python, where they only wait for each other.
    """
    rows = task.rows
    is_small = rows.payload_bytes < _SMALL_PAYLOAD_BYTES * len(rows.columns)
    if conversion.threads is None and conversion.task.names_payloads and is_small:
        return 1
    return threads_here(conversion.threads)


def _framed(built: BuiltBatch) -> tuple[BuiltBatch, Sequence[Record]]:
    """Return the batch with its framed records; checksums are made by the thread that calls it."""
    frames = [RECORDS.frame(record) for record in built.records]
    if built.column is not None:
        frames.insert(0, (RECORDS.frame_column(built.column),))
    return built, frames
