"""How planned rows are cut into shards. Pure functions.

What the buckets say of themselves (see :mod:`recordgen.planning.resolve`) is enough to cut every
group (a split, or with ``shard_by=label`` one label of a split) into shards of equal bytes:

    BucketSummary of every bucket ─make_plan─▶ Plan

Which rows are whose: :mod:`recordgen.planning.bucket_files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recordgen.dataset.manifest import RowCounts
from recordgen.dataset.splits import EVAL, EvalFrom, split_order
from recordgen.dataset.vocabulary import Vocabulary, build_vocabulary, extend_vocabulary
from recordgen.errors import DataError, UsageError
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.rows.planned import Group

# Every group is a file of its own at least, and every bucket counts its rows by group.
_MAX_GROUPS = 10_000


@dataclass(frozen=True)
class BucketSummary:
    """What a bucket's rows came to; the planned ones are counted by group.

    Attributes:
        rows: planned rows by group.
        bytes: their payloads' bytes by group.
        labels: planned rows by label; one with several labels counts for each.
        counts: what became of the others.
        rejects: rows left out, and why.
        moved: planned rows of ``eval`` that ``eval_from`` put there.
    """

    rows: Mapping[Group, int]
    bytes: Mapping[Group, int]
    labels: Mapping[str, int] = field(default_factory=dict)
    counts: RowCounts = field(default_factory=RowCounts)
    rejects: tuple[Reject, ...] = ()
    moved: int = 0


@dataclass(frozen=True)
class GroupPlan:
    """How one group is cut into shards.

    Attributes:
        rows: its rows.
        bytes: their payloads' bytes.
        first: the number of its first shard among those of the split.
        shards: how many shards it is cut into.
    """

    rows: int
    bytes: int
    first: int
    shards: int

    def shard_at(self, offset: int) -> int:
        """Return the shard in which a byte falls when the payloads are laid end to end."""
        return self.first + min(offset * self.shards // max(self.bytes, 1), self.shards - 1)


@dataclass(frozen=True)
class SplitPlan:
    """How one split is cut.

    Attributes:
        shards: shards of all its groups, and those that were there before.
        groups: by ``Group.label``, in the order in which their shards are numbered.
        first: the number of its first new shard: those before it are appended to.
    """

    shards: int
    groups: Mapping[str | None, GroupPlan]
    first: int = 0

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
    """The whole plan, small whatever the number of rows.

    Attributes:
        splits: by name; splits without rows are not there.
        vocabulary: labels of all planned rows.
        counts: what became of the rows that are not planned.
    """

    splits: Mapping[str, SplitPlan]
    vocabulary: Vocabulary
    counts: RowCounts

    @property
    def rows(self) -> int:
        """Rows that will be written unless their payloads are refused."""
        return sum(split.rows for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
        return sum(split.bytes for split in self.splits.values())


@dataclass(frozen=True)
class Base:
    """What a plan adds to.

    Attributes:
        shards: how many shards each split has already.
        vocabulary: the labels whose numbers stand in records already; None: there are none.
    """

    shards: Mapping[str, int] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None


def too_many(rejects: int, read: int, options: ConvertOptions) -> bool:
    """Say whether so many rejects among the rows read fail the run."""
    return rejects > options.max_reject_fraction * read


def make_plan(
    summaries: Iterable[BucketSummary],
    *,
    read: RowCounts,
    options: ConvertOptions,
    base: Base | None = None,
) -> Plan:
    """Cut every group into shards of about ``shard_bytes``, from the buckets' summaries alone.

    Args:
        summaries: of all buckets, in any order.
        read: what reading the import files came to.
        options: ``shard_mb``, ``labels`` and ``eval_from``.
        base: what is there already; None: nothing.

    Raises:
        UsageError: ``eval_from`` does not fit the rows, see :func:`check_eval_from`.
        DataError: the labels do not fit ``options.labels``, or are too many for shards of their
            own.
    """
    labels: Counter[str] = Counter()
    rows: Counter[Group] = Counter()
    size: Counter[Group] = Counter()
    counts, moved = [read], 0
    for summary in summaries:
        rows.update(summary.rows)
        size.update(summary.bytes)
        labels.update(summary.labels)
        counts.append(summary.counts)
        moved += summary.moved
    if len(rows) > _MAX_GROUPS:
        raise DataError(
            f"shard_by=label gives each label of each split files of its own: {len(rows):,} here, "
            f"more than the {_MAX_GROUPS:,} allowed; use shard_by=hash"
        )
    base = base or Base()
    if (share := options.eval_share) is not None:
        check_eval_from(share, rows, moved, base)
    groups: dict[str, dict[str | None, GroupPlan]] = {}
    shards: Counter[str] = Counter(base.shards)
    for group in sorted(rows, key=_numbered):
        split, label = group
        cut = max(1, min(rows[group], -(-size[group] // options.shard_bytes)))
        groups.setdefault(split, {})[label] = GroupPlan(
            rows[group], size[group], shards[split], cut
        )
        shards[split] += cut
    splits = {
        split: SplitPlan(shards[split], mine, base.shards.get(split, 0))
        for split, mine in groups.items()
    }
    if base.vocabulary is None:
        vocabulary = build_vocabulary(labels, options.labels)
    else:
        vocabulary = extend_vocabulary(base.vocabulary, labels)
    return Plan(splits, vocabulary, RowCounts.merge(counts))


def check_eval_from(share: EvalFrom, rows: Mapping[Group, int], moved: int, base: Base) -> None:
    """Check that ``eval`` gets rows from one split alone, and that this split has some.

    ``rows`` are those after the move, ``moved`` how many of them it put into ``eval``.

    Raises:
        UsageError: other rows are in ``eval``, or none are in the split that gives.
    """
    found: Counter[str] = Counter()
    for group, count in rows.items():
        found[group.split] += count
    if others := found[EVAL] - moved:
        raise UsageError(
            f"eval_from={share} needs an empty split eval, and {others:,} other rows are in it: "
            f"they name it, or were drawn into it; leave eval_from out, or keep rows that name no "
            f"split in train with split_fractions=100"
        )
    if found and not base.shards and not found[share.split] + moved:
        raise UsageError(
            f"eval_from={share}: no row is in split {share.split!r}; there are "
            f"{', '.join(sorted(found, key=split_order))}"
        )


def _numbered(group: Group) -> tuple[tuple[int, str], str]:
    """Return where a group's shards come: by split, then label."""
    return split_order(group.split), group.label or ""
