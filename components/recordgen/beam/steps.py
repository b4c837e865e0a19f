"""The steps of the pipeline; :mod:`recordgen.beam.graph` puts them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, islice
from typing import Any, TypeAlias, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics

from recordgen import storage
from recordgen.dataset.vocabulary import Vocabulary
from recordgen.errors import PayloadError, RecordgenError
from recordgen.options import ConvertOptions
from recordgen.payloads.fetching import check_reach, content_keys, payload_infos
from recordgen.planning.appending import ExistingShard, known_rows
from recordgen.planning.bucket_files import BucketFile, ShardOutline, cut, encode_rows
from recordgen.planning.messages import KnownBlock, ReadSummary, RowBlock, SplitsNamed
from recordgen.planning.plan import Base, make_plan, too_many
from recordgen.planning.resolve import resolve_bucket
from recordgen.rejects import Finding, Reject
from recordgen.rows.placing import placing
from recordgen.rows.planned import BucketSummary, Group, KnownRow, bucket_of
from recordgen.rows.row import BLOCK_ROWS, Row
from recordgen.runs import counters as metrics
from recordgen.runs.staging import Staging
from recordgen.shards.task import Planned, ShardResult, ShardTask
from recordgen.sources.import_file import ImportFile
from recordgen.sources.readers import RowReader
from recordgen.storage.access import Access
from recordgen.tasks import task_for

_BLOCK_ROWS_PER_BUCKET = 250
_MAX_BLOCK_ROWS = 200_000

# Findings wait in files of about 2 MB.
_FINDINGS_AT_ONCE = 10_000

#: The key of what all buckets say together. Not None: its hash differs from process to process,
#: and some runners group by that.
ALL = -1

_T = TypeVar("_T")

#: Split and number of a shard: plain, so that it encodes to the same bytes everywhere.
ShardKey: TypeAlias = "tuple[str, int]"

#: Gives what a shard is made of.
ReadPlanned: TypeAlias = Callable[[ShardOutline], Planned]


class Step(beam.DoFn):
    """A step that leaves its error in the staging folder: runners lose an error's type."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def _reported(self, items: Iterator[_T]) -> Iterator[_T]:
        try:
            yield from items
        except RecordgenError as exc:
            self._staging.write_error(exc)
            raise


class PlanningStep(Step):
    """A step that says how many rows it has read or planned."""

    def setup(self) -> None:  # noqa: D102
        self._heartbeat = self._staging.planning_heartbeat()


@dataclass
class _Block:
    """Rows read since the last block was handed on, by bucket, as RowBlock packs them."""

    buckets: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    read: int = 0
    named: bool = False
    rejects: list[Reject] = field(default_factory=list)

    def flush(self) -> Iterator[Any]:
        for bucket, rows in self.buckets.items():
            yield bucket, RowBlock.of(rows)
        yield summarised(ReadSummary(self.read, self.named, tuple(self.rejects)))


def summarised(summary: ReadSummary) -> tuple[int, ReadSummary]:
    """Return a summary and its bucket: all go to one place in the end, and 0 is always there."""
    return 0, summary


class ReadingStep(PlanningStep):
    """A step that counts the rows it reads."""

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self._rows = counter(metrics.ROWS_READ)
        self._rejected = counter(metrics.ROWS_REJECTED)

    def _count(self, read: int, rejected: int) -> None:
        self._rows.inc(read)
        self._rejected.inc(rejected)
        self._heartbeat.add(read, 0, rejected)


class ReadRows(ReadingStep):
    """ImportFile or rows → (bucket, RowBlock), and (0, ReadSummary)."""

    def __init__(
        self, options: ConvertOptions, buckets: int, folder: str, staging: Staging
    ) -> None:
        super().__init__(staging)
        self._options = options
        self._buckets = buckets
        self._folder = folder
        rows = min(buckets * _BLOCK_ROWS_PER_BUCKET, _MAX_BLOCK_ROWS)
        self._block_rows = max(BLOCK_ROWS, rows)

    def process(self, source: Any) -> Any:  # noqa: D102
        return self._reported(self._blocks(source))

    def _blocks(self, source: Any) -> Iterator[Any]:
        reader = RowReader(self._options)
        rows = reader.read(source) if isinstance(source, ImportFile) else iter(source)
        place, task = placing(self._options.seed), task_for(self._options)
        access = self._options.access
        block = _Block()
        findings: list[Finding] = []
        numbers = count()
        for row in rows:
            if isinstance(row, Finding):
                findings.append(row)
                if len(findings) == _FINDINGS_AT_ONCE:
                    yield self._left(findings, next(numbers))
                    findings = []
                continue
            block.read += 1
            if task.by_address and isinstance(row, Row):
                row = located(row, self._folder, access)
            if isinstance(row, Reject):
                block.rejects.append(row)
            else:
                where = place(task.placed_by(row, self._folder))
                bucket = bucket_of(where.order, self._buckets)
                block.buckets.setdefault(bucket, []).append((*where, *row))
                block.named = block.named or row.split is not None
            if block.read == self._block_rows:
                self._count(block.read, len(block.rejects))
                yield from block.flush()
                block = _Block()
        self._count(block.read, len(block.rejects))
        yield from block.flush()
        if findings:
            yield self._left(findings, next(numbers))

    def _left(self, findings: Sequence[Finding], number: int) -> tuple[int, ReadSummary]:
        """Leave findings in the staging folder; memory does not grow with them."""
        file = self._staging.write_findings(findings, number)
        adjusted = Counter(item.code for item in findings)
        return summarised(ReadSummary(adjusted=adjusted, findings=(file,)))


