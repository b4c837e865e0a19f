"""The graph of a conversion. Rows and tasks travel along it, payloads never do.

files ──ReadRows──────▶ (bucket, RowBlock | ReadSummary) ─┐
groups ─ReadExisting──▶ (bucket, KnownBlock) ─────────────┴─group─▶ ResolveBuckets ─▶ staging
                                                                          │             │
       (ALL, BucketSummary | BucketFile | ReadSummary) ◀─────────────────┘             │
                            │                                                           │
                          group ─▶ MakePlan ─▶ (shard, ShardOutline)                    │ rows
                                                         │                              │
                                                       group ─▶ WriteShards ◀───────────┘
                                                                     └─▶ staging

With ``duplicates`` or ``stratify``, a step decides about all rows before any bucket is resolved:

(bucket, …) ─SettleBuckets─▶ (ALL, SettledFile | ReadSummary) ─group─▶ DecideTogether
                                                                            │
                   ResolveBuckets ◀─group─ (bucket, SettledFile | ReadSummary)

The rows of a bucket stay in the staging folder until the plan assigns them to shards.
Data for a step travels by key, never as a side input, and a step has one output: Dask's runner
computes a side input again for each partition, and passes all outputs of a step to the consumer of
any of them. Every step adds a hundredth of a second to a small run.

While a graph runs, its progress is read from the heartbeats in the staging folder, which works on
every runner. Beam's own metrics come late or, on some runners, only at the end.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from recordgen import storage
from recordgen.core import allowance
from recordgen.core.allowance import memory_limit
from recordgen.core.conversion import Conversion, RowSource
from recordgen.core.dataset.manifest import read_vocabulary
from recordgen.core.dataset.vocabulary import AUTO_LABELS, declared_vocabulary
from recordgen.core.flow import steps
from recordgen.core.flow.runner import Each, Flow, Runner
from recordgen.core.ordered import beside, default_threads
from recordgen.core.planning.appending import Existing
from recordgen.core.planning.plan import Base, ReadSummary, SplitsNamed
from recordgen.core.progress import (
    CHECKS,
    EXAMPLES_WRITTEN,
    PAYLOADS_REJECTED,
    PLANNING,
    SHARDS,
    Pace,
    Progress,
    Snapshot,
)
from recordgen.core.rows.row import ROW_BYTES
from recordgen.core.runs.commit import Run
from recordgen.core.runs.staging import ROW_FILES, SHARD_FILES, StagedPlan, Staging
from recordgen.core.shards import ShardResult, write_shard
from recordgen.errors import RecordgenError, UsageError
from recordgen.storage.access import forget_failures

# A bucket's rows are in memory together. Buckets are smaller for small sources; otherwise, each
# holds this many bytes of import file.
_SMALL_BUCKET_BYTES, _SMALL_BUCKETS = 100_000, 16
_BUCKET_BYTES = 2_000_000
_MAX_BUCKETS = 4096

# More threads of a process mostly wait for the interpreter's lock.
_THREADS_PER_PROCESS = 4

# What a process may take: 150 MB, and the payloads in flight.
_PROCESS_BYTES = 500_000_000


def plan_rows(
    runner: Runner,
    source: RowSource,
    conversion: Conversion,
    staging: Staging,
    existing: Existing | None = None,
    parts: int = 0,
) -> Flow:
    """Build the planning half of the graph.

    Returns:
        (ShardKey, [ShardOutline]) for every shard, or nothing if there are too many rejects, or if
        the shards are divided among ``parts``. The rows, the plan and the parts are written to
        ``staging``.
    """
    buckets = bucket_count(source, existing)
    folder = existing.folder if existing else storage.folder_of(source.names[0])
    task, splits, files = conversion.task, conversion.splits, source.parts()
    parts_read = allowance.while_reading(files, source.bytes)
    sources = runner.start("ListSources", parts_read, spread=len(files) > 1)
    step = steps.ReadRows(
        task, splits, conversion.reader, conversion.store, buckets, folder, staging
    )
    read = sources.through("ReadRows", step)  # a part → (bucket, RowBlock | ReadSummary)
    others: list[Flow] = []
    if splits.drops_unnamed:  # it depends on whether any row of the run names a split
        read, again = read.twice()
        summaries = again.through("ReadSummaries", Each(_summaries, staging))
        tell = Each(partial(_tell_buckets, buckets=buckets), staging)
        # (ALL, [ReadSummary]) → (bucket, SplitsNamed)
        others.append(summaries.grouped("GatherNamed").through("TellBuckets", tell))
    if existing is not None:
        groups = runner.start("ListExisting", existing.groups, spread=True)  # ExistingGroup
        known = steps.ReadExisting(existing.files, task, splits.seed, buckets, folder, staging)
        others.append(groups.through("ReadExisting", known))  # (bucket, KnownBlock)
    together = read.merged("RowsAndMore", others) if others else read
    by_bucket = together.grouped("GroupByBucket")
    if splits.decides_together:
        settle = steps.SettleBuckets(conversion, staging)
        by_bucket = (
            by_bucket.through("SettleBuckets", settle)  # (ALL, SettledFile | ReadSummary)
            .grouped("GatherSettled")
            .through("DecideTogether", steps.DecideTogether(conversion, staging))
            .grouped("SpreadBuckets")  # (bucket, [SettledFile | ReadSummary])
        )
    plan = steps.MakePlan(conversion, _base(conversion, existing, source.classes), staging, parts)
    return (
        by_bucket.through("ResolveBuckets", steps.ResolveBuckets(conversion, staging))
        .grouped("GatherSummaries")  # (ALL, [BucketSummary | BucketFile | ReadSummary])
        .through("MakePlan", plan)
        .grouped("SpreadShards")  # (ShardKey, [ShardOutline])
    )


def _base(conversion: Conversion, existing: Existing | None, classes: Sequence[str]) -> Base:
    """Return the dataset or the labels that the plan adds to, if any.

    ``classes``: the classes that the source declares, which keep their numbers unless options
    number the labels.
    """
    if existing is not None:
        return existing.base
    labels, task = conversion.labels, conversion.task
    if not labels.vocabulary:
        is_free = classes and labels.mode == AUTO_LABELS
        return Base(vocabulary=declared_vocabulary(classes)) if is_free else Base()
    if task.labelling is None:
        raise UsageError(
            f"vocabulary={labels.vocabulary} numbers labels, but these {task.noun}s have none; "
            f"remove vocabulary"
        )
    return Base(vocabulary=read_vocabulary(labels.vocabulary))


def bucket_count(source: RowSource, existing: Existing | None) -> int:
    """Return the number of buckets, which does not affect the plan."""
    size = source.bytes + (existing.dataset.examples * ROW_BYTES if existing else 0)
    few = min(_SMALL_BUCKETS, size // _SMALL_BUCKET_BYTES)
    return max(1, few, min(_MAX_BUCKETS, size // _BUCKET_BYTES))


def write_shards(shards: Flow, conversion: Conversion, run: Run) -> Flow:
    """Write every shard into the run's staging folder, or keep it; returns file names."""
    work: Callable[..., ShardResult] = partial(
        write_shard, target=run.staging.root, conversion=conversion
    )
    if run.leftovers or run.in_parts:
        from recordgen.core.runs.commit import keep_or_write_shard  # a first run keeps none

        work = partial(
            keep_or_write_shard,
            staging=run.staging,
            leftovers=run.leftovers,
            conversion=conversion,
        )
    # A worker of a part may be one of several on its machine, so only --threads gives it processes.
    processes = 1 if run.in_parts and not conversion.threads else _processes(conversion)
    return shards.through("WriteShards", steps.WorkOnShards(work, run.staging, processes))


