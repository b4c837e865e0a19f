"""The steps of the pipeline; :mod:`recordgen.beam.graph` puts them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from typing import Any, TypeAlias, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics

from recordgen import storage
from recordgen.beam.runners import OUT_OF_MEMORY
from recordgen.dataset.vocabulary import Vocabulary
from recordgen.errors import PayloadError, RecordgenError, RunnerError
from recordgen.options import ConvertOptions
from recordgen.payloads.fetching import check_reach, contents, payload_infos
from recordgen.planning.appending import ExistingShard, known_rows
from recordgen.planning.bucket_files import BucketFile, ShardOutline, cut
from recordgen.planning.decide import decide, facts_of
from recordgen.planning.groups import with_groups
from recordgen.planning.messages import (
    DecidedFile,
    KnownBlock,
    ReadSummary,
    RowBlock,
    SettledFile,
    SplitsNamed,
)
from recordgen.planning.plan import Base, make_plan, too_many
from recordgen.planning.resolve import Settled, plan_bucket, settle_bucket
from recordgen.rejects import Finding, OddLine, Reject
from recordgen.rows.columns import (
    by_bucket,
    columns_of,
    packed,
    placed,
    rows_of,
    together,
    unpacked,
)
from recordgen.rows.planned import BucketSummary, KnownRow, PlacedRow
from recordgen.rows.row import BATCH_ROWS, Row, RowBatch, batched
from recordgen.runs import counters
from recordgen.runs.staging import Staging
from recordgen.shards.task import ShardResult, ShardTask
from recordgen.sources.import_file import ImportFile
from recordgen.sources.readers import RowReader
from recordgen.storage.access import Access
from recordgen.tasks import task_for

# Rows are handed on in blocks, one for each bucket that some of them fall into.
_BLOCK_ROWS_PER_BUCKET = 1000
_MAX_BLOCK_ROWS = 200_000
_BLOCK_CHARACTERS = 16 << 20

#: Findings wait in files of about 2 MB.
FINDINGS_AT_ONCE = 10_000

#: The key of what all buckets say together. Not None: its hash differs from process to process,
#: and some runners group by that.
ALL = -1

_T = TypeVar("_T")

#: Split and number of a shard: plain, so that it encodes to the same bytes everywhere.
ShardKey: TypeAlias = "tuple[str, int]"


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
        except MemoryError as exc:
            error = RunnerError(OUT_OF_MEMORY)
            self._staging.write_error(error)
            raise error from exc


class PlanningStep(Step):
    """A step that says how many rows it has read or planned."""

    def setup(self) -> None:  # noqa: D102
        self._heartbeat = self._staging.planning_heartbeat()


def summarised(summary: ReadSummary) -> tuple[int, ReadSummary]:
    """Return a summary and its bucket: all go to one place in the end, and 0 is always there."""
    return 0, summary


class ReadRows(PlanningStep):
    """ImportFile, or rows of a DataFrame → (bucket, RowBlock), and (0, ReadSummary)."""

    def __init__(
        self, options: ConvertOptions, buckets: int, folder: str, staging: Staging
    ) -> None:
        super().__init__(staging)
        self._options = options
        self._buckets = buckets
        self._folder = folder
        self._block_rows = _block_rows(buckets)
        self._rows = counter(counters.ROWS_READ)
        self._rejected = counter(counters.ROWS_REJECTED)

    def process(self, source: Any) -> Any:  # noqa: D102
        return self._reported(self._blocks(source))

    def _blocks(self, source: Any) -> Iterator[Any]:
        batches: list[RowBatch] = []
        rejects: list[Reject] = []
        findings: list[Finding] = []
        odd_lines: list[OddLine] = []
        numbers = count()
        rows = size = 0
        for item in self._items(source):
            if isinstance(item, RowBatch):
                batches.append(item)
                rows += len(item.lines)
                size += sum(map(len, filter(None, item.annotations)))
            elif isinstance(item, Reject):
                rejects.append(item)
            elif isinstance(item, OddLine):
                odd_lines.append(item)
            else:
                findings.append(item)
            if rows + len(rejects) >= self._block_rows or size >= _BLOCK_CHARACTERS:
                yield from self._flushed(batches, rejects)
                batches, rejects, rows, size = [], [], 0, 0
            if len(findings) == FINDINGS_AT_ONCE:
                yield self._left(findings, next(numbers))
                findings = []
        # Also of a source without a row: that nothing was read has to be known.
        yield from self._flushed(batches, rejects)
        if findings:
            yield self._left(findings, next(numbers))
        if odd_lines:
            yield summarised(ReadSummary(odd_lines=tuple(odd_lines)))

    def _items(self, source: Any) -> Iterator[RowBatch | Reject | Finding]:
        items: Iterator[RowBatch | Reject | Finding] = (
            RowReader(self._options).read_batches(source)
            if isinstance(source, ImportFile)
            else iter(source)
        )
        if not task_for(self._options).by_address:
            return items
        return chain.from_iterable(map(self._located, items))

    def _located(self, item: RowBatch | Reject | Finding) -> Iterable[RowBatch | Reject | Finding]:
        if not isinstance(item, RowBatch):
            return [item]
        access = self._options.access
        return batched(located(row, self._folder, access) for row in item.rows)

    def _flushed(self, batches: Sequence[RowBatch], rejects: Sequence[Reject]) -> Iterator[Any]:
        """Yield what was read, the rows by bucket, and its summary."""
        read = sum(len(batch.lines) for batch in batches) + len(rejects)
        named = any(any(batch.splits) for batch in batches)
        groups: list[str | None] | None = None
        if (by := self._options.grouping) is not None:
            found = [with_groups(batch, by, self._options.eval_share) for batch in batches]
            batches = [batch for batch, _ in found]
            rejects = [*rejects, *chain.from_iterable(lost for _, lost in found)]
            groups = list(chain.from_iterable(batch.groups or () for batch in batches))
        if any(batch.lines for batch in batches):
            task = task_for(self._options)
            names = chain.from_iterable(
                task.placing_names(batch, self._folder) for batch in batches
            )
            rows = placed(batches, names, self._options.seed, groups)
            for bucket, columns in by_bucket(rows, self._buckets):
                yield bucket, RowBlock(packed(columns))
        self._rows.inc(read)
        self._rejected.inc(len(rejects))
        self._heartbeat.add(read, 0, len(rejects))
        yield summarised(ReadSummary(read, named, tuple(rejects)))

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
        check_reach(path, row.source, access)
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
        self._block_rows = _block_rows(buckets)

    def process(self, shard: ExistingShard) -> Any:  # noqa: D102
        return self._reported(self._blocks(shard))

    def _blocks(self, shard: ExistingShard) -> Iterator[Any]:
        rows = known_rows(shard, self._options, self._folder)
        while some := list(islice(rows, self._block_rows)):
            for bucket, columns in by_bucket(columns_of(KnownRow, some), self._buckets):
                yield bucket, KnownBlock(packed(columns))


class SettleBuckets(PlanningStep):
    """(bucket, all that is of it) → (ALL, SettledFile | ReadSummary); leaves the settled rows."""

    def __init__(self, options: ConvertOptions, folders: frozenset[str], staging: Staging) -> None:
        super().__init__(staging)
        self._options = options
        self._folders = folders

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._settle(*element))

    def _settle(self, bucket: int, grouped: Iterable[Any]) -> Iterator[Any]:
        parts = list(grouped)
        found = settled(parts, self._options, self._folders)
        facts = facts_of(found.rows, task_for(self._options), self._options)
        file = self._staging.write_settled(bucket, found.rows)
        yield ALL, SettledFile(bucket, file, packed(facts), replace(found, rows=None))
        yield from summaries_in(parts)


def settled(parts: Sequence[Any], options: ConvertOptions, folders: frozenset[str]) -> Settled:
    """Settle the rows of a bucket, given all that is of it."""
    known = (unpacked(part.data) for part in parts if isinstance(part, KnownBlock))
    rows = (unpacked(part.data) for part in parts if isinstance(part, RowBlock))
    return settle_bucket(
        together(PlacedRow, chain.from_iterable(rows)),
        options=options,
        task=task_for(options),
        drop_unnamed=any(isinstance(part, SplitsNamed) for part in parts),
        infos=partial(payload_infos, options=options),
        contents=partial(contents, options=options),
        known=list(rows_of(KnownRow, together(KnownRow, chain.from_iterable(known)))),
        folders=folders,
    )


def summaries_in(parts: Iterable[Any]) -> Iterator[tuple[int, ReadSummary]]:
    """Yield the summaries of reading among what is of a bucket."""
    for part in parts:
        if isinstance(part, ReadSummary):
            yield ALL, part


class DecideTogether(Step):
    """(ALL, [SettledFile | ReadSummary]) → (bucket, DecidedFile), and (0, ReadSummary)."""

    def __init__(self, options: ConvertOptions, staging: Staging) -> None:
        super().__init__(staging)
        self._options = options

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._decide(*element))

    def _decide(self, _: int, items: Iterable[SettledFile | ReadSummary]) -> Iterator[Any]:
        files: dict[int, SettledFile] = {}
        facts = {}
        for item in items:
            if isinstance(item, ReadSummary):
                yield summarised(item)
            else:
                [facts[item.bucket]] = unpacked(item.facts)
                files[item.bucket] = replace(item, facts=b"")
        for bucket, columns in decide(facts, self._options):
            yield bucket, DecidedFile(files[bucket], packed(columns))


class ResolveBuckets(PlanningStep):
    """(bucket, all that is of it) → (ALL, summary) of any kind; leaves the planned rows.

    What is of a bucket is blocks of rows; or a DecidedFile, where all rows together decide.
    """

    def __init__(self, options: ConvertOptions, folders: frozenset[str], staging: Staging) -> None:
        super().__init__(staging)
        self._options = options
        self._folders = folders
        self._planned_rows = counter(counters.ROWS_PLANNED)
        self._rejected = counter(counters.ROWS_REJECTED)
        self._duplicates = counter(counters.ROWS_DUPLICATE)
        self._merged = counter(counters.ROWS_MERGED)
        self._dropped = counter(counters.ROWS_DROPPED)
        self._existing = counter(counters.ROWS_EXISTING)

    def process(self, element: Any) -> Any:  # noqa: D102
        return self._reported(self._resolve(*element))

    def _resolve(self, bucket: int, grouped: Iterable[Any]) -> Iterator[Any]:
        parts = list(grouped)
        options, decided = self._options, None
        if file := next((part for part in parts if isinstance(part, DecidedFile)), None):
            [decided] = unpacked(file.decided)
            rows = self._staging.read_settled(file.settled.file)
            found = replace(file.settled.settled, rows=rows)
        else:
            found = settled(parts, options, self._folders)
        planned, summary = plan_bucket(
            bucket, found, options=options, task=task_for(options), decided=decided
        )
        self._count(summary)
        yield ALL, self._staging.write_bucket(bucket, planned)
        yield ALL, summary
        yield from summaries_in(parts)

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
        odd_lines = sorted(item for summary in read for item in summary.odd_lines)
        self._staging.write_plan(plan, rejects, findings, odd_lines)
        # With too many rejects the run fails anyway: do not read a single payload for it.
        if not too_many(plan.rejects, plan.read, self._options):
            for outline in cut(plan, files):
                yield (outline.split, outline.index), outline


class WorkOnShards(Step):
    """(ShardKey, [ShardOutline]) → the shard's file name; the rest goes to staging."""

    def __init__(self, work: Callable[..., ShardResult], staging: Staging) -> None:
        super().__init__(staging)
        self._work = work
        self._vocabulary: Vocabulary | None = None
        self._examples = counter(counters.EXAMPLES_WRITTEN)
        self._rejects = counter(counters.PAYLOADS_REJECTED)
        self._bytes = counter(counters.PAYLOAD_BYTES)
        self._shard_bytes = counter(counters.SHARD_BYTES)

    def process(self, element: Any) -> Any:  # noqa: D102
        [outline] = element[1]
        return self._reported(self._run(outline))

    def _run(self, outline: ShardOutline) -> Iterator[str]:
        if self._vocabulary is None:
            self._vocabulary = self._staging.read_vocabulary()
        rows = self._staging.read_rows(outline)
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


def _block_rows(buckets: int) -> int:
    """Return how many rows are read before they are handed on, so that blocks are worth it."""
    return max(BATCH_ROWS, min(buckets * _BLOCK_ROWS_PER_BUCKET, _MAX_BLOCK_ROWS))


def counter(name: str) -> Any:
    """Return Beam's counter of one of :mod:`recordgen.runs.counters`."""
    return Metrics.counter(counters.NAMESPACE, name)
