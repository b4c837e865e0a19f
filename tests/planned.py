"""Single rows and hashes for tests of functions that take columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recordgen.core.dataset.splits import SplitFractions
from recordgen.core.planning.plan import BucketSummary
from recordgen.core.planning.resolve import plan_bucket, settle_bucket
from recordgen.core.rows.columns import Columns, columns_of, rows_of, shares_of
from recordgen.core.rows.planned import Group, PlacedRow, PlannedRow
from recordgen.core.shards.rows import PlannedRows
from recordgen.core.task.task import Task
from recordgen.options import ConvertOptions


def resolve_bucket(
    placed: Columns, *, options: ConvertOptions, task: Task, **given: Any
) -> tuple[dict[Group, Columns], BucketSummary]:
    """Resolve a bucket that does not depend on other buckets."""
    settled = settle_bucket(placed, options=options, task=task, **given)
    return plan_bucket(settled, options=options, task=task)


def resolved(
    rows: Iterable[PlacedRow], **given: Any
) -> tuple[dict[Group, list[PlannedRow]], BucketSummary]:
    """Resolve a bucket of rows, see :func:`resolve_bucket`."""
    groups, summary = resolve_bucket(columns_of(PlacedRow, rows), **given)
    return {group: list(rows_of(PlannedRow, found)) for group, found in groups.items()}, summary


def planned(rows: Iterable[PlannedRow]) -> PlannedRows:
    """Return rows as the rows of a shard."""
    return PlannedRows(columns_of(PlannedRow, rows))


def chosen(fractions: SplitFractions, split_hash: int) -> str:
    """Return the split of a row that names none."""
    [at] = shares_of(np.array([split_hash], np.uint64), fractions.weights)
    return fractions.names[at]


def bucket_of(sort_key: int, buckets: int) -> int:
    """Return the bucket of a sort key: equal ranges of 64 bits."""
    return sort_key * buckets >> 64
