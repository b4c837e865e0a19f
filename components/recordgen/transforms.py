"""The Beam pipeline: it carries rows and tasks, never payloads.

files ──ReadRows──────▶ (bucket, RowBlock | ReadSummary) ─┐
shards ─ReadExisting──▶ (bucket, KnownBlock) ─────────────┴─group─▶ ResolveBuckets ─▶ staging
                                                                          │             │
       (_ALL, BucketSummary | BucketFile | ReadSummary) ◀─────────────────┘             │
                            │                                                           │
                          group ─▶ MakePlan ─▶ (shard, ShardOutline)                    │ rows
                                                         │                              │
                                                       group ─▶ WriteShards ◀───────────┘
                                                                     └─▶ staging

The rows of a bucket wait in the staging folder until the plan says whose they are.
What a step must know travels by key, never as a side input, and a step has one output: Dask's
runner works a side input out anew for each part of the work, and hands all outputs of a step to
whoever takes one of them. Every step costs a small run a hundredth of a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics

from recordgen import metrics, storage
from recordgen.access import Access
from recordgen.appending import Existing, ExistingShard, known_rows
from recordgen.blocks import KnownBlock, ReadSummary, RowBlock, SplitsNamed
from recordgen.errors import PayloadError, RecordgenError, SourceError
from recordgen.fetching import check_reach, content_keys, payload_infos
from recordgen.labels import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.planning import Base, make_plan, too_many
from recordgen.resolving import BucketSummary, KnownRow, bucket_of, resolve_bucket
from recordgen.resuming import compare_shard, keep_or_write_shard
from recordgen.rows import Reject, Row, placing
from recordgen.runs import Run
from recordgen.shards import ShardResult, check_shard, write_shard
from recordgen.sources import ImportFile, RowReader
from recordgen.sources.image_folder import list_images
from recordgen.staging import Staging
from recordgen.stretches import BucketFile, ShardOutline, cut
from recordgen.tasks import task_for

# Rows cross Beam in blocks: one pickle for many rows is what makes a million of them cheap. Many
# buckets share the rows that are read, so more must be read for blocks worth it.
_BLOCK_ROWS = 2000
_BLOCK_ROWS_PER_BUCKET = 250
_MAX_BLOCK_ROWS = 200_000

# A bucket's rows are held in memory together, so small sources have small ones; of large ones, each
# takes so many bytes of import file.
_SMALL_BUCKET_BYTES, _SMALL_BUCKETS = 100_000, 16
_BUCKET_BYTES = 2_000_000
_ROW_BYTES = 100
_MAX_BUCKETS = 4096

# Dask's runner cuts the work into no more parts than there are to read: these make up the number.
_EMPTY_PARTS = 64

# The key of what all buckets say together. Not None: its hash differs from process to process, and
# some runners group by that.
_ALL = -1

_T = TypeVar("_T")

# Split and number of a shard: plain, so that it encodes to the same bytes everywhere.
ShardKey: TypeAlias = "tuple[str, int]"


@dataclass(frozen=True)
class Source:
    """Where rows come from: import files, or rows in memory (a DataFrame's).

    Attributes:
        files: import files.
        rows: blocks of rows.
        bytes: size of all of it, for the number of buckets.
        adjusted: what was changed to make rows in memory usable, by kind.
        reason: which lines have decided the task; empty if it was given.
    """

    files: tuple[ImportFile, ...] = ()
    rows: tuple[tuple[Row | Reject, ...], ...] = ()
    bytes: int = 0
    adjusted: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""

    @classmethod
    def of_files(cls, files: Sequence[ImportFile]) -> Source:
        """Return import files as a source. Raises: SourceError, StorageError."""
        return cls(files=tuple(files), bytes=sum(map(_size, files)))

    @classmethod
    def of_rows(cls, rows: Iterable[Row | Reject], adjusted: Mapping[str, int]) -> Source:
        """Return rows as a source, and what ``adjusted`` counts once all of them were made."""
        waiting = iter(rows)
        blocks = tuple(iter(lambda: tuple(islice(waiting, _BLOCK_ROWS)), ()))
        size = sum(map(len, blocks)) * _ROW_BYTES
        return cls(rows=blocks, bytes=size, adjusted=dict(adjusted))

    @property
    def paths(self) -> Iterator[str]:
        """Where the import files lie, or the payloads of rows in memory."""
        yield from (file.path for file in self.files)
        for row in chain.from_iterable(self.rows):
            if isinstance(row, Row) and row.uri:
                yield storage.resolve(row.uri, row.source)

    def parts(self) -> list[Any]:
        """Return what can be read on its own, evenly among parts that are empty."""
        full: list[Any] = [*self.files, *self.rows]
        parts: list[Any] = [()] * (len(full) + _EMPTY_PARTS)
        for index, part in enumerate(full):
            parts[index * len(parts) // len(full)] = part
        return parts

    @property
    def names(self) -> tuple[str, ...]:
        """What ``dataset.json`` says of the source."""
        return tuple(file.path for file in self.files) or ("DataFrame",)


def _size(file: ImportFile) -> int:
    path = file.path
    if file.bytes is not None:
        return file.bytes
    if path.endswith("/"):
        return len(list_images(path)) * _ROW_BYTES
    try:
        return storage.size(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this import file: {exc.strerror or exc}") from exc


def plan_rows(
    pipeline: beam.Pipeline,
    source: Source,
    options: ConvertOptions,
    staging: Staging,
    existing: Existing | None = None,
) -> beam.PCollection:
    """Build the planning half.

    Args:
        pipeline: gets the steps.
        source: where rows come from.
        options: how to plan.
        staging: where the plan is left.
        existing: the dataset that is appended to.

    Returns:
        (ShardKey, [ShardOutline]) for every shard; with too many rejects so far, nothing. The
        rows and the whole plan are left in ``staging``.
    """
    buckets = _buckets(source, existing)
    folder = storage.folder_of(source.names[0])
    # Create spreads several sources over the workers by a shuffle, which one does not need.
    parts = [
        pipeline
        | "ListSources"  # ImportFile | (Row, …)
        >> beam.Create(source.parts(), reshuffle=len(source.files) + len(source.rows) > 1)
        | "ReadRows" >> beam.ParDo(ReadRows(options, buckets, folder, staging))
    ]  # (bucket, RowBlock | ReadSummary)
    if options.missing_split == "drop":  # who drops rows without a split waits for all others
        parts.append(
            parts[0]
            | "ReadSummaries" >> beam.FlatMap(_summary_of_any_bucket)
            | "GatherNamed" >> beam.GroupByKey()  # (_ALL, [ReadSummary])
            | "TellBuckets" >> beam.FlatMap(_tell_buckets, buckets)  # (bucket, SplitsNamed)
        )
    if existing is not None:
        parts.append(
            pipeline
            | "ListExisting" >> beam.Create(existing.shards)  # ExistingShard
            | "ReadExisting" >> beam.ParDo(ReadExisting(options, buckets, folder, staging))
        )  # (bucket, KnownBlock)
    together = parts[0] if len(parts) == 1 else parts | "RowsAndMore" >> beam.Flatten()
    return (
        together
        | "GroupByBucket" >> beam.GroupByKey()
        | "ResolveBuckets"
        >> beam.ParDo(
            ResolveBuckets(options, existing.folders if existing else frozenset(), staging)
        )  # (_ALL, BucketSummary | BucketFile | ReadSummary)
        | "GatherSummaries" >> beam.GroupByKey()
        | "MakePlan"
        >> beam.ParDo(MakePlan(options, existing.base if existing else Base(), staging))
        | "SpreadShards" >> beam.GroupByKey()  # (ShardKey, [ShardOutline])
    )


def _buckets(source: Source, existing: Existing | None) -> int:
    """Return the number of buckets, on which the plan does not depend."""
    size = source.bytes + (existing.dataset.examples * _ROW_BYTES if existing else 0)
    few = min(_SMALL_BUCKETS, size // _SMALL_BUCKET_BYTES)
    return max(1, few, min(_MAX_BUCKETS, size // _BUCKET_BYTES))


def write_shards(shards: beam.PCollection, options: ConvertOptions, run: Run) -> beam.PCollection:
    """Write every shard into the run's staging folder, or keep it; gives shard names."""
    work: Callable[..., ShardResult] = partial(
        write_shard, target=run.staging.root, options=options
    )
    if run.leftovers:
        work = partial(
            keep_or_write_shard, staging=run.staging, leftovers=run.leftovers, options=options
        )
    return shards | "WriteShards" >> beam.ParDo(WorkOnShards(work, run.staging))


def check_shards(
    shards: beam.PCollection, options: ConvertOptions, staging: Staging
) -> beam.PCollection:
    """Check every shard and write nothing but its result; gives shard names."""
    work = partial(check_shard, options=options)
    return shards | "CheckShards" >> beam.ParDo(WorkOnShards(work, staging))


def compare_shards(
    shards: beam.PCollection, options: ConvertOptions, output: str, staging: Staging
) -> beam.PCollection:
    """Check every shard, and the file in ``output`` that is its own; gives shard names."""
    work = partial(compare_shard, output=output, options=options)
    return shards | "CompareShards" >> beam.ParDo(WorkOnShards(work, staging))


class _Step(beam.DoFn):
    """A step that leaves its error in the staging folder: runners lose an error's type."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def _reported(self, items: Iterator[_T]) -> Iterator[_T]:
        try:
            yield from items
        except RecordgenError as exc:
            self._staging.write_error(exc)
            raise


class _PlanningStep(_Step):
    """A step that says how many rows it has read or planned."""

    def setup(self) -> None:
        self._heartbeat = self._staging.planning_heartbeat()


@dataclass
class _Block:
    """Rows read since the last block was handed on, by bucket, as RowBlock packs them."""

    buckets: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    read: int = 0
    named: bool = False
    rejects: list[Reject] = field(default_factory=list)
    adjusted: Counter[str] = field(default_factory=Counter)

    def flush(self) -> Iterator[Any]:
        for bucket, rows in self.buckets.items():
            yield bucket, RowBlock.of(rows)
        # Summaries go to one place in the end, and there is always a first bucket.
        yield 0, ReadSummary(self.read, self.named, tuple(self.rejects), dict(self.adjusted))


class ReadRows(_PlanningStep):
    """ImportFile or rows → (bucket, RowBlock), and (0, ReadSummary)."""

    def __init__(
        self, options: ConvertOptions, buckets: int, folder: str, staging: Staging
    ) -> None:
        super().__init__(staging)
        self._options = options
        self._buckets = buckets
        self._folder = folder
        rows = min(buckets * _BLOCK_ROWS_PER_BUCKET, _MAX_BLOCK_ROWS)
        self._block_rows = max(_BLOCK_ROWS, rows)
        self._rows = _counter(metrics.ROWS_READ)
        self._rejected = _counter(metrics.ROWS_REJECTED)

    def process(self, source: Any) -> Any:  # noqa: D102
        return self._reported(self._blocks(source))

    def _blocks(self, source: Any) -> Iterator[Any]:
        reader = RowReader(self._options)
        rows = reader.read(source) if isinstance(source, ImportFile) else iter(source)
        place, task = placing(self._options.seed), task_for(self._options)
        access = self._options.access
        block = _Block(adjusted=reader.adjusted)
        for row in rows:
            block.read += 1
            if task.by_address and isinstance(row, Row):
                row = _located(row, access)
            if isinstance(row, Reject):
                block.rejects.append(row)
            else:
                where = place(task.placed_by(row, self._folder))
                bucket = bucket_of(where.order, self._buckets)
                block.buckets.setdefault(bucket, []).append((*where, *row))
                block.named = block.named or row.split is not None
            if block.read == self._block_rows:
                self._count(block)
                yield from block.flush()
                reader.adjusted.clear()
                block = _Block(adjusted=reader.adjusted)
        self._count(block)
        yield from block.flush()

    def _count(self, block: _Block) -> None:
        self._rows.inc(block.read)
        self._rejected.inc(len(block.rejects))
        self._heartbeat.add(block.read, 0, len(block.rejects))


def _located(row: Row, access: Access) -> Row | Reject:
    """Give a row the address of its payload, which nothing here opens, if it may reach that."""
    path = storage.address(row.uri, row.source)
    try:
        check_reach(path, row, access)
    except PayloadError as exc:
        return Reject(row.source, row.line, row.uri, exc.code, exc.message)
    return row._replace(uri=path)


class ReadExisting(_Step):
    """ExistingShard → (bucket, KnownBlock)."""

    def __init__(
        self, options: ConvertOptions, buckets: int, folder: str, staging: Staging
    ) -> None:
        super().__init__(staging)
        self._options = options
        self._buckets = buckets
        self._folder = folder

    def process(self, shard: ExistingShard) -> Any:  # noqa: D102
        return self._reported(self._blocks(shard))

    def _blocks(self, shard: ExistingShard) -> Iterator[Any]:
        rows = known_rows(shard, self._options, self._folder)
        while some := list(islice(rows, _BLOCK_ROWS)):
            blocks: dict[int, list[KnownRow]] = {}
            for row in some:
                blocks.setdefault(bucket_of(row.order, self._buckets), []).append(row)
            for bucket, known in blocks.items():
                yield bucket, KnownBlock.of(known)


class ResolveBuckets(_PlanningStep):
    """(bucket, all that is of it) → (_ALL, summary) of any kind; leaves the planned rows."""

    def __init__(self, options: ConvertOptions, folders: frozenset[str], staging: Staging) -> None:
        super().__init__(staging)
        self._options = options
        self._folders = folders
        self._planned = _counter(metrics.ROWS_PLANNED)
        self._rejected = _counter(metrics.ROWS_REJECTED)
        self._duplicates = _counter(metrics.ROWS_DUPLICATE)
        self._merged = _counter(metrics.ROWS_MERGED)
        self._dropped = _counter(metrics.ROWS_DROPPED)
        self._existing = _counter(metrics.ROWS_EXISTING)

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._resolve(*element))

    def _resolve(self, bucket: int, grouped: Iterable[Any]) -> Iterator[Any]:
        parts = list(grouped)
        options = self._options
        planned, summary = resolve_bucket(
            bucket,
            chain.from_iterable(part.rows for part in parts if isinstance(part, RowBlock)),
            options=options,
            task=task_for(options),
            drop_unnamed=any(isinstance(part, SplitsNamed) for part in parts),
            infos=partial(payload_infos, options=options),
            content_keys=partial(content_keys, options=options),
            known=chain.from_iterable(part.rows for part in parts if isinstance(part, KnownBlock)),
            folders=self._folders,
        )
        self._count(summary)
        yield _ALL, self._staging.write_bucket(bucket, planned)
        yield _ALL, summary
        for part in parts:
            if isinstance(part, ReadSummary):
                yield _ALL, part

    def _count(self, summary: BucketSummary) -> None:
        planned = sum(summary.rows.values())
        self._planned.inc(planned)
        self._rejected.inc(len(summary.rejects))
        self._duplicates.inc(summary.duplicates)
        self._merged.inc(summary.merged)
        self._dropped.inc(summary.dropped)
        self._existing.inc(summary.existing)
        self._heartbeat.add(0, planned, len(summary.rejects))


class MakePlan(_Step):
    """(_ALL, all summaries) → (ShardKey, ShardOutline); leaves the plan."""

    def __init__(self, options: ConvertOptions, base: Base, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options
        self._base = base

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._make(*element))

    def _make(
        self, _: int, summaries: Iterable[ReadSummary | BucketSummary | BucketFile]
    ) -> Iterator[tuple[ShardKey, ShardOutline]]:
        summaries = list(summaries)
        read = [item for item in summaries if isinstance(item, ReadSummary)]
        resolved = [item for item in summaries if isinstance(item, BucketSummary)]
        files = [item for item in summaries if isinstance(item, BucketFile)]
        parse_rejects = [item for summary in read for item in summary.rejects]
        plan = make_plan(
            resolved,
            read=sum(summary.read for summary in read),
            parse_rejected=Counter(item.code for item in parse_rejects),
            adjusted=sum((Counter(summary.adjusted) for summary in read), Counter()),
            options=self._options,
            base=self._base,
        )
        rejects = parse_rejects + [item for summary in resolved for item in summary.rejects]
        self._staging.write_plan(plan, rejects)
        # With too many rejects the run fails anyway: do not read a single payload for it.
        if not too_many(plan.rejects, plan.read, self._options):
            for outline in cut(plan, files):
                yield (outline.split, outline.index), outline


class WorkOnShards(_Step):
    """(ShardKey, [ShardOutline]) → the shard's file name; the rest goes to staging."""

    def __init__(self, work: Callable[..., ShardResult], staging: Staging) -> None:
        super().__init__(staging)
        self._work = work
        self._vocabulary: Vocabulary | None = None
        self._examples = _counter(metrics.EXAMPLES_WRITTEN)
        self._rejects = _counter(metrics.PAYLOADS_REJECTED)
        self._bytes = _counter(metrics.PAYLOAD_BYTES)
        self._shard_bytes = _counter(metrics.SHARD_BYTES)

    def process(self, element: Any) -> Any:  # noqa: D102
        [outline] = element[1]
        return self._reported(self._run(outline))

    def _run(self, outline: ShardOutline) -> Iterator[str]:
        if self._vocabulary is None:
            self._vocabulary = self._staging.read_vocabulary()
        task = self._staging.read_task(outline)
        heartbeat = self._staging.heartbeat(task.split, task.index)
        result = self._work(task, vocabulary=self._vocabulary, on_progress=heartbeat.beat)
        size = sum(row.bytes for row in task.rows)
        heartbeat.finish(result.shard.examples, len(result.rejects), size)
        self._staging.write_result(result, task.index)
        self._examples.inc(result.shard.examples)
        self._rejects.inc(len(result.rejects))
        self._bytes.inc(size)
        self._shard_bytes.inc(result.shard.bytes)
        yield result.shard.file


def _counter(name: str) -> Any:
    return Metrics.counter(metrics.NAMESPACE, name)


def _summary_of_any_bucket(element: Any) -> Iterator[tuple[int, ReadSummary]]:
    if isinstance(element[1], ReadSummary):
        yield _ALL, element[1]


def _tell_buckets(element: Any, buckets: int) -> Iterator[tuple[int, SplitsNamed]]:
    """(_ALL, [ReadSummary]) → word to every bucket if any row names a split."""
    if any(summary.named for summary in element[1]):
        for bucket in range(buckets):
            yield bucket, SplitsNamed()
