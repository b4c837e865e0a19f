"""The Beam pipeline: it carries rows and tasks, never payloads.

files ─ReadRows─▶ (bucket, RowBlock) ─group─▶ ResolveBuckets ─▶ (bucket, PlannedBucket) ─┐
          │                                         │                                     │
          └────────▶ summaries ─group─▶ MakePlan ◀──┘                                   group
                                            │                                             │
                                            ├─SendPlan─▶ (bucket, BucketPlan) ────────────┤
                                            │                                             ▼
                                            │                                       CutIntoShards
                                            │                                             │
                                            └─ListShards─▶ (shard, ListedShard) ────────┐ │
                                                                                        ▼ ▼
                                                       ShardTask ◀─group─ (shard, PlannedBlock)
                                                           │
                                                       WriteShards ─▶ staging

What a step must know travels by key, never as a side input, and a step has one output: Dask's
runner works a side input out anew for each part of the work, and hands all outputs of a step to
whoever takes one of them.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics

from recordgen import storage
from recordgen.errors import PayloadError, RecordgenError
from recordgen.fetching import content_key, payload_info
from recordgen.labels import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.planning import (
    BucketSummary,
    Group,
    GroupPlan,
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

# Object stores answer in tens of milliseconds, so ask for many sizes at once.
_REMOTE_THREADS = 64

# Dask's runner cuts the work into no more parts than there are to read: these make up the number.
_EMPTY_PARTS = 64

_T = TypeVar("_T")


# Rows travel as bytes: a runner that groups takes apart and packs again whatever it passes on.
@dataclass(frozen=True)
class RowBlock:
    """Placed rows that travel together."""

    data: bytes

    @classmethod
    def of(cls, rows: Iterable[PlacedRow]) -> RowBlock:
        """Pack rows."""
        return cls(pickle.dumps([(*item.place, *item.row) for item in rows]))

    @property
    def rows(self) -> list[PlacedRow]:
        """The rows."""
        return [PlacedRow(Place(*row[:2]), Row(*row[2:])) for row in pickle.loads(self.data)]


@dataclass(frozen=True)
class PlannedBlock:
    """Planned rows that travel together, in order."""

    data: bytes

    @classmethod
    def of(cls, rows: Iterable[PlannedRow]) -> PlannedBlock:
        """Pack rows."""
        return cls(pickle.dumps(list(map(tuple, rows))))

    @property
    def rows(self) -> list[PlannedRow]:
        """The rows."""
        return list(map(PlannedRow._make, pickle.loads(self.data)))


@dataclass(frozen=True)
class PlannedBucket:
    """The planned rows of one bucket by group, in order."""

    groups: dict[Group, PlannedBlock]


@dataclass(frozen=True)
class BucketPlan:
    """What the plan says of one bucket: how its groups are cut."""

    groups: dict[Group, GroupPlan]


@dataclass(frozen=True)
class ListedShard:
    """That a shard is to be written, also where it has no rows.

    Attributes:
        label: the one label of all its rows, as its group has it.
        count: number of shards in its split.
    """

    label: str | None
    count: int


@dataclass(frozen=True)
class SplitsNamed:
    """That some row names a split."""


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
    def paths(self) -> Iterator[str]:
        """Where the import files lie, or the payloads of rows in memory."""
        yield from (file.path for file in self.files)
        for row in chain.from_iterable(self.rows):
            if isinstance(row, Row):
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


def plan_rows(
    pipeline: beam.Pipeline, source: Source, options: ConvertOptions, staging: Staging
) -> tuple[beam.PCollection, beam.PCollection]:
    """Build the planning half.

    Returns:
        PlannedBuckets, and the Plan (one element), which is also left in ``staging``.
    """
    # Create spreads several sources over the workers by a shuffle, which one does not need.
    read = (
        pipeline
        | "ListSources"  # ImportFile | (Row, …)
        >> beam.Create(source.parts(), reshuffle=len(source.files) + len(source.rows) > 1)
        | "ReadRows" >> beam.ParDo(ReadRows(options.seed, source.buckets, staging))
    )  # (bucket, RowBlock | ReadSummary)
    if options.missing_split == "drop":  # who drops rows without a split waits for all others
        named = (
            read
            | "ForgetBuckets" >> beam.Values()
            | "ReadSummaries" >> beam.Filter(_is_a, ReadSummary)
            | "SummariesToOne" >> beam.WithKeys(0)
            | "GatherNamed" >> beam.GroupByKey()  # (0, [ReadSummary])
            | "TellBuckets" >> beam.FlatMap(_tell_buckets, source.buckets)  # (bucket, SplitsNamed)
        )
        read = (read, named) | "RowsAndNamed" >> beam.Flatten()
    resolved = (
        read
        | "GroupByBucket" >> beam.GroupByKey()  # (bucket, [RowBlock | ReadSummary | SplitsNamed])
        | "ResolveBuckets" >> beam.ParDo(ResolveBuckets(options, staging))
    )  # (bucket, PlannedBucket) | BucketSummary | ReadSummary
    planned = resolved | "PlannedBuckets" >> beam.Filter(_is_a, tuple)
    plan = (
        resolved
        | "Summaries" >> beam.Filter(_is_a, (BucketSummary, ReadSummary))
        | "ToOne" >> beam.WithKeys(0)
        | "GatherSummaries" >> beam.GroupByKey()  # (0, [BucketSummary | ReadSummary])
        | "MakePlan" >> beam.ParDo(MakePlan(options, staging))
    )  # Plan
    return planned, plan


def cut_into_shards(
    planned: beam.PCollection, plan: beam.PCollection, options: ConvertOptions
) -> beam.PCollection:
    """Turn PlannedBuckets into ShardTasks. Too many rejects so far: no task at all."""
    # With too many rejects the run fails anyway: do not read a single payload for it.
    usable = plan | "StopIfTooMany" >> beam.Filter(_is_usable, options)
    cuts = usable | "SendPlan" >> beam.FlatMap(_by_bucket)  # (bucket, BucketPlan)
    runs = (
        (planned, cuts)
        | "BucketsAndPlan" >> beam.Flatten()
        | "JoinPlan" >> beam.GroupByKey()  # (bucket, [PlannedBucket | BucketPlan])
        | "CutIntoShards" >> beam.FlatMap(_cut_bucket)
    )  # ((split, shard), PlannedBlock)
    # A payload larger than a shard leaves others without rows; their numbers must not be missing.
    shards = usable | "ListShards" >> beam.FlatMap(_list_shards)
    # ((split, shard), ListedShard)
    return (
        (runs, shards)
        | "AllShards" >> beam.Flatten()
        | "GroupByShard" >> beam.GroupByKey()  # ((split, shard), [PlannedBlock | ListedShard])
        | "MakeTasks" >> beam.Map(_to_task)  # ShardTask
    )


def write_shards(
    tasks: beam.PCollection, options: ConvertOptions, staging: Staging
) -> beam.PCollection:
    """Write every ShardTask into ``staging``; gives shard names."""
    work = partial(write_shard, target=staging.root, options=options)
    return tasks | "WriteShards" >> beam.ParDo(WorkOnShards(work, staging))


def check_shards(
    tasks: beam.PCollection, options: ConvertOptions, staging: Staging
) -> beam.PCollection:
    """Check every ShardTask and write nothing but its result; gives shard names."""
    work = partial(check_shard, options=options)
    return tasks | "CheckShards" >> beam.ParDo(WorkOnShards(work, staging))


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
            yield bucket, RowBlock.of(rows)
        # They all go to one place in the end, and there is always a first bucket.
        yield 0, ReadSummary(self.read, self.named, tuple(self.rejects))


class ReadRows(_Step):
    """ImportFile or rows → (bucket, RowBlock | ReadSummary)."""

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
    """(bucket, [RowBlock | …]) → (bucket, PlannedBucket) | BucketSummary; passes ReadSummaries."""

    def __init__(self, options: ConvertOptions, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._resolve(*element))

    def _resolve(self, bucket: int, parts: Iterable[Any]) -> Iterator[Any]:
        parts = list(parts)
        blocks = [part for part in parts if isinstance(part, RowBlock)]
        options = self._options
        planned, summary = resolve_bucket(
            bucket,
            (row for block in blocks for row in block.rows),
            options=options,
            drop_unnamed=any(isinstance(part, SplitsNamed) for part in parts),
            infos=partial(_ask_all, partial(payload_info, options=options)),
            content_keys=partial(_ask_all, content_key),
        )
        blocks_by_group = {group: PlannedBlock.of(rows) for group, rows in planned.items()}
        yield bucket, PlannedBucket(blocks_by_group)
        yield summary
        yield from (part for part in parts if isinstance(part, ReadSummary))


class MakePlan(_Step):
    """(0, all summaries) → Plan, which it also leaves in the staging folder."""

    def __init__(self, options: ConvertOptions, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._make(*element))

    def _make(self, _: int, summaries: Iterable[ReadSummary | BucketSummary]) -> Iterator[Plan]:
        summaries = list(summaries)
        read = [item for item in summaries if isinstance(item, ReadSummary)]
        resolved = [item for item in summaries if isinstance(item, BucketSummary)]
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


class WorkOnShards(_Step):
    """ShardTask → the shard's file name; the result goes to the staging folder."""

    def __init__(self, work: Callable[..., ShardResult], staging: Staging) -> None:
        super().__init__(staging)
        self._work = work
        self._vocabulary: Vocabulary | None = None
        self._examples = Metrics.counter("recordgen", "examples_written")
        self._rejects = Metrics.counter("recordgen", "payloads_rejected")
        self._bytes = Metrics.counter("recordgen", "payload_bytes")

    def process(self, task: ShardTask) -> Any:  # noqa: D102
        return self._reported(self._run(task))

    def _run(self, task: ShardTask) -> Iterator[str]:
        if self._vocabulary is None:
            self._vocabulary = self._staging.read_vocabulary()
        heartbeat = self._staging.heartbeat(task.split, task.index)
        result = self._work(task, vocabulary=self._vocabulary, on_progress=heartbeat.beat)
        size = sum(row.bytes for row in task.rows)
        heartbeat.finish(result.shard.examples, len(result.rejects), size)
        self._staging.write_result(result, task.index)
        self._examples.inc(result.shard.examples)
        self._rejects.inc(len(result.rejects))
        self._bytes.inc(size)
        yield result.shard.file


