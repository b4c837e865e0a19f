"""The plan: the shards of each group, their rows, and the vocabulary. Pure functions.

Summaries of buckets (see :mod:`recordgen.core.planning.resolve`) are enough to cut every group
(a split, or with ``shard_by=label`` one label of a split) into shards of equal bytes:

    BucketSummary of every bucket ─make_plan─▶ Plan ─cut─▶ ShardOutline of every shard

An outline says which blocks of rows a shard has. What travels between the steps is here, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from recordgen.core.conversion import Labels
from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.splits import EVAL, TRAIN, EvalFrom, split_order
from recordgen.core.dataset.vocabulary import (
    Vocabulary,
    build_vocabulary,
    check_labels,
    extend_vocabulary,
)
from recordgen.core.rows.columns import (
    Columns,
    PlannedBatch,
    in_planned_order,
    packed,
    read_streams,
)
from recordgen.core.rows.row import Group
from recordgen.errors import DataError, LintError, NotUnderstoodError, UsageError
from recordgen.messages import listed
from recordgen.rejects import OddLine, Reject

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
        check_labels(new, rows.total() - counted.total(), labels.forms)
    if base.vocabulary is None:
        vocabulary = build_vocabulary(counted, labels.mode)
    else:
        vocabulary = extend_vocabulary(base.vocabulary, counted)
    return Plan(splits, vocabulary, RowCounts.merge(counts))


def check_train(plan: Plan, remedy: str) -> None:
    """Check that rows are in ``train``. Raises: NotUnderstoodError, with the remedy: none is."""
    if plan.splits and TRAIN not in plan.splits:
        found = listed([f"{split} ({each.rows:,})" for split, each in plan.splits.items()], str)
        reason = f"no row is in split train, only in {found}; {remedy}"
        raise NotUnderstoodError(reason, options={"split": "names=yes"})


def check_eval_from(share: EvalFrom, rows: Mapping[Group, int], moved: int, base: Base) -> None:
    """Check that ``eval`` gets rows from ``share.split`` only, and that this split has rows.

    Raises: UsageError: other rows are in ``eval``, or ``share.split`` has no rows.
    """
    found: Counter[str] = Counter()
    for group, count in rows.items():
        found[group.split] += count
    if others := found[EVAL] - moved:
        raise UsageError(
            f"eval_from={share} needs an empty split eval, but {others:,} other rows name it, or "
            f"were assigned to it without split=100; remove --eval-from"
        )
    if found and not base.shards and not found[share.split] + moved:
        raise UsageError(
            f"eval_from={share}: no row is in split {share.split!r}; the splits are "
            f"{listed(sorted(found, key=split_order), str)}"
        )


# --- messages between the steps ------------------------------------------------------------------

# Rows travel as columns. Only a runner that sends messages to other processes packs them.


@dataclass
class Settled:
    """Rows that become one example each, unless their payload is refused."""

    # Columns of PlacedRow; `origin`, a SplitOrigin; then `bytes` and `version` of the payload and,
    # if it was read, `content`.
    rows: Columns
    # Rows that contradict others, or are incomplete without a rejected row.
    rejects: list[Reject] = field(default_factory=list)
    # Rows of one example that name different splits.
    odd_lines: list[OddLine] = field(default_factory=list)
    # Duplicates, merged, dropped and existing rows, see RowCounts.
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows as columns, which are pickled as :func:`recordgen.core.rows.columns.packed` gives them.

    Arrow pickles a slice with all rows of its table, and an array in many objects.
    """

    columns: Columns

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), packed(self.columns))

    def __sizeof__(self) -> int:
        return int(self.columns.nbytes)


def _unpickled(kind: type[Block], data: bytes) -> Block:
    [columns] = read_streams(data)
    return kind(columns)


class RowBlock(Block):
    """Placed rows of one bucket."""


class KnownBlock(Block):
    """Known rows of one bucket, from the dataset that is appended to."""


@dataclass(frozen=True)
class LostRows:
    """Rejected rows of payloads in one bucket, whose other rows would be incomplete examples."""

    rejects: tuple[Reject, ...]


#: See :class:`FoundFile`.
CHANGES = "changes"


class FoundFile(NamedTuple):
    """A file of findings of one code, sorted, for ``lint.jsonl``, and its size in bytes.

    The code :data:`CHANGES` is of changes in rows, for ``findings.jsonl``.
    """

    code: str
    name: str
    bytes: int


class FoundTexts(NamedTuple):
    """What a step of the checks has found about the dataset as a whole."""

    step: str  # its name, which orders the texts
    about_all: Mapping[str, Sequence[str]]  # messages by code
    remarks: Sequence[str]  # what checks had to leave out


@dataclass(frozen=True)
class SettledFile:
    """The settled rows of a bucket, before or after the decision about all rows."""

    bucket: int
    file: str  # name of the file with the rows
    settled: Settled  # everything except the rows
    facts: Block  # facts for the decision; after it, what decide returns


@dataclass(frozen=True)
class SplitsNamed:
    """Tells a bucket that some row of the run names a split."""


