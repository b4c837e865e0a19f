"""The plan: the shards of each group, and the vocabulary. Pure functions.

Summaries of buckets (see :mod:`recordgen.core.planning.resolve`) are enough to cut every group
(a split, or with ``shard_by=label`` one label of a split) into shards of equal bytes:

    BucketSummary of every bucket ─make_plan─▶ Plan

:mod:`recordgen.core.planning.messages` assigns rows to shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.splits import EVAL, TRAIN, EvalFrom, split_order
from recordgen.core.dataset.vocabulary import (
    Vocabulary,
    build_vocabulary,
    check_labels,
    extend_vocabulary,
)
from recordgen.core.rows.row import Group
from recordgen.core.settings import Labels
from recordgen.errors import DataError, LintError, UsageError
from recordgen.messages import listed
from recordgen.rejects import Reject

# Every group needs at least one file, and every bucket counts its rows by group.
_MAX_GROUPS = 10_000


@dataclass(frozen=True)
class BucketSummary:
    """Counts of the rows of a bucket."""

    rows: Mapping[Group, int]  # planned rows by group
    bytes: Mapping[Group, int]  # their payloads' bytes by group
    # Planned rows by label; a row with several labels counts for each of them.
    labels: Mapping[str, int] = field(default_factory=dict)
    counts: RowCounts = field(default_factory=RowCounts)  # counts of the other rows
    rejects: tuple[Reject, ...] = ()
    moved: int = 0  # planned rows that `eval_from` moved to `eval`
    named: bool = True  # whether all planned rows name their splits


@dataclass(frozen=True)
class GroupPlan:
    """The shards of one group."""

    rows: int
    bytes: int  # bytes of their payloads
    first: int  # number of its first shard in the split
    shards: int

    def shard_at(self, offset: int) -> int:
        """Return the shard of a byte offset if the group's payloads are laid end to end."""
        return self.first + min(offset * self.shards // max(self.bytes, 1), self.shards - 1)


@dataclass(frozen=True)
class SplitPlan:
    """The shards of one split."""

    shards: int  # number of shards, existing ones included
    groups: Mapping[str | None, GroupPlan]  # by `Group.label`, in the order of their shards
    first: int = 0  # number of its first new shard; existing shards come before it

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return sum(group.rows for group in self.groups.values())

    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
        return sum(group.bytes for group in self.groups.values())


@dataclass(frozen=True)
class Plan:
    """The whole plan; its size does not depend on the number of rows."""

    splits: Mapping[str, SplitPlan]  # by name, without empty splits
    vocabulary: Vocabulary
    counts: RowCounts  # counts of the rows that are not planned


@dataclass(frozen=True)
class Base:
    """The existing dataset, or its labels, that a plan adds to."""

    shards: Mapping[str, int] = field(default_factory=dict)  # number of existing shards by split
    # Labels whose numbers are fixed, or None if there are none.
    vocabulary: Vocabulary | None = None


def too_many(rejects: int, read: int, most: float) -> bool:
    """Return whether a run with this number of rejects fails; ``most`` is the allowed share."""
    return rejects > most * read


def make_plan(
    summaries: Iterable[BucketSummary],
    *,
    read: RowCounts,
    shard_bytes: int,
    labels: Labels,
    share: EvalFrom | None = None,
    without_eval: str = "",
    base: Base | None = None,
) -> Plan:
    """Cut every group into shards of about ``shard_bytes``.

    Raises:
        UsageError: ``eval_from`` does not fit the rows, see :func:`check_eval_from`.
        LintError: no row is in ``eval``, which ``without_eval`` refuses.
        NotUnderstoodError: labels are no names, see :func:`check_labels`.
        DataError: the labels do not fit ``labels.mode``, or there are none; or
            ``shard_by=label`` would make too many groups.
    """
    counted: Counter[str] = Counter()
    rows: Counter[Group] = Counter()
    size: Counter[Group] = Counter()
    counts, moved = [read], 0
    for summary in summaries:
        rows.update(summary.rows)
        size.update(summary.bytes)
        counted.update(summary.labels)
        counts.append(summary.counts)
        moved += summary.moved
    if len(rows) > _MAX_GROUPS:
        raise DataError(
            f"shard_by=label writes separate files for each label of each split: {len(rows):,} "
            f"here, more than the {_MAX_GROUPS:,} allowed; use shard_by=hash"
        )
    base = base or Base()
    if share is not None:
        check_eval_from(share, rows, moved, base)
    groups: dict[str, dict[str | None, GroupPlan]] = {}
    shards: Counter[str] = Counter(base.shards)
    # Shards are numbered by split, then label.
    for group in sorted(rows, key=lambda group: (split_order(group.split), group.label or "")):
        split, label = group
        cut = max(1, min(rows[group], -(-size[group] // shard_bytes)))
        groups.setdefault(split, {})[label] = GroupPlan(
            rows[group], size[group], shards[split], cut
        )
        shards[split] += cut
    splits = {
        split: SplitPlan(shards[split], mine, base.shards.get(split, 0))
        for split, mine in groups.items()
    }
    if without_eval and TRAIN in shards and EVAL not in shards:
        raise LintError(without_eval)
    if labels.missing and rows and not counted and not base.shards:
        raise DataError(f"none of the {sum(rows.values()):,} rows has a label, {labels.missing}")
    if labels.forms is not None:
        named = base.vocabulary.names if base.vocabulary is not None else ()
        new = {label: counted[label] for label in counted.keys() - {*named}}
        check_labels(new, labels.forms)
    if base.vocabulary is None:
        vocabulary = build_vocabulary(counted, labels.mode)
    else:
        vocabulary = extend_vocabulary(base.vocabulary, counted)
    return Plan(splits, vocabulary, RowCounts.merge(counts))


def check_train(plan: Plan, remedy: str) -> None:
    """Check that rows are in ``train``. Raises: UsageError, with the ``remedy``: none is."""
    if plan.splits and TRAIN not in plan.splits:
        found = listed([f"{split} ({each.rows:,})" for split, each in plan.splits.items()], str)
        raise UsageError(f"no row is in split train, only in {found}; {remedy}")


def check_eval_from(share: EvalFrom, rows: Mapping[Group, int], moved: int, base: Base) -> None:
    """Check that ``eval`` gets rows from ``share.split`` only, and that this split has rows.

    Raises: UsageError: other rows are in ``eval``, or ``share.split`` has no rows.
    """
    found: Counter[str] = Counter()
    for group, count in rows.items():
        found[group.split] += count
    if others := found[EVAL] - moved:
        raise UsageError(
            f"eval_from={share} needs an empty split eval, but {others:,} other rows name it or "
            f"were assigned to it; remove --eval-from, or assign all rows without a split to train "
            f"with split=100"
        )
    if found and not base.shards and not found[share.split] + moved:
        raise UsageError(
            f"eval_from={share}: no row is in split {share.split!r}; the splits are "
            f"{listed(sorted(found, key=split_order), str)}"
        )