def _is_a(element: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(element, kind)


def _tell_buckets(element: Any, buckets: int) -> Iterator[tuple[int, SplitsNamed]]:
    """(0, [ReadSummary]) → word to every bucket if any row names a split."""
    _, summaries = element
    if any(summary.named for summary in summaries):
        for bucket in range(buckets):
            yield bucket, SplitsNamed()


def _is_usable(plan: Plan, options: ConvertOptions) -> bool:
    return not too_many(plan.rejects, plan.read, options)


def _by_bucket(plan: Plan) -> Iterator[tuple[int, BucketPlan]]:
    """Plan → what each bucket must know of it."""
    buckets: dict[int, dict[Group, GroupPlan]] = {}
    for split, cut in plan.splits.items():
        for label, group in cut.groups.items():
            for bucket, start in group.starts.items():
                mine = replace(group, starts={bucket: start})
                buckets.setdefault(bucket, {})[Group(split, label)] = mine
    for bucket, groups in buckets.items():
        yield bucket, BucketPlan(groups)


def _cut_bucket(element: Any) -> Iterator[tuple[tuple[str, int], PlannedBlock]]:
    """(bucket, [PlannedBucket, BucketPlan]) → runs of rows; no plan: nothing."""
    bucket, parts = element
    parts = list(parts)
    for plan in (part for part in parts if isinstance(part, BucketPlan)):
        [planned] = (part for part in parts if isinstance(part, PlannedBucket))
        for group, block in planned.groups.items():
            for shard, run in shard_rows(bucket, block.rows, plan.groups[group]):
                yield (group.split, shard), PlannedBlock.of(run)


def _list_shards(plan: Plan) -> Iterator[tuple[tuple[str, int], ListedShard]]:
    for split, cut in plan.splits.items():
        for label, group in cut.groups.items():
            for shard in range(group.first, group.first + group.shards):
                yield (split, shard), ListedShard(label, cut.shards)


def _to_task(element: Any) -> ShardTask:
    """((split, shard), [PlannedBlock | ListedShard]) → ShardTask."""
    (split, shard), parts = element
    parts = list(parts)
    [listed] = [part for part in parts if isinstance(part, ListedShard)]
    blocks = [part for part in parts if isinstance(part, PlannedBlock)]
    rows = sorted((row for block in blocks for row in block.rows), key=_order)
    return ShardTask(split, listed.label, shard, listed.count, tuple(rows))


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
