"""Plan with rows only: which rows are kept, in which split, in which shard. Pure functions.

A row's place is a hash of (seed, uri). All rows of one uri fall into the same bucket, a range of
that hash; a bucket is resolved on its own, and what the buckets say of themselves is enough to
cut every group (a split, or with ``shard_by=label`` one label of a split) into shards of equal
bytes:

    rows ─place─▶ bucket ─resolve_bucket─▶ PlannedRows by Group + BucketSummary
                                                                        └─make_plan─▶ Plan
    PlannedRows of a Group + Plan ─shard_rows─▶ shard, rows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeVar

from recordgen import storage
from recordgen.errors import DataError, PayloadError
from recordgen.labels import Vocabulary, build_vocabulary
from recordgen.options import ConvertOptions
from recordgen.rows import Place, Reject, RejectCode, Row, place, reject
from recordgen.splits import SPLITS
from recordgen.storage import FileInfo

# Every group is a file of its own at least, and every bucket counts its rows by group.
_MAX_GROUPS = 10_000

_Answer = TypeVar("_Answer")


class PlacedRow(NamedTuple):
    """A row and its place."""

    place: Place
    row: Row


class PlannedRow(NamedTuple):
    """A row that will become an example unless its payload is refused.

    Attributes:
        order: its position among all rows (64 bit).
        source: the import file that names it.
        line: 1-based line in that file.
        uri: the payload's address as given.
        label: the label's text or None.
        bytes: the payload's size.
        version: changes when the payload does.
        drawn: its split was drawn, not named.
    """

    order: int
    source: str
    line: int
    uri: str
    label: str | None
    bytes: int
    version: str
    drawn: bool


class Group(NamedTuple):
    """The planned rows that share shards.

    Attributes:
        split: their split.
        label: the one label of them all, "" if they have none; None: their labels are mixed.
    """

    split: str
    label: str | None


@dataclass(frozen=True)
class BucketSummary:
    """What a bucket's rows came to; the planned ones are counted by group.

    Attributes:
        bucket: its number; buckets are ranges of ``Place.order``, in that order.
        rows: planned rows by group.
        bytes: their payloads' bytes by group.
        labels: planned rows by label.
        duplicates: rows that say what another row says.
        dropped: rows without a split, left out on request.
        rejects: rows left out, and why.
    """

    bucket: int
    rows: Mapping[Group, int]
    bytes: Mapping[Group, int]
    labels: Mapping[str, int]
    duplicates: int
    dropped: int
    rejects: tuple[Reject, ...]


@dataclass(frozen=True)
class GroupPlan:
    """How one group is cut into shards.

    Attributes:
        rows: its rows.
        bytes: their payloads' bytes.
        first: the number of its first shard among those of the split.
        shards: how many shards it is cut into.
        starts: ``starts[bucket]`` is where a bucket begins among its bytes, for each bucket that
            holds any of its rows.
    """

    rows: int
    bytes: int
    first: int
    shards: int
    starts: Mapping[int, int]


@dataclass(frozen=True)
class SplitPlan:
    """How one split is cut.

    Attributes:
        shards: shards of all its groups.
        groups: by ``Group.label``, in the order in which their shards are numbered.
    """

    shards: int
    groups: Mapping[str | None, GroupPlan]

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
        read: rows in the import files.
        duplicates: see BucketSummary.
        dropped: see BucketSummary.
        rejected: rows rejected so far, by reason.
    """

    splits: Mapping[str, SplitPlan]
    vocabulary: Vocabulary
    read: int
    duplicates: int
    dropped: int
    rejected: Mapping[str, int]

    @property
    def rows(self) -> int:
        """Rows that will be written unless their payloads are refused."""
        return sum(split.rows for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def rejects(self) -> int:
        """Rows rejected so far."""
        return sum(self.rejected.values())


def too_many(rejects: int, read: int, options: ConvertOptions) -> bool:
    """Say whether so many rejects among the rows read fail the run."""
    return rejects > options.max_reject_fraction * read


def bucket_of(order: int, buckets: int) -> int:
    """Return the bucket of a place: equal ranges of the 64-bit order."""
    return order * buckets >> 64


def merge_rows(rows: Sequence[Row]) -> tuple[Row | None, list[Reject], int]:
    """Merge the rows of one uri: the row that stands for them, rejects, and duplicates.

    The first row (by file, then line) wins; a split or label that it leaves open is filled from
    the others. Labels that differ reject all rows, a split that differs rejects that row.
    """
    if len(rows) == 1:
        return rows[0], [], 0
    ordered = sorted(rows, key=lambda row: (row.source, row.line))
    labels = sorted({row.label for row in ordered if row.label is not None})
    if len(labels) > 1:
        message = (
            f"one image, several labels: {', '.join(map(repr, labels))} in "
            f"{', '.join(f'{row.source}:{row.line}' for row in ordered[:5])}; keep one"
        )
        return None, [reject(row, RejectCode.CONFLICTING_LABELS, message) for row in ordered], 0
    named = next((row for row in ordered if row.split is not None), ordered[0])
    conflicts = [
        reject(
            row,
            RejectCode.CONFLICTING_SPLITS,
            f"split {row.split!r} contradicts {named.split!r} of {named.source}:{named.line}, "
            f"which is kept",
        )
        for row in ordered
        if row.split not in (None, named.split)
    ]
    kept = ordered[0]._replace(split=named.split, label=labels[0] if labels else None)
    return kept, conflicts, len(ordered) - 1 - len(conflicts)


def resolve_bucket(
    bucket: int,
    placed: Iterable[PlacedRow],
    *,
    options: ConvertOptions,
    drop_unnamed: bool,
    infos: Callable[[Sequence[Row]], Iterable[FileInfo | PayloadError]],
    content_keys: Callable[[Sequence[Row]], Iterable[bytes | PayloadError]],
) -> tuple[dict[Group, list[PlannedRow]], BucketSummary]:
    """Decide for every row of a bucket: planned in a group, duplicate, dropped or rejected.

    Args:
        bucket: its number.
        placed: all rows of the bucket, in any order.
        options: seed, split fractions, split_by, shard_by.
        drop_unnamed: leave out rows without a split.
        infos: returns each payload's size and version, or why it is refused.
        content_keys: returns each payload's sha256; called only for ``split_by=content``.

    Returns:
        Planned rows by group, in their order; and the summary.
    """
    rejects: list[Reject] = []
    duplicates = dropped = 0
    kept: list[PlacedRow] = []
    # Relative uris of import files in different folders are different payloads.
    for (where, _), same in groupby(sorted(placed, key=_payload), key=_payload):
        row, conflicts, repeated = merge_rows([item.row for item in same])
        rejects += conflicts
        duplicates += repeated
        if row is None:
            continue
        if row.split is None and drop_unnamed:
            dropped += 1
        else:
            kept.append(PlacedRow(where, row))

    found = list(_without_refused(kept, infos([item.row for item in kept]), rejects))
    if options.split_by == "content":
        found = list(_draw_by_content(found, options.seed, content_keys, rejects))
    by_group: dict[Group, list[PlannedRow]] = {}
    labels: Counter[str] = Counter()
    for (where, row), info in found:
        split = row.split or options.split_fractions.choose(where.draw)
        group = Group(split, (row.label or "") if options.shard_by == "label" else None)
        by_group.setdefault(group, []).append(
            PlannedRow(
                where.order, row.source, row.line, row.uri, row.label, *info, row.split is None
            )
        )
        if row.label is not None:
            labels[row.label] += 1
    summary = BucketSummary(
        bucket,
        {group: len(rows) for group, rows in by_group.items()},
        {group: sum(row.bytes for row in rows) for group, rows in by_group.items()},
        dict(labels),
        duplicates,
        dropped,
        tuple(rejects),
    )
    return by_group, summary


def _payload(item: PlacedRow) -> tuple[Place, str]:
    return item.place, storage.resolve(item.row.uri, item.row.source)


def _without_refused(
    items: Iterable[PlacedRow], answers: Iterable[_Answer | PayloadError], rejects: list[Reject]
) -> Iterator[tuple[PlacedRow, _Answer]]:
    """Pair rows with what was asked about them; refusals become rejects."""
    for item, answer in zip(items, answers, strict=True):
        if isinstance(answer, PayloadError):
            row = item.row
            rejects.append(Reject(row.source, row.line, row.uri, answer.code, answer.message))
        else:
            yield item, answer


def _draw_by_content(
    found: Sequence[tuple[PlacedRow, FileInfo]],
    seed: int,
    content_keys: Callable[[Sequence[Row]], Iterable[bytes | PayloadError]],
    rejects: list[Reject],
) -> Iterator[tuple[PlacedRow, FileInfo]]:
    """Give rows whose split is drawn the lottery ticket of their content."""
    unnamed = [item for item, _ in found if item.row.split is None]
    answers = content_keys([item.row for item in unnamed])
    keys = dict(_without_refused(unnamed, answers, rejects))
    for item, info in found:
        if item.row.split is not None:
            yield item, info
        elif item in keys:
            ticket = place(seed, keys[item]).draw
            yield PlacedRow(Place(item.place.order, ticket), item.row), info


def make_plan(
    summaries: Iterable[BucketSummary],
    *,
    read: int,
    parse_rejected: Mapping[str, int],
    options: ConvertOptions,
) -> Plan:
    """Cut every group into shards of about ``shard_bytes``, from the buckets' summaries alone.

    Args:
        summaries: of all buckets, in any order.
        read: rows in the import files.
        parse_rejected: rows rejected before they had a bucket, by reason.
        options: ``shard_mb`` and ``labels``.

    Raises:
        DataError: the labels do not fit ``options.labels``, or are too many for shards of their
            own.
    """
    labels: Counter[str] = Counter()
    rejected: Counter[str] = Counter(parse_rejected)
    rows: Counter[Group] = Counter()
    size: Counter[Group] = Counter()
    starts: dict[Group, dict[int, int]] = {}
    duplicates = dropped = 0
    for summary in sorted(summaries, key=lambda item: item.bucket):
        for group, count in summary.rows.items():
            starts.setdefault(group, {})[summary.bucket] = size[group]
            rows[group] += count
            size[group] += summary.bytes[group]
        labels.update(summary.labels)
        rejected.update(item.code for item in summary.rejects)
        duplicates += summary.duplicates
        dropped += summary.dropped
    if len(rows) > _MAX_GROUPS:
        raise DataError(
            f"shard_by=label gives each label of each split files of its own: {len(rows):,} here, "
            f"more than the {_MAX_GROUPS:,} allowed; use shard_by=hash"
        )
    groups: dict[str, dict[str | None, GroupPlan]] = {}
    shards: Counter[str] = Counter()
    for group in sorted(rows, key=_numbered):
        split, label = group
        cut = max(1, min(rows[group], -(-size[group] // options.shard_bytes)))
        groups.setdefault(split, {})[label] = GroupPlan(
            rows[group], size[group], shards[split], cut, starts[group]
        )
        shards[split] += cut
    splits = {split: SplitPlan(shards[split], mine) for split, mine in groups.items()}
    vocabulary = build_vocabulary(labels, options.labels)
    return Plan(splits, vocabulary, read, duplicates, dropped, dict(rejected))


def _numbered(group: Group) -> tuple[int, str, str]:
    """Return where a group's shards come: by split (train, eval, test, others), then label."""
    known = SPLITS.index(group.split) if group.split in SPLITS else len(SPLITS)
    return known, group.split, group.label or ""


def shard_rows(
    bucket: int, rows: Sequence[PlannedRow], plan: GroupPlan
) -> Iterator[tuple[int, list[PlannedRow]]]:
    """Cut one bucket's rows of one group into runs, each with its shard's index in the split.

    A row belongs to the shard in which its first byte falls when the group's payloads are laid
    end to end in order: shards are contiguous ranges of that order, equal in bytes.
    """
    offset = plan.starts[bucket]
    run: list[PlannedRow] = []
    current = plan.first
    for row in rows:
        shard = plan.first + min(offset * plan.shards // max(plan.bytes, 1), plan.shards - 1)
        if run and shard != current:
            yield current, run
            run = []
        current = shard
        run.append(row)
        offset += row.bytes
    if run:
        yield current, run