@dataclass(frozen=True)
class ReadSummary:
    """Counts of some rows that were read."""

    read: int = 0  # number of rows
    named: bool = False  # whether any row names a split
    rejects: tuple[Reject, ...] = ()
    # Changes that made other rows usable, by kind.
    adjusted: Mapping[str, int] = field(default_factory=dict)
    # Files that list these changes, and what checks find in lines, whether or not their rows were
    # rejected.
    found: tuple[FoundFile, ...] = ()


# A shard reads whole blocks. A shard of large images has about a thousand rows; blocks of small
# payloads have more, so that a shard of them does not read very many.
_FEWEST_ROWS, _MOST_ROWS = 1000, 16_000
_BLOCK_BYTES = 4_000_000


class FileBlock(NamedTuple):
    """Some planned rows of one group in a bucket file."""

    length: int  # size of the rows in the file, in bytes
    bytes: int  # size of the rows' payloads


@dataclass(frozen=True)
class BucketFile:
    """The contents of a bucket file."""

    bucket: int
    file: str  # name of the file, empty without rows; each attempt at a bucket writes its own file
    blocks: Mapping[Group, Sequence[FileBlock]]  # blocks by group, in the order of the file


class ByteRange(NamedTuple):
    """Consecutive blocks of one group in a bucket file."""

    file: str
    offset: int  # of the first block in the file
    length: int  # of all blocks, in bytes
    start: int  # size of the group's payloads that come before these, in bytes


@dataclass(frozen=True)
class ShardOutline:
    """One planned shard, and the location of its rows."""

    split: str
    index: int
    count: int  # number of shards in the split
    label: str | None  # the label of its group
    group: GroupPlan  # the plan of its group
    # Parts of bucket files that hold its rows, in order, and maybe rows of other shards; empty if
    # the shard has no rows, because a payload is larger than a shard.
    byte_ranges: tuple[ByteRange, ...]


def encode_bucket(
    groups: Mapping[Group, Columns],
) -> tuple[bytes, Mapping[Group, Sequence[FileBlock]]]:
    """Return the content of a bucket file, and its blocks by group.

    Rows with the same sort key, which are in one bucket, are in the order of their uris and files.
    """
    blocks: dict[Group, list[FileBlock]] = {}
    contents: list[bytes] = []
    for group, columns in groups.items():
        ordered = in_planned_order(columns)
        rows = _block_rows(PlannedBatch(ordered))
        for start in range(0, len(ordered), rows):
            some = PlannedBatch(ordered.slice(start, rows))
            contents.append(packed(some.columns))
            found = FileBlock(len(contents[-1]), some.payload_bytes)
            blocks.setdefault(group, []).append(found)
    return b"".join(contents), blocks


def _block_rows(rows: PlannedBatch) -> int:
    size = rows.payload_bytes + rows.columns["annotation"].nbytes
    fitting = _BLOCK_BYTES * len(rows.columns) // max(1, size)
    return max(_FEWEST_ROWS, min(_MOST_ROWS, fitting))


def cut(plan: Plan, files: Iterable[BucketFile]) -> Iterator[ShardOutline]:
    """Yield every shard of a plan, with the byte ranges that hold its rows."""
    laid: dict[Group, dict[int, list[ByteRange]]] = defaultdict(dict)
    sizes: dict[Group, int] = defaultdict(int)
    for file in sorted(files, key=lambda item: item.bucket):
        offset = 0
        for group, blocks in file.blocks.items():
            cut_group = plan.splits[group.split].groups[group.label]
            for block in blocks:
                start = sizes[group]
                end = sizes[group] = start + block.bytes
                # Include the shard of the end: a row without bytes may be there.
                for index in range(cut_group.shard_at(start), cut_group.shard_at(end) + 1):
                    found = laid[group].setdefault(index, [])
                    _extend(found, ByteRange(file.file, offset, block.length, start))
                offset += block.length
    for split, cut_split in plan.splits.items():
        for label, cut_group in cut_split.groups.items():
            shards = laid[Group(split, label)]
            for index in range(cut_group.first, cut_group.first + cut_group.shards):
                byte_ranges = tuple(shards.get(index, ()))
                yield ShardOutline(split, index, cut_split.shards, label, cut_group, byte_ranges)


def _extend(byte_ranges: list[ByteRange], following: ByteRange) -> None:
    """Add a byte range, or extend the last one if they are adjacent: one read for both."""
    if byte_ranges:
        last = byte_ranges[-1]
        if (last.file, last.offset + last.length) == (following.file, following.offset):
            byte_ranges[-1] = last._replace(length=last.length + following.length)
            return
    byte_ranges.append(following)


def planned_rows(outline: ShardOutline, contents: Iterable[bytes]) -> Iterator[Columns]:
    """Yield the rows of a shard in parts, in order, given the contents of its byte ranges.

    A row belongs to the shard that contains its first byte if the group's payloads are laid end to
    end: shards are contiguous ranges, equal in bytes.
    """
    group, index = outline.group, outline.index
    for byte_range, content in zip(outline.byte_ranges, contents, strict=True):
        offset = byte_range.start
        for block in read_streams(content):
            ends = offset + np.cumsum(block["bytes"].to_numpy())
            starts = [offset, *ends[:-1].tolist()]
            first = bisect_left(starts, index, key=group.shard_at)
            last = bisect_right(starts, index, key=group.shard_at)
            yield block.slice(first, max(0, last - first))
            offset = int(ends[-1])