def check_shards(shards: Flow, conversion: Conversion, staging: Staging) -> Flow:
    """Check every shard and write only its result; returns file names."""
    work = partial(write_shard, target="", conversion=conversion)
    return shards.through("CheckShards", steps.WorkOnShards(work, staging, _processes(conversion)))


def compare_shards(shards: Flow, conversion: Conversion, output: str, staging: Staging) -> Flow:
    """Check every shard, and compare it with its file in ``output``; returns file names."""
    from recordgen.core.runs.commit import compare_shard  # only a finished output has others

    work = partial(compare_shard, output=output, conversion=conversion)
    return shards.through(
        "CompareShards", steps.WorkOnShards(work, staging, _processes(conversion))
    )


def _processes(conversion: Conversion) -> int:
    """Return the processes among which a machine divides its threads: they share no lock."""
    if storage.has_private_files():
        return 1
    return processes_for(conversion.threads or default_threads(), memory_limit())


def processes_for(threads: int, memory: int) -> int:
    """Return how many processes some threads are worth, with ``memory`` bytes for all of them."""
    return max(1, min(threads // _THREADS_PER_PROCESS, memory // _PROCESS_BYTES))


def _summaries(element: Any) -> Iterator[tuple[int, ReadSummary]]:
    return steps.summaries_in(element[1:])


def _tell_buckets(element: Any, buckets: int) -> Iterator[tuple[int, SplitsNamed]]:
    """Tell every bucket if any row names a split. In: (ALL, [ReadSummary])."""
    if any(summary.named for summary in element[1]):
        for bucket in range(buckets):
            yield bucket, SplitsNamed()


# --- running -------------------------------------------------------------------------------------


NewRunner = Callable[[], Runner]

# In a remote staging folder, workers report every ten seconds, and every poll costs requests.
_LOCAL_POLL_SECONDS = 0.5
_REMOTE_POLL_SECONDS = 5.0


@contextmanager
def running(
    runner: Runner, staging: Staging, progress: Progress | None, noun: str
) -> Iterator[Runner]:
    """Yield the runner to build a graph on, then run the graph. Raises: as ``runner.run``.

    ``noun`` is the progress's word for an example.
    """
    yield runner
    with _rare_collections(), watching(staging, progress, noun):
        forget_failures()
        try:
            runner.run(staging)
        finally:
            allowance.end()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Freeze long-lived objects during a run; collecting them repeatedly takes 10 % of planning.

    Beam and its libraries have a million objects, and rows have no cycles.
    """
    if not _FREEZING.acquire(blocking=False):  # another conversion of this process does it
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        _FREEZING.release()


_FREEZING = threading.Lock()


@contextmanager
def watching(staging: Staging, progress: Progress | None, noun: str) -> Iterator[None]:
    """Report to ``progress`` while the block runs; ``noun`` is the word for an example."""
    if progress is None:
        yield
        return
    try:
        with beside(partial(_watch, staging, progress, noun)):
            yield
    finally:
        progress.finished()


def _watch(staging: Staging, progress: Progress, noun: str, done: threading.Event) -> None:
    plan: StagedPlan | None = None
    finished: dict[str, Mapping[str, int]] = {}
    started = time.monotonic()
    began: float | None = None  # the checks
    pace = Pace()
    poll_seconds = _LOCAL_POLL_SECONDS if storage.is_local(staging.root) else _REMOTE_POLL_SECONDS
    progress.show(Snapshot(phase=PLANNING, seconds=0, noun=noun))
    last = is_shown = False
    while not last:
        last = done.wait(poll_seconds)
        try:
            plan = plan or staging.read_plan()
            counts = staging.read_heartbeats(finished, SHARD_FILES if plan else ROW_FILES)
        except (OSError, RecordgenError):
            continue  # try again at the next poll; the run itself is not affected
        now = time.monotonic()
        snapshot = Snapshot(phase=PLANNING, seconds=now - started, noun=noun, counts=counts)
        if plan is not None:
            together = {**plan.totals(), **counts}
            snapshot = replace(snapshot, phase=SHARDS, counts=together, planned_bytes=plan.bytes)
            snapshot = pace.added_to(snapshot, now)
            is_written = snapshot.count(EXAMPLES_WRITTEN, PAYLOADS_REJECTED) >= plan.rows
            if is_written and is_shown and not last:
                began = began or now
                snapshot = Snapshot(phase=CHECKS, seconds=now - began)
            is_shown = True
        progress.show(snapshot)