def located(row: Row, folder: str, access: Access) -> Row | Reject:
    """Give a row the one uri that all rows of its payload have, if it may reach that.

    A relative uri starts at ``folder``, in whichever import file it stands, so a copy of all files
    elsewhere gives the same rows. An absolute one becomes relative if it lies below ``folder``.

    Args:
        row: its payload is never opened here.
        folder: that of the first import file, see :func:`recordgen.storage.folder_of`.
        access: what rows may reach.
    """
    path = storage.address(row.uri, row.source)
    try:
        check_reach(path, row, access)
    except PayloadError as exc:
        return Reject(row.source, row.line, row.uri, exc.code, exc.message)
    outside = storage.is_relative(row.uri)
    return row._replace(uri=storage.from_folder(path, folder, outside=outside))


class ReadExisting(Step):
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
        while some := list(islice(rows, BLOCK_ROWS)):
            blocks: dict[int, list[KnownRow]] = {}
            for row in some:
                blocks.setdefault(bucket_of(row.order, self._buckets), []).append(row)
            for bucket, known in blocks.items():
                yield bucket, KnownBlock.of(known)


class ResolveBuckets(PlanningStep):
    """(bucket, all that is of it) → (ALL, summary) of any kind; leaves the planned rows."""

    def __init__(self, options: ConvertOptions, folders: frozenset[str], staging: Staging) -> None:
        super().__init__(staging)
        self._options = options
        self._folders = folders
        self._planned_rows = counter(metrics.ROWS_PLANNED)
        self._rejected = counter(metrics.ROWS_REJECTED)
        self._duplicates = counter(metrics.ROWS_DUPLICATE)
        self._merged = counter(metrics.ROWS_MERGED)
        self._dropped = counter(metrics.ROWS_DROPPED)
        self._existing = counter(metrics.ROWS_EXISTING)

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._resolve(*element))

    def _resolve(self, bucket: int, grouped: Iterable[Any]) -> Iterator[Any]:
        parts = list(grouped)
        blocks, summary = self._planned(bucket, parts)
        self._count(summary)
        yield ALL, self._staging.write_bucket(bucket, blocks)
        yield ALL, summary
        for part in parts:
            if isinstance(part, ReadSummary):
                yield ALL, part

    def _planned(
        self, bucket: int, parts: Sequence[Any]
    ) -> tuple[Mapping[Group, Iterable[tuple[bytes, int]]], BucketSummary]:
        """Return the planned rows by group, encoded in blocks, and the summary."""
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
        return {group: encode_rows(rows) for group, rows in planned.items()}, summary

    def _count(self, summary: BucketSummary) -> None:
        planned = sum(summary.rows.values())
        self._planned_rows.inc(planned)
        self._rejected.inc(len(summary.rejects))
        self._duplicates.inc(summary.duplicates)
        self._merged.inc(summary.merged)
        self._dropped.inc(summary.dropped)
        self._existing.inc(summary.existing)
        self._heartbeat.add(0, planned, len(summary.rejects))


class MakePlan(Step):
    """(ALL, all summaries) → (ShardKey, ShardOutline); leaves the plan."""

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
        findings = sorted(file for summary in read for file in summary.findings)
        self._staging.write_plan(plan, rejects, findings)
        # With too many rejects the run fails anyway: do not read a single payload for it.
        if not too_many(plan.rejects, plan.read, self._options):
            for outline in cut(plan, files):
                yield (outline.split, outline.index), outline


class WorkOnShards(Step):
    """(ShardKey, [ShardOutline]) → the shard's file name; the rest goes to staging."""

    def __init__(
        self, work: Callable[..., ShardResult], read_planned: ReadPlanned, staging: Staging
    ) -> None:
        super().__init__(staging)
        self._work = work
        self._read_planned = read_planned
        self._vocabulary: Vocabulary | None = None
        self._examples = counter(metrics.EXAMPLES_WRITTEN)
        self._rejects = counter(metrics.PAYLOADS_REJECTED)
        self._bytes = counter(metrics.PAYLOAD_BYTES)
        self._shard_bytes = counter(metrics.SHARD_BYTES)

    def process(self, element: Any) -> Any:  # noqa: D102
        [outline] = element[1]
        return self._reported(self._run(outline))

    def _run(self, outline: ShardOutline) -> Iterator[str]:
        if self._vocabulary is None:
            self._vocabulary = self._staging.read_vocabulary()
        rows = self._read_planned(outline)
        task = ShardTask(outline.split, outline.label, outline.index, outline.count, rows)
        heartbeat = self._staging.heartbeat(task.split, task.index)
        result = self._work(task, vocabulary=self._vocabulary, on_progress=heartbeat.beat)
        size = rows.payload_bytes
        heartbeat.finish(result.shard.examples, len(result.rejects), size)
        self._staging.write_result(result, task.index)
        self._examples.inc(result.shard.examples)
        self._rejects.inc(len(result.rejects))
        self._bytes.inc(size)
        self._shard_bytes.inc(result.shard.bytes)
        yield result.shard.file


def counter(name: str) -> Any:
    """Return Beam's counter of one of :mod:`recordgen.runs.counters`."""
    return Metrics.counter(metrics.NAMESPACE, name)
