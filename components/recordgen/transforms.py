"""The Beam pipeline: it carries rows and tasks, never payloads.

files ─ReadRows─▶ (bucket, RowBlock) ─group─▶ ResolveBuckets ─▶ PlannedBucket ─┐
                                                    │ summaries                 │
                                                    ▼                           ▼
                                                  Plan ──────────────▶ CutIntoShards
                                                                                │
                           ShardTask ◀─group─ ((split, label, shard), PlannedBlock)
                                      │
                                  WriteShards ─▶ staging
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics

from recordgen import storage
from recordgen.errors import RecordgenError
from recordgen.fetching import content_keys, payload_infos
from recordgen.options import ConvertOptions
from recordgen.planning import (
    BucketSummary,
    Group,
    PlacedRow,
    Plan,
    PlannedRow,
    bucket_of,
    make_plan,
    resolve_bucket,
    shard_rows,
    too_many,
)
from recordgen.rows import Place, Reject, Row, place
from recordgen.shards import (
    ShardResult,
    ShardTask,
    check_shard,
    write_shard,
)
from recordgen.sources import ImportFile, read_rows
from recordgen.staging import Staging

# Rows cross Beam in blocks: one pickle for many rows is what makes a million of them cheap.
_BLOCK_ROWS = 10_000

# Bytes of import file per bucket; a bucket's rows are held in memory together.
_BUCKET_BYTES = 2_000_000
_ROW_BYTES = 100
_MAX_BUCKETS = 4096

_SUMMARY = "summary"
_T = TypeVar("_T")


# Beam's coder pickles each element of a list on its own, but an object in one go; and plain
# tuples, which these become on their way, several times as fast as named ones.
@dataclass(frozen=True)
class RowBlock:
    """Placed rows that travel together."""

    rows: tuple[PlacedRow, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _row_block, ([(*item.place, *item.row) for item in self.rows],)


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
    return RowBlock(tuple(PlacedRow(Place(*row[:2]), Row(*row[2:])) for row in rows))


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
    def buckets(self) -> int:
        """Number of buckets; the plan does not depend on it."""
        return max(1, min(_MAX_BUCKETS, self.bytes // _BUCKET_BYTES))

    @property
    def names(self) -> tuple[str, ...]:
        """What ``dataset.json`` says of the source."""
        return tuple(file.path for file in self.files) or ("DataFrame",)


def plan_rows(
    pipeline: beam.Pipeline, source: Source, options: ConvertOptions, staging: Staging
) -> tuple[beam.PCollection, beam.PCollection]:
    """Build the planning half.

    Returns:
        PlannedBuckets, and the Plan (one element), which is also left in ``staging``.
    """
    read = (
        pipeline
        | "ListSources" >> beam.Create([*source.files, *source.rows])  # ImportFile | (Row, …)
        | "SpreadSources" >> beam.Reshuffle()
        | "ReadRows"
        >> beam.ParDo(ReadRows(options.seed, source.buckets, staging)).with_outputs(
            _SUMMARY, main="rows"
        )
    )  # rows: (bucket, RowBlock); summary: ReadSummary
    # Only who drops rows without a split has to wait for all rows to be read.
    named = [beam.pvalue.AsIter(read[_SUMMARY])] if options.missing_split == "drop" else []
    resolved = (
        read.rows
        | "GroupByBucket" >> beam.GroupByKey()  # (bucket, [RowBlock])
        | "ResolveBuckets"
        >> beam.ParDo(ResolveBuckets(options, staging), *named).with_outputs(
            _SUMMARY, main="planned"
        )
    )  # planned: PlannedBucket; summary: BucketSummary
    plan = (
        pipeline
        | "StartPlan" >> beam.Create([None])
        | "MakePlan"
        >> beam.ParDo(
            MakePlan(options, staging),
            beam.pvalue.AsList(read[_SUMMARY]),
            beam.pvalue.AsList(resolved[_SUMMARY]),
        )
    )  # Plan
    return resolved.planned, plan


def cut_into_shards(
    planned: beam.PCollection, plan: beam.PCollection, options: ConvertOptions
) -> beam.PCollection:
    """Turn PlannedBuckets into ShardTasks. Too many rejects so far: no task at all."""
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
        | "MakeTasks" >> beam.Map(_to_task, beam.pvalue.AsSingleton(plan))  # ShardTask
    )


def write_shards(
    tasks: beam.PCollection, plan: beam.PCollection, options: ConvertOptions, staging: Staging
) -> beam.PCollection:
    """Write every ShardTask into ``staging``; gives shard names."""
    work = partial(write_shard, target=staging.root, options=options)
    return tasks | "WriteShards" >> beam.ParDo(
        WorkOnShards(work, staging), beam.pvalue.AsSingleton(plan)
    )


def check_shards(
    tasks: beam.PCollection, plan: beam.PCollection, options: ConvertOptions, staging: Staging
) -> beam.PCollection:
    """Check every ShardTask and write nothing but its result; gives shard names."""
    work = partial(check_shard, options=options)
    return tasks | "CheckShards" >> beam.ParDo(
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


class ReadRows(_Step):
    """ImportFile or rows → (bucket, RowBlock), and ReadSummary aside."""

    def __init__(self, seed: int, buckets: int, staging: Staging) -> None:
        super().__init__(staging)
        self._seed = seed
        self._buckets = buckets
        self._rows = Metrics.counter("recordgen", "rows_read")

    def process(self, source: Any) -> Any:  # noqa: D102
        rows = read_rows(source) if isinstance(source, ImportFile) else iter(source)
        return self._reported(self._blocks(rows))

    def _blocks(self, rows: Iterator[Row | Reject]) -> Iterator[Any]:
        block = _Block()
        for row in rows:
            block.read += 1
            if isinstance(row, Reject):
                block.rejects.append(row)
            else:
                where = place(self._seed, row.uri)
                bucket = bucket_of(where.order, self._buckets)
                block.buckets.setdefault(bucket, []).append(PlacedRow(where, row))
                block.named = block.named or row.split is not None
            if block.read == _BLOCK_ROWS:
                self._rows.inc(block.read)
                yield from block.flush()
                block = _Block()
        self._rows.inc(block.read)
        yield from block.flush()


class ResolveBuckets(_Step):
    """(bucket, [RowBlock]) → PlannedBucket, and BucketSummary aside."""

    def __init__(self, options: ConvertOptions, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options

    def process(self, element: Any, read: Iterable[ReadSummary] = ()) -> Any:  # noqa: D102
        drop_unnamed = any(summary.named for summary in read)
        return self._reported(self._resolve(element, drop_unnamed))

    def _resolve(self, element: Any, drop_unnamed: bool) -> Iterator[Any]:
        bucket, blocks = element
        options = self._options
        planned, summary = resolve_bucket(
            bucket,
            (row for block in blocks for row in block.rows),
            options=options,
            drop_unnamed=drop_unnamed,
            infos=partial(payload_infos, options=options),
            content_keys=partial(content_keys, options=options),
        )
        yield PlannedBucket(
            bucket, {group: PlannedBlock(tuple(rows)) for group, rows in planned.items()}
        )
        yield beam.pvalue.TaggedOutput(_SUMMARY, summary)


class MakePlan(_Step):
    """None + all summaries → Plan."""

    def __init__(self, options: ConvertOptions, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options

    def process(  # noqa: D102
        self, _: None, read: Sequence[ReadSummary], resolved: Sequence[BucketSummary]
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
    """ShardTask → the shard's file name; the result goes to the staging folder."""

    def __init__(self, work: Callable[..., ShardResult], staging: Staging) -> None:
        super().__init__(staging)
        self._work = work
        self._examples = Metrics.counter("recordgen", "examples_written")
        self._rejects = Metrics.counter("recordgen", "payloads_rejected")
        self._bytes = Metrics.counter("recordgen", "payload_bytes")

    def process(self, task: ShardTask, plan: Plan) -> Any:  # noqa: D102
        return self._reported(self._run(task, plan))

    def _run(self, task: ShardTask, plan: Plan) -> Iterator[str]:
        heartbeat = self._staging.heartbeat(task.split, task.index)
        result = self._work(task, vocabulary=plan.vocabulary, on_progress=heartbeat.beat)
        size = sum(row.bytes for row in task.rows)
        heartbeat.finish(result.shard.examples, len(result.rejects), size)
        self._staging.write_result(result, task.index)
        self._examples.inc(result.shard.examples)
        self._rejects.inc(len(result.rejects))
        self._bytes.inc(size)
        yield result.shard.file


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
