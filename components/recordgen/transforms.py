"""The Beam pipeline: it carries rows and tasks, never payloads.

files ─ReadRows─▶ (bucket, RowBlock) ─group─▶ ResolveBuckets ─▶ PlannedBucket ─┐
shards ─ReadExisting─▶ (bucket, KnownBlock) ─┘      │                           │
                                                    │ summaries                 │
                                                    ▼                           ▼
                                                  Plan ──────────────▶ CutIntoShards
                                                                                │
                  ((split, label, shard), [PlannedBlock]) ◀─group─ (…, PlannedBlock)
                                      │
                                  WriteShards: a ShardTask each ─▶ staging
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics

from recordgen import metrics, storage
from recordgen.appending import Existing, ExistingShard, known_rows
from recordgen.errors import PayloadError, RecordgenError
from recordgen.fetching import content_key, payload_info
from recordgen.options import ConvertOptions
from recordgen.planning import (
    Base,
    BucketSummary,
    Group,
    KnownRow,
    PlacedRow,
    Plan,
    PlannedRow,
    bucket_of,
    make_plan,
    resolve_bucket,
    shard_rows,
    too_many,
)
from recordgen.resuming import compare_shard, keep_or_write_shard
from recordgen.rows import Reject, Row, placing
from recordgen.runs import Run
from recordgen.shards import (
    ShardResult,
    ShardTask,
    check_shard,
    write_shard,
)
from recordgen.sources import ImportFile, read_rows
from recordgen.staging import Staging

# Rows cross Beam in blocks: one pickle for many rows is what makes a million of them cheap. Many
# buckets share the rows that are read, so more must be read for blocks worth it.
_BLOCK_ROWS = 10_000
_BLOCK_ROWS_PER_BUCKET = 50

# Bytes of import file per bucket; a bucket's rows are held in memory together.
_BUCKET_BYTES = 2_000_000
_ROW_BYTES = 100
_MAX_BUCKETS = 4096

# Object stores answer in tens of milliseconds, so ask for many sizes at once.
_REMOTE_THREADS = 64

_SUMMARY = "summary"
_T = TypeVar("_T")


# Beam's coder pickles each element of a list on its own, but an object in one go; and plain
# tuples, which these become on their way, several times as fast as named ones.
@dataclass(frozen=True)
class RowBlock:
    """Placed rows that travel together."""

    rows: tuple[PlacedRow, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _row_block, (list(map(tuple, self.rows)),)


@dataclass(frozen=True)
class KnownBlock:
    """Examples of the dataset that is appended to, as they travel together."""

    rows: tuple[KnownRow, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _known_block, (list(map(tuple, self.rows)),)


@dataclass(frozen=True)
class PlannedBlock:
    """Planned rows that travel together, in order."""

    rows: tuple[PlannedRow, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _planned_block, (list(map(tuple, self.rows)),)


@dataclass(frozen=True)
class PlannedBucket:
    """The planned rows of one bucket by group, in order."""

    bucket: int
    groups: dict[Group, PlannedBlock]


def _row_block(rows: list[tuple[Any, ...]]) -> RowBlock:
    return RowBlock(tuple(map(PlacedRow._make, rows)))


def _known_block(rows: list[tuple[Any, ...]]) -> KnownBlock:
    return KnownBlock(tuple(map(KnownRow._make, rows)))


def _planned_block(rows: list[tuple[Any, ...]]) -> PlannedBlock:
    return PlannedBlock(tuple(map(PlannedRow._make, rows)))


@dataclass(frozen=True)
class ReadSummary:
    """What reading some rows came to: how many, whether any names a split, and rejects."""

    read: int = 0
    named: bool = False
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class Source:
    """Where rows come from: import files, or rows in memory (a DataFrame's).

    Attributes:
        files: import files.
        rows: blocks of rows.
        bytes: size of all of it, for the number of buckets.
    """

    files: tuple[ImportFile, ...] = ()
    rows: tuple[tuple[Row | Reject, ...], ...] = ()
    bytes: int = 0

    @classmethod
    def of_files(cls, files: Sequence[ImportFile]) -> Source:
        """Return import files as a source. Raises: StorageError."""
        return cls(files=tuple(files), bytes=sum(storage.size(file.path) for file in files))

    @classmethod
    def of_rows(cls, rows: Iterable[Row | Reject]) -> Source:
        """Return rows as a source."""
        waiting = iter(rows)
        blocks = tuple(iter(lambda: tuple(islice(waiting, _BLOCK_ROWS)), ()))
        return cls(rows=blocks, bytes=sum(map(len, blocks)) * _ROW_BYTES)

    @property
    def names(self) -> tuple[str, ...]:
        """What ``dataset.json`` says of the source."""
        return tuple(file.path for file in self.files) or ("DataFrame",)


def plan_rows(
    pipeline: beam.Pipeline,
    source: Source,
    options: ConvertOptions,
    staging: Staging,
    existing: Existing | None = None,
) -> tuple[beam.PCollection, beam.PCollection]:
    """Build the planning half.

    Args:
        pipeline: gets the steps.
        source: where rows come from.
        options: how to plan.
        staging: where the plan is left.
        existing: the dataset that is appended to.

    Returns:
        PlannedBuckets, and the Plan (one element), which is also left in ``staging``.
    """
    buckets = _buckets(source, existing)
    # Create spreads several elements over the workers; one needs no shuffle.
    read = (
        pipeline
        | "ListSources" >> beam.Create([*source.files, *source.rows])  # ImportFile | (Row, …)
        | "ReadRows"
        >> beam.ParDo(ReadRows(options.seed, buckets, staging)).with_outputs(_SUMMARY, main="rows")
    )  # rows: (bucket, RowBlock); summary: ReadSummary
    # Only who drops rows without a split has to wait for all rows to be read.
    named = [beam.pvalue.AsIter(read[_SUMMARY])] if options.missing_split == "drop" else []
    rows = read.rows
    if existing is not None:
        known = (
            pipeline
            | "ListExisting" >> beam.Create(existing.shards)  # ExistingShard
            | "ReadExisting" >> beam.ParDo(ReadExisting(options.seed, buckets, staging))
        )  # (bucket, KnownBlock)
        rows = (rows, known) | "WithExisting" >> beam.Flatten()
    resolved = (
        rows
        | "GroupByBucket" >> beam.GroupByKey()  # (bucket, [RowBlock | KnownBlock])
        | "ResolveBuckets"
        >> beam.ParDo(ResolveBuckets(options, staging), *named).with_outputs(
            _SUMMARY, main="planned"
        )
    )  # planned: PlannedBucket; summary: BucketSummary
    plan = (
        pipeline
        | "StartPlan" >> beam.Impulse()
        | "MakePlan"
        >> beam.ParDo(
            MakePlan(options, existing.base if existing else Base(), staging),
            beam.pvalue.AsList(read[_SUMMARY]),
            beam.pvalue.AsList(resolved[_SUMMARY]),
        )
    )  # Plan
    return resolved.planned, plan


def _buckets(source: Source, existing: Existing | None) -> int:
    """Return the number of buckets, on which the plan does not depend."""
    size = source.bytes + (existing.dataset.examples * _ROW_BYTES if existing else 0)
    return max(1, min(_MAX_BUCKETS, size // _BUCKET_BYTES))


def cut_into_shards(
    planned: beam.PCollection, plan: beam.PCollection, options: ConvertOptions
) -> beam.PCollection:
    """Gather the PlannedBlocks of each shard. Too many rejects so far: no shard at all."""
    runs = planned | "CutIntoShards" >> beam.ParDo(
        CutIntoShards(options), beam.pvalue.AsSingleton(plan)
    )  # ((split, label, shard), PlannedBlock)
    # A payload larger than a shard leaves others without rows; their numbers must not be missing.
    shards = plan | "ListShards" >> beam.FlatMap(_list_shards, options)
    # ((split, label, shard), PlannedBlock without rows)
    return (
        (runs, shards)
        | "AllShards" >> beam.Flatten()
        | "GroupByShard" >> beam.GroupByKey()  # ((split, label, shard), [PlannedBlock])
    )


def write_shards(
    shards: beam.PCollection, plan: beam.PCollection, options: ConvertOptions, run: Run
) -> beam.PCollection:
    """Write every shard into the run's staging folder, or keep it; gives shard names."""
    work: Callable[..., ShardResult] = partial(
        write_shard, target=run.staging.root, options=options
    )
    if run.leftovers:
        work = partial(
            keep_or_write_shard, staging=run.staging, leftovers=run.leftovers, options=options
        )
    return shards | "WriteShards" >> beam.ParDo(
        WorkOnShards(work, run.staging), beam.pvalue.AsSingleton(plan)
    )


def check_shards(
    shards: beam.PCollection, plan: beam.PCollection, options: ConvertOptions, staging: Staging
) -> beam.PCollection:
    """Check every shard and write nothing but its result; gives shard names."""
    work = partial(check_shard, options=options)
    return shards | "CheckShards" >> beam.ParDo(
        WorkOnShards(work, staging), beam.pvalue.AsSingleton(plan)
    )


def compare_shards(
    shards: beam.PCollection,
    plan: beam.PCollection,
    options: ConvertOptions,
    output: str,
    staging: Staging,
) -> beam.PCollection:
    """Check every ShardTask, and the file in ``output`` that is its own; gives shard names."""
    work = partial(compare_shard, output=output, options=options)
    return shards | "CompareShards" >> beam.ParDo(
        WorkOnShards(work, staging), beam.pvalue.AsSingleton(plan)
    )


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
    """Rows read since the last block was handed on."""

    buckets: dict[int, list[PlacedRow]] = field(default_factory=dict)
    read: int = 0
    named: bool = False
    rejects: list[Reject] = field(default_factory=list)

    def flush(self) -> Iterator[Any]:
        for bucket, rows in self.buckets.items():
            yield bucket, RowBlock(tuple(rows))
        summary = ReadSummary(self.read, self.named, tuple(self.rejects))
        yield beam.pvalue.TaggedOutput(_SUMMARY, summary)


class ReadRows(_PlanningStep):
    """ImportFile or rows → (bucket, RowBlock), and ReadSummary aside."""

    def __init__(self, seed: int, buckets: int, staging: Staging) -> None:
        super().__init__(staging)
        self._seed = seed  # a place's hasher does not travel
        self._buckets = buckets
        self._block_rows = max(_BLOCK_ROWS, buckets * _BLOCK_ROWS_PER_BUCKET)
        self._rows = _counter(metrics.ROWS_READ)
        self._rejected = _counter(metrics.ROWS_REJECTED)

    def process(self, source: Any) -> Any:  # noqa: D102
        rows = read_rows(source) if isinstance(source, ImportFile) else iter(source)
        return self._reported(self._blocks(rows))

    def _blocks(self, rows: Iterator[Row | Reject]) -> Iterator[Any]:
        place = placing(self._seed)
        block = _Block()
        for row in rows:
            block.read += 1
            if isinstance(row, Reject):
                block.rejects.append(row)
            else:
                order, draw = place(row.uri)
                bucket = bucket_of(order, self._buckets)
                block.buckets.setdefault(bucket, []).append(PlacedRow(order, draw, *row))
                block.named = block.named or row.split is not None
            if block.read == self._block_rows:
                self._count(block)
                yield from block.flush()
                block = _Block()
        self._count(block)
        yield from block.flush()

    def _count(self, block: _Block) -> None:
        self._rows.inc(block.read)
        self._rejected.inc(len(block.rejects))
        self._heartbeat.add(block.read, 0, len(block.rejects))


class ReadExisting(_Step):
    """ExistingShard → (bucket, KnownBlock)."""

    def __init__(self, seed: int, buckets: int, staging: Staging) -> None:
        super().__init__(staging)
        self._seed = seed
        self._buckets = buckets

    def process(self, shard: ExistingShard) -> Any:  # noqa: D102
        return self._reported(self._blocks(shard))

    def _blocks(self, shard: ExistingShard) -> Iterator[Any]:
        rows = known_rows(shard, self._seed)
        while some := list(islice(rows, _BLOCK_ROWS)):
            blocks: dict[int, list[KnownRow]] = {}
            for row in some:
                blocks.setdefault(bucket_of(row.order, self._buckets), []).append(row)
            for bucket, known in blocks.items():
                yield bucket, KnownBlock(tuple(known))


class ResolveBuckets(_PlanningStep):
    """(bucket, [RowBlock | KnownBlock]) → PlannedBucket, and BucketSummary aside."""

    def __init__(self, options: ConvertOptions, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options
        self._planned = _counter(metrics.ROWS_PLANNED)
        self._rejected = _counter(metrics.ROWS_REJECTED)
        self._duplicates = _counter(metrics.ROWS_DUPLICATE)
        self._dropped = _counter(metrics.ROWS_DROPPED)
        self._existing = _counter(metrics.ROWS_EXISTING)

    def process(self, element: Any, read: Iterable[ReadSummary] = ()) -> Any:  # noqa: D102
        drop_unnamed = any(summary.named for summary in read)
        return self._reported(self._resolve(element, drop_unnamed))

    def _resolve(self, element: Any, drop_unnamed: bool) -> Iterator[Any]:
        bucket, grouped = element
        blocks = list(grouped)
        options = self._options
        planned, summary = resolve_bucket(
            bucket,
            chain.from_iterable(block.rows for block in blocks if isinstance(block, RowBlock)),
            options=options,
            drop_unnamed=drop_unnamed,
            infos=partial(_ask_all, partial(payload_info, options=options)),
            content_keys=partial(_ask_all, content_key),
            known=chain.from_iterable(
                block.rows for block in blocks if isinstance(block, KnownBlock)
            ),
        )
        self._count(summary)
        yield PlannedBucket(
            bucket, {group: PlannedBlock(tuple(rows)) for group, rows in planned.items()}
        )
        yield beam.pvalue.TaggedOutput(_SUMMARY, summary)

    def _count(self, summary: BucketSummary) -> None:
        planned = sum(summary.rows.values())
        self._planned.inc(planned)
        self._rejected.inc(len(summary.rejects))
        self._duplicates.inc(summary.duplicates)
        self._dropped.inc(summary.dropped)
        self._existing.inc(summary.existing)
        self._heartbeat.add(0, planned, len(summary.rejects))


class MakePlan(_Step):
    """An impulse + all summaries → Plan."""

    def __init__(self, options: ConvertOptions, base: Base, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options
        self._base = base

    def process(  # noqa: D102
        self, _: bytes, read: Sequence[ReadSummary], resolved: Sequence[BucketSummary]
    ) -> Any:
        return self._reported(self._make(read, resolved))

    def _make(
        self, read: Sequence[ReadSummary], resolved: Sequence[BucketSummary]
    ) -> Iterator[Plan]:
        parse_rejects = [item for summary in read for item in summary.rejects]
        plan = make_plan(
            resolved,
            read=sum(summary.read for summary in read),
            parse_rejected=Counter(item.code for item in parse_rejects),
            options=self._options,
            base=self._base,
        )
        rejects = parse_rejects + [item for summary in resolved for item in summary.rejects]
        self._staging.write_plan(plan, rejects)
        yield plan


class CutIntoShards(beam.DoFn):
    """PlannedBucket → ((split, label, shard), PlannedBlock); the label is the group's."""

    def __init__(self, options: ConvertOptions) -> None:
        self._options = options

    def process(self, bucket: PlannedBucket, plan: Plan) -> Any:  # noqa: D102
        # With too many rejects the run fails anyway: do not read a single payload for it.
        if not too_many(plan.rejects, plan.read, self._options):
            for (split, label), block in bucket.groups.items():
                group = plan.splits[split].groups[label]
                for shard, run in shard_rows(bucket.bucket, block.rows, group):
                    yield (split, label, shard), PlannedBlock(tuple(run))


class WorkOnShards(_Step):
    """((split, label, shard), [PlannedBlock]) → the shard's file name; the rest goes to staging."""

    def __init__(self, work: Callable[..., ShardResult], staging: Staging) -> None:
        super().__init__(staging)
        self._work = work
        self._examples = _counter(metrics.EXAMPLES_WRITTEN)
        self._rejects = _counter(metrics.PAYLOADS_REJECTED)
        self._bytes = _counter(metrics.PAYLOAD_BYTES)
        self._shard_bytes = _counter(metrics.SHARD_BYTES)

    def process(self, element: Any, plan: Plan) -> Any:  # noqa: D102
        return self._reported(self._run(_to_task(element, plan), plan))

    def _run(self, task: ShardTask, plan: Plan) -> Iterator[str]:
        heartbeat = self._staging.heartbeat(task.split, task.index)
        result = self._work(task, vocabulary=plan.vocabulary, on_progress=heartbeat.beat)
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


def _to_task(element: Any, plan: Plan) -> ShardTask:
    (split, label, shard), blocks = element
    rows = sorted((row for block in blocks for row in block.rows), key=_order)
    return ShardTask(split, label, shard, plan.splits[split].shards, tuple(rows))


def _list_shards(plan: Plan, options: ConvertOptions) -> Iterator[Any]:
    if not too_many(plan.rejects, plan.read, options):
        for split, cut in plan.splits.items():
            for label, group in cut.groups.items():
                for shard in range(group.first, group.first + group.shards):
                    yield (split, label, shard), PlannedBlock(())


def _order(row: PlannedRow) -> tuple[int, str, str]:
    return row.order, row.uri, row.source


def _ask_all(
    ask: Callable[[Row], storage.FileInfo | bytes | PayloadError], rows: Sequence[Row]
) -> Any:
    """Ask storage about every row's payload: many at once if any of them is far away."""
    if all(storage.is_local(storage.resolve(row.uri, row.source)) for row in rows):
        return map(ask, rows)
    with ThreadPoolExecutor(_REMOTE_THREADS) as pool:
        return list(pool.map(ask, rows))
