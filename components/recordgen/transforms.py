"""The Beam pipeline: it carries rows and tasks, never payloads.

files ──ReadRows──────▶ (bucket, RowBlock | ReadSummary) ─┐
shards ─ReadExisting──▶ (bucket, KnownBlock) ─────────────┴─group─▶ ResolveBuckets ─▶ staging
                                                                          │             │
       (ALL, BucketSummary | BucketFile | ReadSummary) ◀─────────────────┘             │
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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from recordgen import storage
from recordgen.appending import Existing
from recordgen.blocks import ReadSummary, SplitsNamed
from recordgen.errors import SourceError
from recordgen.options import ConvertOptions
from recordgen.planning import Base
from recordgen.resuming import compare_shard, keep_or_write_shard
from recordgen.rows import Finding, Lines, Reject, Row
from recordgen.runs import Run
from recordgen.shards import ShardResult, check_shard, write_shard
from recordgen.sources import ImportFile
from recordgen.sources.image_folder import list_images
from recordgen.staging import Staging
from recordgen.steps import (
    ALL,
    BLOCK_ROWS,
    MakePlan,
    ReadExisting,
    ReadRows,
    ResolveBuckets,
    WorkOnShards,
)
from recordgen.tasks import TASKS

if TYPE_CHECKING:
    from recordgen.sources.detect import Detection

# A bucket's rows are held in memory together, so small sources have small ones; of large ones, each
# takes so many bytes of import file.
_SMALL_BUCKET_BYTES, _SMALL_BUCKETS = 100_000, 16
_BUCKET_BYTES = 2_000_000
_ROW_BYTES = 100
_MAX_BUCKETS = 4096

# Dask's runner cuts the work into no more parts than there are to read: these make up the number.
_EMPTY_PARTS = 64


@dataclass(frozen=True)
class Source:
    """Where rows come from: import files, or rows in memory (a DataFrame's).

    Attributes:
        files: import files.
        rows: blocks of rows with what was changed in them, or of lines.
        bytes: size of all of it, for the number of buckets.
        detection: how it is read.
    """

    files: tuple[ImportFile, ...] = ()
    rows: tuple[tuple[Row | Lines | Reject | Finding, ...], ...] = ()
    bytes: int = 0
    detection: Detection | None = None

    @classmethod
    def of_files(cls, files: Sequence[ImportFile]) -> Source:
        """Return import files as a source. Raises: SourceError, StorageError."""
        return cls(files=tuple(files), bytes=sum(map(_size, files)))

    @classmethod
    def of_rows(cls, rows: Iterable[Row | Reject | Finding]) -> Source:
        """Return rows as a source."""
        waiting = iter(rows)
        blocks = tuple(iter(lambda: tuple(islice(waiting, BLOCK_ROWS)), ()))
        size = sum(map(len, blocks)) * _ROW_BYTES
        return cls(rows=blocks, bytes=size)

    @classmethod
    def of_lines(cls, lines: Iterable[Lines | Reject]) -> Source:
        """Return lines of a table as a source."""
        blocks = tuple((item,) for item in lines)
        texts = chain.from_iterable(
            item.texts for (item,) in blocks if not isinstance(item, Reject)
        )
        return cls(rows=blocks, bytes=sum(map(len, texts)))

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
    folder = existing.folder if existing else storage.folder_of(source.names[0])
    read, resolve = _planning_steps(options, buckets, folder, staging, existing)
    # Create spreads several sources over the workers by a shuffle, which one does not need.
    parts = [
        pipeline
        | "ListSources"  # ImportFile | (Row, …)
        >> beam.Create(source.parts(), reshuffle=len(source.files) + len(source.rows) > 1)
        | "ReadRows" >> beam.ParDo(read)
    ]  # (bucket, RowBlock | ReadSummary)
    if options.missing_split == "drop":  # who drops rows without a split waits for all others
        parts.append(
            parts[0]
            | "ReadSummaries" >> beam.FlatMap(_summary_of_any_bucket)
            | "GatherNamed" >> beam.GroupByKey()  # (ALL, [ReadSummary])
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
        | "ResolveBuckets" >> beam.ParDo(resolve)  # (ALL, BucketSummary | BucketFile | ReadSummary)
        | "GatherSummaries" >> beam.GroupByKey()
        | "MakePlan"
        >> beam.ParDo(MakePlan(options, existing.base if existing else Base(), staging))
        | "SpreadShards" >> beam.GroupByKey()  # (ShardKey, [ShardOutline])
    )


def _planning_steps(
    options: ConvertOptions,
    buckets: int,
    folder: str,
    staging: Staging,
    existing: Existing | None,
) -> tuple[beam.DoFn, beam.DoFn]:
    """Return what reads rows and what resolves buckets."""
    if TASKS[options.task].by_columns:
        from recordgen.table_steps import ReadLines, ResolveLines  # Arrow is for tables alone

        return ReadLines(options, buckets, staging), ResolveLines(options, staging)
    folders = existing.folders if existing else frozenset()
    return (
        ReadRows(options, buckets, folder, staging),
        ResolveBuckets(options, folders, staging),
    )


def _working(work: Callable[..., ShardResult], options: ConvertOptions, staging: Staging) -> Any:
    """Return the step that does ``work`` on every shard."""
    if TASKS[options.task].by_columns:
        from recordgen.table_steps import read_lines

        return beam.ParDo(WorkOnShards(work, partial(read_lines, staging), staging))
    return beam.ParDo(WorkOnShards(work, staging.read_rows, staging))


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
    return shards | "WriteShards" >> _working(work, options, run.staging)


def check_shards(
    shards: beam.PCollection, options: ConvertOptions, staging: Staging
) -> beam.PCollection:
    """Check every shard and write nothing but its result; gives shard names."""
    work = partial(check_shard, options=options)
    return shards | "CheckShards" >> _working(work, options, staging)


def compare_shards(
    shards: beam.PCollection, options: ConvertOptions, output: str, staging: Staging
) -> beam.PCollection:
    """Check every shard, and the file in ``output`` that is its own; gives shard names."""
    work = partial(compare_shard, output=output, options=options)
    return shards | "CompareShards" >> _working(work, options, staging)


def _summary_of_any_bucket(element: Any) -> Iterator[tuple[int, ReadSummary]]:
    if isinstance(element[1], ReadSummary):
        yield ALL, element[1]


def _tell_buckets(element: Any, buckets: int) -> Iterator[tuple[int, SplitsNamed]]:
    """(ALL, [ReadSummary]) → word to every bucket if any row names a split."""
    if any(summary.named for summary in element[1]):
        for bucket in range(buckets):
            yield bucket, SplitsNamed()
