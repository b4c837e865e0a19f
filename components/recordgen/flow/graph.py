"""The graph of a conversion: rows and tasks travel along it, never payloads.

files ──ReadRows──────▶ (bucket, RowBlock | ReadSummary) ─┐
shards ─ReadExisting──▶ (bucket, KnownBlock) ─────────────┴─group─▶ ResolveBuckets ─▶ staging
                                                                          │             │
       (ALL, BucketSummary | BucketFile | ReadSummary) ◀─────────────────┘             │
                            │                                                           │
                          group ─▶ MakePlan ─▶ (shard, ShardOutline)                    │ rows
                                                         │                              │
                                                       group ─▶ WriteShards ◀───────────┘
                                                                     └─▶ staging

With ``duplicates`` or ``stratify``, all rows together decide before any bucket is resolved:

(bucket, …) ─SettleBuckets─▶ (ALL, SettledFile | ReadSummary) ─group─▶ DecideTogether
                                                                            │
                   ResolveBuckets ◀─group─ (bucket, SettledFile | ReadSummary)

The rows of a bucket wait in the staging folder until the plan says whose they are.
What a step must know travels by key, never as a side input, and a step has one output: Dask's
runner works a side input out anew for each part of the work, and hands all outputs of a step to
whoever takes one of them. Every step costs a small run a hundredth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from recordgen import storage
from recordgen.dataset.manifest import read_vocabulary
from recordgen.errors import UsageError
from recordgen.flow.carrier import Carrier, Each, Flow
from recordgen.flow.steps import (
    DecideTogether,
    MakePlan,
    ReadExisting,
    ReadRows,
    ResolveBuckets,
    SettleBuckets,
    WorkOnShards,
    summaries_in,
)
from recordgen.options import ConvertOptions
from recordgen.planning.appending import Existing
from recordgen.planning.messages import ReadSummary, SplitsNamed
from recordgen.planning.plan import Base
from recordgen.runs.commit import Run
from recordgen.runs.resume import compare_shard, keep_or_write_shard
from recordgen.runs.staging import Staging
from recordgen.shards.task import ShardResult
from recordgen.shards.write import check_shard, write_shard
from recordgen.sources.source import ROW_BYTES, Source
from recordgen.tasks import task_for

# A bucket's rows are held in memory together, so small sources have small ones; of large ones, each
# takes so many bytes of import file.
_SMALL_BUCKET_BYTES, _SMALL_BUCKETS = 100_000, 16
_BUCKET_BYTES = 2_000_000
_MAX_BUCKETS = 4096


def plan_rows(
    carrier: Carrier,
    source: Source,
    options: ConvertOptions,
    staging: Staging,
    existing: Existing | None = None,
) -> Flow:
    """Build the planning half.

    Returns:
        (ShardKey, [ShardOutline]) for every shard; with too many rejects so far, nothing. The
        rows and the whole plan are left in ``staging``.
    """
    buckets = _buckets(source, existing)
    folder = existing.folder if existing else storage.folder_of(source.names[0])
    folders = existing.folders if existing else frozenset()
    are_several = len(source.files) + len(source.rows) > 1
    sources = carrier.start("ListSources", source.parts(), spread=are_several)
    # ImportFile | (RowBatch, …) → (bucket, RowBlock | ReadSummary)
    read = sources.through("ReadRows", ReadRows(options, buckets, folder, staging))
    others: list[Flow] = []
    if options.missing_split == "drop":  # who drops rows without a split waits for all others
        read, again = read.twice()
        summaries = again.through("ReadSummaries", Each(_summaries, staging))
        tell = Each(partial(_tell_buckets, buckets=buckets), staging)
        # (ALL, [ReadSummary]) → (bucket, SplitsNamed)
        others.append(summaries.grouped("GatherNamed").through("TellBuckets", tell))
    if existing is not None:
        there = carrier.start("ListExisting", existing.shards, spread=True)  # ExistingShard
        known = ReadExisting(options, buckets, folder, staging)
        others.append(there.through("ReadExisting", known))  # (bucket, KnownBlock)
    together = read.merged("RowsAndMore", others) if others else read
    by_bucket = together.grouped("GroupByBucket")
    if options.decides_together:
        settle = SettleBuckets(options, folders, staging)
        by_bucket = (
            by_bucket.through("SettleBuckets", settle)  # (ALL, SettledFile | ReadSummary)
            .grouped("GatherSettled")
            .through("DecideTogether", DecideTogether(options, staging))
            .grouped("SpreadBuckets")  # (bucket, [SettledFile | ReadSummary])
        )
    plan = MakePlan(options, _base(options, existing), staging)
    return (
        by_bucket.through("ResolveBuckets", ResolveBuckets(options, folders, staging))
        .grouped("GatherSummaries")  # (ALL, [BucketSummary | BucketFile | ReadSummary])
        .through("MakePlan", plan)
        .grouped("SpreadShards")  # (ShardKey, [ShardOutline])
    )


def _base(options: ConvertOptions, existing: Existing | None) -> Base:
    """Return what the plan adds to: a dataset, or the labels of one."""
    if existing is not None:
        return existing.base
    if not options.vocabulary:
        return Base()
    task = task_for(options)
    if not task.has_labels:
        raise UsageError(
            f"vocabulary={options.vocabulary} numbers labels, and these {task.noun}s have none; "
            f"leave it out"
        )
    return Base(vocabulary=read_vocabulary(options.vocabulary))


def _buckets(source: Source, existing: Existing | None) -> int:
    """Return the number of buckets, on which the plan does not depend."""
    size = source.bytes + (existing.dataset.examples * ROW_BYTES if existing else 0)
    few = min(_SMALL_BUCKETS, size // _SMALL_BUCKET_BYTES)
    return max(1, few, min(_MAX_BUCKETS, size // _BUCKET_BYTES))


def write_shards(shards: Flow, options: ConvertOptions, run: Run) -> Flow:
    """Write every shard into the run's staging folder, or keep it; gives shard names."""
    work: Callable[..., ShardResult] = partial(
        write_shard, target=run.staging.root, options=options
    )
    if run.leftovers:
        work = partial(
            keep_or_write_shard, staging=run.staging, leftovers=run.leftovers, options=options
        )
    return shards.through("WriteShards", WorkOnShards(work, run.staging))


def check_shards(shards: Flow, options: ConvertOptions, staging: Staging) -> Flow:
    """Check every shard and write nothing but its result; gives shard names."""
    work = partial(check_shard, options=options)
    return shards.through("CheckShards", WorkOnShards(work, staging))


def compare_shards(shards: Flow, options: ConvertOptions, output: str, staging: Staging) -> Flow:
    """Check every shard, and the file in ``output`` that is its own; gives shard names."""
    work = partial(compare_shard, output=output, options=options)
    return shards.through("CompareShards", WorkOnShards(work, staging))


def _summaries(element: Any) -> Iterator[tuple[int, ReadSummary]]:
    return summaries_in(element[1:])


def _tell_buckets(element: Any, buckets: int) -> Iterator[tuple[int, SplitsNamed]]:
    """(ALL, [ReadSummary]) → word to every bucket if any row names a split."""
    if any(summary.named for summary in element[1]):
        for bucket in range(buckets):
            yield bucket, SplitsNamed()
