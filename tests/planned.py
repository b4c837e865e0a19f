"""Single rows and hashes for tests of functions that take columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from recordgen.conversion.api import splits_of
from recordgen.core.conversion import Labels, PayloadStore
from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.splits import SplitFractions
from recordgen.core.planning.decide import decide, facts_of
from recordgen.core.planning.plan import BucketSummary, Plan, make_plan
from recordgen.core.planning.resolve import plan_bucket, settle_bucket
from recordgen.core.rows.columns import Columns, PlannedBatch, columns_of, rows_of, shares_of
from recordgen.core.rows.row import Group, PlacedRow, PlannedRow
from recordgen.core.shards import PlannedRows
from recordgen.core.task.task import Task
from recordgen.measures.likeness import find_alike
from recordgen.measures.pictures import picture_facts
from recordgen.options import ConvertOptions
from recordgen.storage import FileInfo


@dataclass(frozen=True)
class Answers:
    """A store whose answers are functions."""

    infos: Any
    contents: Any


def alike(pictures: Columns) -> Any:
    """Return which pictures are like which, as a run does."""
    return find_alike(picture_facts(pictures))


def resolve_bucket(
    placed: Columns,
    *,
    options: ConvertOptions,
    task: Task,
    infos: Any = lambda uris, sources: [FileInfo(1, "v")] * len(uris),
    contents: Any = lambda asked: [],
    **given: Any,
) -> tuple[dict[Group, Columns], BucketSummary]:
    """Resolve the only bucket, or one that does not depend on other buckets."""
    splits, store = splits_of(options), cast("PayloadStore", Answers(infos, contents))
    settled = settle_bucket(placed, splits=splits, task=task, store=store, **given)
    decided, by_label = None, options.shard_by == "label"
    if splits.decides_together:
        [(_, decided)] = decide({0: facts_of(settled.rows, task, splits)}, splits, alike)
    return plan_bucket(settled, splits=splits, task=task, by_label=by_label, decided=decided)


def plan_of(
    summaries: Iterable[BucketSummary],
    *,
    read: RowCounts,
    options: ConvertOptions,
    missing: str = "",
    **given: Any,
) -> Plan:
    """Make a plan of rows that need no labels, unless ``missing`` says why."""
    return make_plan(
        summaries,
        read=read,
        shard_bytes=options.shard_bytes,
        labels=Labels(mode=options.labels, vocabulary=options.vocabulary, missing=missing),
        share=options.eval_share,
        **given,
    )


def resolved(
    rows: Iterable[PlacedRow], **given: Any
) -> tuple[dict[Group, list[PlannedRow]], BucketSummary]:
    """Resolve a bucket of rows, see :func:`resolve_bucket`."""
    groups, summary = resolve_bucket(columns_of(PlacedRow, rows), **given)
    return {group: list(rows_of(PlannedRow, found)) for group, found in groups.items()}, summary


def planned(rows: Iterable[PlannedRow]) -> PlannedRows:
    """Return rows as the rows of a shard."""
    return PlannedRows([columns_of(PlannedRow, rows)])


def chosen(fractions: SplitFractions, split_hash: int) -> str:
    """Return the split of a row that names none."""
    [at] = shares_of(np.array([split_hash], np.uint64), fractions.weights)
    return fractions.names[at]


def bucket_of(sort_key: int, buckets: int) -> int:
    """Return the bucket of a sort key: equal ranges of 64 bits."""
    return sort_key * buckets >> 64


def record_of(task, row, payloads, vocabulary, settings):
    """Make the example of one planned row; return its record and digest."""
    batch = PlannedBatch(columns_of(PlannedRow, [row]))
    made = task.make(batch, [lambda: payloads], vocabulary, settings)
    [record] = made.records
    return b"".join(record), b"".join(made.digested)
