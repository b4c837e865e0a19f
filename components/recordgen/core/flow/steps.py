"""The steps of a conversion; :mod:`recordgen.core.flow.graph` connects them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, compress, count, islice
from typing import Any, TypeAlias

from recordgen import storage
from recordgen.core import allowance, progress
from recordgen.core.conversion import Conversion, PayloadStore, RowReader, Splits
from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.splits import EvalFrom, GroupBy
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.flow.runner import Count, Step, merge_found, write_changes, write_odd_lines
from recordgen.core.planning.appending import ExistingGroup, known_rows
from recordgen.core.planning.decide import decide, facts_of, lost_by_bucket, with_doubt
from recordgen.core.planning.plan import (
    Base,
    Block,
    BucketFile,
    BucketSummary,
    KnownBlock,
    LostRows,
    ReadSummary,
    RowBlock,
    Settled,
    SettledFile,
    ShardOutline,
    SplitsNamed,
    check_train,
    cut,
    make_plan,
    too_many,
)
from recordgen.core.planning.resolve import plan_bucket, settle_bucket
from recordgen.core.rows.columns import by_bucket, columns_of, packed, placed, rows_of, together
from recordgen.core.rows.row import (
    BATCH_ROWS,
    KnownRow,
    PlacedRow,
    ReadItem,
    Row,
    RowBatch,
    batched,
    is_content_uri,
)
from recordgen.core.runs.staging import Staging
from recordgen.core.shards import ShardResult, ShardTask, counts_of
from recordgen.core.task.task import Task, placing_names
from recordgen.errors import PayloadError
from recordgen.messages.masking import masked
from recordgen.rejects import Counted, Finding, OddLine, Reject, RejectCode

#: The key that groups the summaries of all buckets. Not None: the hash of None differs from process
#: to process, and some runners group by it.
ALL = -1

#: Split and number of a shard: plain types, so that the key has the same bytes everywhere.
ShardKey: TypeAlias = "tuple[str, int]"

# Rows are passed on in blocks, one per bucket.
_BLOCK_ROWS_PER_BUCKET = 1000
_MAX_BLOCK_ROWS = 200_000
_BLOCK_CHARACTERS = 4 << 20

# Findings per file in the staging folder, about 2 MB.
_FINDINGS_AT_ONCE = 10_000


class PlanningStep(Step):
    """A step that reports how many rows it has read or planned."""

    def begin(self, count: Count) -> None:
        heartbeat = self.staging.planning_heartbeat()

        def count_and_report(amounts: Mapping[str, int]) -> None:
            count(amounts)
            heartbeat.add(amounts)

        super().begin(count_and_report)


def summarised(summary: ReadSummary) -> tuple[int, ReadSummary]:
    """Key a summary with bucket 0, which always exists; MakePlan gets it from there."""
    return 0, summary


@dataclass(eq=False)
class ReadRows(PlanningStep):
    """Read rows. In: a part of the source, see :meth:`RowSource.parts`.

    Out: (bucket, RowBlock | LostRows) | (0, ReadSummary).
    """

    task: Task
    splits: Splits
    reader: RowReader
    store: PayloadStore
    buckets: int
    folder: str
    staging: Staging
    findings_at_once: int = _FINDINGS_AT_ONCE

    def process(self, source: Any) -> Iterator[Any]:
        block_rows = _block_rows(self.buckets)
        batches: list[RowBatch] = []
        rejects: list[Reject] = []
        found: list[Finding | OddLine] = []
        counted: Counter[str] = Counter()
        numbers = count()
        rows = size = 0
        for item in self._items(source):
            if isinstance(item, RowBatch):
                batches.append(item)
                rows += len(item.lines)
                size += sum(map(len, filter(None, item.annotations)))
            elif isinstance(item, Reject):
                rejects.append(item)
            elif isinstance(item, Counted):
                counted[item.code] += item.number
            else:
                found.append(item)
            if rows + len(rejects) >= block_rows or size >= _BLOCK_CHARACTERS:
                yield from self._flushed(batches, rejects)
                batches, rejects, rows, size = [], [], 0, 0
            if len(found) == self.findings_at_once:
                yield self._left(found, next(numbers))
                found = []
        # A source without rows needs a summary, too: the plan must know that nothing was read.
        yield from self._flushed(batches, rejects)
        if found:
            yield self._left(found, next(numbers))
        if counted:
            yield summarised(ReadSummary(adjusted=counted))

    def _items(self, source: Any) -> Iterator[ReadItem]:
        items = map(_storable, allowance.within(self.reader.read_part(source)))
        return chain.from_iterable(map(self._located, items)) if self.task.by_address else items

    def _located(self, item: ReadItem) -> Iterable[ReadItem]:
        if not isinstance(item, RowBatch):
            return [item]
        return batched(located(row, self.folder, self.store) for row in item.rows)

    def _flushed(self, batches: Sequence[RowBatch], rejects: Sequence[Reject]) -> Iterator[Any]:
        """Yield the rows by bucket, and the summary of reading them."""
        read = sum(len(batch.lines) for batch in batches) + len(rejects)
        named = any(any(batch.splits) for batch in batches)
        groups: list[str | None] | None = None
        if (by := self.splits.grouping) is not None:
            found = [with_groups(batch, by, self.splits.share) for batch in batches]
            batches = [batch for batch, _ in found]
            rejects = [*rejects, *chain.from_iterable(lost for _, lost in found)]
            groups = list(chain.from_iterable(batch.groups or () for batch in batches))
        task, seed = self.task, self.splits.seed
        if rejects:
            rejects = [with_doubt(item, task) for item in rejects]
            for bucket, items in lost_by_bucket(rejects, task, seed, self.buckets).items():
                yield bucket, LostRows(tuple(items))
        if any(batch.lines for batch in batches):
            names = chain.from_iterable(
                placing_names(batch, task, self.folder) for batch in batches
            )
            rows = placed(batches, names, seed, groups)
            for bucket, columns in by_bucket(rows, self.buckets):
                yield bucket, RowBlock(columns)
        self.count({progress.ROWS_READ: read, progress.ROWS_REJECTED: len(rejects)})
        yield summarised(ReadSummary(read, named, tuple(rejects)))

    def _left(self, found: Sequence[Finding | OddLine], number: int) -> tuple[int, ReadSummary]:
        """Write findings to the staging folder, so that memory does not grow with them."""
        changes = [item for item in found if isinstance(item, Finding)]
        files = write_odd_lines(self.staging, [it for it in found if isinstance(it, OddLine)])
        if changes:
            files += (write_changes(self.staging, changes, number),)
        return summarised(ReadSummary(adjusted=Counter(it.code for it in changes), found=files))


def _storable(item: ReadItem) -> ReadItem:
    """Return an item in UTF-8: in names of files, which messages have, may be other bytes."""
    if isinstance(item, RowBatch | Counted):
        return item
    texts = (item.source, item.uri, item.message)
    source, uri, message = (it.encode("utf-8", "backslashreplace").decode() for it in texts)
    return item._replace(source=source, uri=uri, message=message)


def located(row: Row, folder: str, store: PayloadStore) -> Row | Reject:
    """Return a row with the normal form of its uri, or a reject if it may not access the payload.

    In the result, a relative uri starts at ``folder``, the folder of the first import file,
    whichever import file holds the row: a copy of all files elsewhere gives the same rows. An
    absolute uri below ``folder`` becomes relative. The payload is not opened here.
    """
    path = storage.address(row.uri, row.source)
    try:
        store.check_reach(path, row.source)
    except PayloadError as exc:
        return Reject(row.source, row.line, row.uri, exc.code, exc.message)
    outside = storage.is_relative(row.uri)
    return row._replace(uri=storage.from_folder(path, folder, outside=outside))


@dataclass(eq=False)
class ReadExisting(Step):
    """Read the rows of existing examples. In: ExistingGroup. Out: (bucket, KnownBlock)."""

    files: frozenset[str]
    task: Task
    seed: int
    buckets: int
    folder: str
    staging: Staging

    def process(self, group: ExistingGroup) -> Iterator[Any]:
        rows = known_rows(group, self.files, self.task, self.seed, self.folder)
        while some := list(islice(rows, _block_rows(self.buckets))):
            for bucket, columns in by_bucket(columns_of(KnownRow, some), self.buckets):
                yield bucket, KnownBlock(columns)


def _block_rows(buckets: int) -> int:
    """Return how many rows are read before they are passed on: small blocks are not worth it."""
    return max(BATCH_ROWS, min(buckets * _BLOCK_ROWS_PER_BUCKET, _MAX_BLOCK_ROWS))


def with_groups(
    batch: RowBatch, by: GroupBy, share: EvalFrom | None
) -> tuple[RowBatch, list[Reject]]:
    """Return the rows with their groups, and rejects of rows that need a group but have none.

    A row that names its split needs no group, unless ``share`` may move the row.
    """
    groups = batch.groups
    if by.pattern:
        groups = [None if is_content_uri(uri) else by.find(uri) for uri in batch.uris]
    elif groups is None:
        groups = [None] * len(batch.lines)
    batch = batch._replace(groups=groups)
    undecided = (None,) if share is None else (None, share.split)
    if None not in groups:
        return batch, []
    kept = [
        group is not None or split not in undecided
        for group, split in zip(groups, batch.splits, strict=True)
    ]
    rejects = [_no_group(batch, at, by) for at, is_kept in enumerate(kept) if not is_kept]
    columns = (None if column is None else [*compress(column, kept)] for column in batch[1:])
    return RowBatch._make((batch.source, *columns)), rejects


def _no_group(batch: RowBatch, at: int, by: GroupBy) -> Reject:
    uri = batch.uris[at]
    if by.column:
        found = f"column {by.column!r} is empty"
        remedy = "fill it"
    elif uri and not is_content_uri(uri):
        found = f"group_by={by.pattern!r} matches nothing in the uri {uri!r:.200}"
        remedy = "let the expression match every uri"
    else:
        found = f"group_by={by.pattern!r} needs a uri, and the row has none"
        remedy = "name a column instead"
    message = f"{found}, so the row's split cannot be assigned; {remedy}, or name the row's split"
    return Reject(batch.source, batch.lines[at], uri, RejectCode.NO_GROUP.value, masked(message))


@dataclass(eq=False)
class SettleBuckets(PlanningStep):
    """Settle one bucket, and write its rows to the staging folder.

    In: (bucket, [RowBlock | LostRows | KnownBlock | ReadSummary | SplitsNamed]).
    Out: (ALL, SettledFile | ReadSummary).
    """

    conversion: Conversion
    staging: Staging

    def process(self, element: tuple[int, Iterable[Any]]) -> Iterator[Any]:
        bucket, parts = element[0], list(element[1])
        found = settled(parts, self.conversion)
        facts = facts_of(found.rows, self.conversion.task, self.conversion.splits)
        file = self.staging.leave(packed(found.rows))
        left = replace(found, rows=found.rows.select([]), odd_lines=[])
        if found.odd_lines:
            yield ALL, ReadSummary(found=write_odd_lines(self.staging, found.odd_lines))
        yield ALL, SettledFile(bucket, file, left, facts=Block(facts))
        yield from summaries_in(parts)


def settled(parts: Sequence[Any], conversion: Conversion) -> Settled:
    """Settle the rows of a bucket, given all its messages."""
    known = (part.columns for part in parts if isinstance(part, KnownBlock))
    rows = (part.columns for part in parts if isinstance(part, RowBlock))
    return settle_bucket(
        together(PlacedRow, rows),
        splits=conversion.splits,
        task=conversion.task,
        drop_unnamed=any(isinstance(part, SplitsNamed) for part in parts),
        store=conversion.store,
        known=list(rows_of(KnownRow, together(KnownRow, known))),
        lost=[item for part in parts if isinstance(part, LostRows) for item in part.rejects],
    )


def summaries_in(parts: Iterable[Any]) -> Iterator[tuple[int, ReadSummary]]:
    """Yield the read summaries among the messages of a bucket."""
    for part in parts:
        if isinstance(part, ReadSummary):
            yield ALL, part


@dataclass(eq=False)
class DecideTogether(Step):
    """Decide about all rows together.

    In: (ALL, [SettledFile | ReadSummary]). Out: (bucket, SettledFile) | (0, ReadSummary).
    """

    conversion: Conversion
    staging: Staging

    def process(self, element: tuple[int, Iterable[SettledFile | ReadSummary]]) -> Iterator[Any]:
        files: dict[int, SettledFile] = {}
        facts = {}
        for item in element[1]:
            if isinstance(item, ReadSummary):
                yield summarised(item)
            else:
                facts[item.bucket] = item.facts.columns
                files[item.bucket] = item
        for bucket, columns in decide(facts, self.conversion.splits, self.conversion.store.alike):
            yield bucket, replace(files[bucket], facts=Block(columns))


@dataclass(eq=False)
class ResolveBuckets(PlanningStep):
    """Resolve one bucket, and write its planned rows to the staging folder.

    In: (bucket, messages): blocks of rows, or a SettledFile if all rows decide together.
    Out: (ALL, BucketSummary | BucketFile | ReadSummary).
    """

    conversion: Conversion
    staging: Staging

    def process(self, element: tuple[int, Iterable[Any]]) -> Iterator[Any]:
        bucket, parts = element[0], list(element[1])
        conversion, decided = self.conversion, None
        if file := next((part for part in parts if isinstance(part, SettledFile)), None):
            decided = file.facts.columns
            found = replace(file.settled, rows=self.staging.read_left_columns(file.file))
        else:
            found = settled(parts, conversion)
        planned, summary = plan_bucket(
            found,
            splits=conversion.splits,
            task=conversion.task,
            by_label=conversion.shards.by_label,
            decided=decided,
        )
        self._count(summary)
        yield ALL, self.staging.write_bucket(bucket, planned)
        yield ALL, summary
        if found.odd_lines:
            yield ALL, ReadSummary(found=write_odd_lines(self.staging, found.odd_lines))
        yield from summaries_in(parts)

    def _count(self, summary: BucketSummary) -> None:
        planned, counts = sum(summary.rows.values()), summary.counts
        self.count(
            {
                progress.ROWS_PLANNED: planned,
                progress.ROWS_REJECTED: len(summary.rejects),
                progress.ROWS_DUPLICATE: counts.duplicates,
                progress.ROWS_MERGED: counts.merged,
                progress.ROWS_DROPPED: counts.dropped,
                progress.ROWS_EXISTING: counts.existing,
            }
        )


@dataclass(eq=False)
class MakePlan(Step):
    """Make the plan, and write it to the staging folder.

    In: (ALL, [BucketSummary | BucketFile | ReadSummary]). Out: (ShardKey, ShardOutline); nothing if
    there are ``parts``, which are written to the staging folder.
    """

    conversion: Conversion
    base: Base
    staging: Staging
    parts: int = 0

    def process(self, element: Any) -> Iterator[tuple[ShardKey, ShardOutline]]:
        summaries = list(element[1])
        read = [item for item in summaries if isinstance(item, ReadSummary)]
        resolved = [item for item in summaries if isinstance(item, BucketSummary)]
        files = [item for item in summaries if isinstance(item, BucketFile)]
        parse_rejects = [item for summary in read for item in summary.rejects]
        counts = RowCounts(
            read=sum(summary.read for summary in read),
            rejected=Counter(item.code for item in parse_rejects),
            adjusted=sum((Counter(summary.adjusted) for summary in read), Counter()),
        )
        conversion = self.conversion
        plan = make_plan(
            resolved,
            read=counts,
            shard_bytes=conversion.shards.bytes,
            labels=conversion.labels,
            share=conversion.splits.share,
            without_eval=conversion.splits.without_eval,
            base=self.base,
        )
        rejects = parse_rejects + [item for summary in resolved for item in summary.rejects]
        found = merge_found(self.staging, chain.from_iterable(each.found for each in read))
        shards = list(cut(plan, files))
        parts = [shards[at :: self.parts] for at in range(min(self.parts, len(shards)))]
        outlines = [self.staging.leave_json(list(map(asdict, part))) for part in parts]
        self.staging.write_plan(plan, rejects, found, outlines)
        # With too many rejects the run fails anyway, so do not read any payload.
        if too_many(plan.counts.rejects, plan.counts.read, conversion.max_reject_fraction):
            return
        remedy = conversion.splits.without_train
        if remedy and not self.base.shards and all(summary.named for summary in resolved):
            check_train(plan, remedy)
        if not self.parts:
            for outline in shards:
                yield (outline.split, outline.index), outline


@dataclass(eq=False)
class WorkOnShards(Step):
    """Write or check one shard, and write its result to the staging folder.

    In: (ShardKey, [ShardOutline]). Out: the shard's file name.
    """

    work: Callable[..., ShardResult]
    staging: Staging
    processes: int = 1
    _vocabulary: Vocabulary | None = field(default=None, init=False)

    def process(self, element: tuple[ShardKey, Iterable[ShardOutline]]) -> Iterator[str]:
        [outline] = element[1]
        if self._vocabulary is None:
            self._vocabulary = self.staging.read_vocabulary()
        heartbeat = self.staging.heartbeat(outline.split, outline.index)
        rows = self.staging.read_rows(outline)
        task = ShardTask(outline.split, outline.label, outline.index, outline.count, rows)
        result = self.work(task, vocabulary=self._vocabulary, on_progress=heartbeat.beat)
        counts = counts_of(result.shard.examples, len(result.rejects), rows.payload_bytes)
        heartbeat.finish(counts)
        self.staging.write_result(result, outline.index)
        self.count({**counts, progress.SHARD_BYTES: result.shard.bytes})
        yield result.shard.file
