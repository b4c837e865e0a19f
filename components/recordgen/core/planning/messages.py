"""Messages between the steps of a conversion: blocks of rows, files and summaries.

Rows travel as columns. Only a runner that sends messages to other processes packs them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from recordgen.core.planning.plan import GroupPlan, Plan
from recordgen.core.planning.resolve import Settled
from recordgen.core.rows.columns import (
    Columns,
    PlannedBatch,
    in_planned_order,
    packed,
    read_streams,
)
from recordgen.core.rows.row import Group
from recordgen.rejects import Reject


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


class FindingsFile(NamedTuple):
    """A file of findings of one import file, in order; sorted, these files order all findings."""

    source: str  # import file of the first finding
    line: int  # line of the first finding
    number: int  # number of this file among the files of its writer, from 0
    file: str  # name of the file; each attempt at reading rows writes its own file


class FoundFile(NamedTuple):
    """A file of findings of one code, sorted, for ``lint.jsonl``, and its size in bytes."""

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
    findings: tuple[FindingsFile, ...] = ()  # files that list these changes
    # Findings of the checks in lines, whether or not their rows were rejected.
    odd_lines: tuple[FoundFile, ...] = ()


# A shard reads whole blocks. A shard of large images has about a thousand rows; a shard of small
# images reads many blocks.
_BLOCK_ROWS = 1000


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
        for start in range(0, len(ordered), _BLOCK_ROWS):
            some = PlannedBatch(ordered.slice(start, _BLOCK_ROWS))
            contents.append(packed(some.columns))
            found = FileBlock(len(contents[-1]), some.payload_bytes)
            blocks.setdefault(group, []).append(found)
    return b"".join(contents), blocks


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
