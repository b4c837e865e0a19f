"""The steps of a conversion; :mod:`recordgen.core.flow.graph` connects them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

from recordgen.core.conversion import Conversion
from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.flow.found import merge_found, write_odd_lines
from recordgen.core.flow.reading import PlanningStep, summarised
from recordgen.core.flow.runner import Step
from recordgen.core.planning.decide import decide, facts_of
from recordgen.core.planning.messages import (
    Block,
    BucketFile,
    KnownBlock,
    LostRows,
    ReadSummary,
    RowBlock,
    SettledFile,
    ShardOutline,
    SplitsNamed,
    cut,
)
from recordgen.core.planning.plan import Base, BucketSummary, check_train, make_plan, too_many
from recordgen.core.planning.resolve import Settled, plan_bucket, settle_bucket
from recordgen.core.rows.columns import packed, rows_of, together
from recordgen.core.rows.row import KnownRow, PlacedRow
from recordgen.core.runs import counters
from recordgen.core.runs.staging import Staging
from recordgen.core.shards.task import ShardResult, ShardTask

#: The key that groups the summaries of all buckets. Not None: the hash of None differs from process
#: to process, and some runners group by it.
ALL = -1

#: Split and number of a shard: plain types, so that the key has the same bytes everywhere.
ShardKey: TypeAlias = "tuple[str, int]"


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
            yield ALL, ReadSummary(odd_lines=write_odd_lines(self.staging, found.odd_lines))
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
            yield ALL, ReadSummary(odd_lines=write_odd_lines(self.staging, found.odd_lines))
        yield from summaries_in(parts)

    def _count(self, summary: BucketSummary) -> None:
        planned, counts = sum(summary.rows.values()), summary.counts
        self.count(
            {
                counters.ROWS_PLANNED: planned,
                counters.ROWS_REJECTED: len(summary.rejects),
                counters.ROWS_DUPLICATE: counts.duplicates,
                counters.ROWS_MERGED: counts.merged,
                counters.ROWS_DROPPED: counts.dropped,
                counters.ROWS_EXISTING: counts.existing,
            }
        )
        self._heartbeat.add(0, planned, len(summary.rejects))


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
        findings = sorted(file for summary in read for file in summary.findings)
        odd_lines = chain.from_iterable(summary.odd_lines for summary in read)
        line_files = merge_found(self.staging, odd_lines)
        shards = list(cut(plan, files))
        parts = [shards[at :: self.parts] for at in range(min(self.parts, len(shards)))]
        outlines = [self.staging.leave_json(list(map(asdict, part))) for part in parts]
        self.staging.write_plan(plan, rejects, findings, line_files, outlines)
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
        size = rows.payload_bytes
        heartbeat.finish(result.shard.examples, len(result.rejects), size)
        self.staging.write_result(result, outline.index)
        self.count(
            {
                counters.EXAMPLES_WRITTEN: result.shard.examples,
                counters.PAYLOADS_REJECTED: len(result.rejects),
                counters.PAYLOAD_BYTES: size,
                counters.SHARD_BYTES: result.shard.bytes,
            }
        )
        yield result.shard.file
