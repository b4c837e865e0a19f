"""Rows as tuples, where the package has columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recordgen.planning.resolve import resolve_bucket
from recordgen.rows.columns import columns_of, rows_of
from recordgen.rows.planned import BucketSummary, Group, PlacedRow, PlannedRow
from recordgen.shards.rows import PlannedRows


def resolved(
    bucket: int, rows: Iterable[PlacedRow], **given: Any
) -> tuple[dict[Group, list[PlannedRow]], BucketSummary]:
    """Resolve a bucket of rows, see :func:`recordgen.planning.resolve.resolve_bucket`."""
    groups, summary = resolve_bucket(bucket, columns_of(PlacedRow, rows), **given)
    return {group: list(rows_of(PlannedRow, found)) for group, found in groups.items()}, summary


def planned(rows: Iterable[PlannedRow]) -> PlannedRows:
    """Return rows as those of a shard."""
    return PlannedRows(columns_of(PlannedRow, rows))
