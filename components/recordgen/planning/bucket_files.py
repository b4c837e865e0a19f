"""Planned rows on their way from buckets to shards: files that lie between the two.

A bucket's rows are left in one file, group after group, each in blocks. Laid end to end in the
order of buckets, the blocks of a group are its payloads' bytes, of which a shard is a range:

    planned rows by Group ──encode_bucket──▶ a file, BucketFile
    Plan + BucketFiles ──cut──▶ ShardOutline of every shard
    ShardOutline + blocks ──planned_rows──▶ the planned rows of the shard

Pure functions; :class:`recordgen.runs.staging.Staging` writes and reads the files.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recordgen.planning.plan import GroupPlan, Plan
from recordgen.rows.columns import (
    Columns,
    PlannedBatch,
    in_planned_order,
    packed,
    together,
    unpacked,
)
from recordgen.rows.planned import Group, PlannedRow

# A shard reads whole blocks: of large images it has a thousand, of small ones it takes many blocks.
_BLOCK_ROWS = 1000


class Block(NamedTuple):
    """Some planned rows of one group, as they lie in their bucket's file.

    Attributes:
        length: what they take there, in bytes.
        bytes: of the rows' payloads.
    """

    length: int
    bytes: int


@dataclass(frozen=True)
class BucketFile:
    """Where the planned rows of a bucket lie.

    Attributes:
        bucket: its number.
        file: its name; each attempt at a bucket writes one of its own.
        blocks: by group, as they follow each other in the file.
    """

    bucket: int
    file: str
    blocks: Mapping[Group, Sequence[Block]]


class ByteRange(NamedTuple):
    """Blocks of one group that follow each other in a file.

    Attributes:
        file: its name.
        offset: of the first block in the file.
        length: of all of them, in bytes.
        start: what lies before their payloads among those of the group, in bytes.
    """

    file: str
    offset: int
    length: int
    start: int


@dataclass(frozen=True)
class ShardOutline:
    """What the plan says of a shard, and where its rows lie.

    Attributes:
        split: its split.
        index: its number in the split.
        count: number of shards in the split.
        label: the one label of all its rows, as its group has it.
        group: how its group is cut.
        byte_ranges: hold its rows, in order, and may hold rows of its neighbours; empty if it has
            none: a payload larger than a shard leaves others without rows.
    """

    split: str
    index: int
    count: int
    label: str | None
    group: GroupPlan
    byte_ranges: tuple[ByteRange, ...]


def encode_bucket(
    bucket: int, file: str, groups: Mapping[Group, Columns]
) -> tuple[bytes, BucketFile]:
    """Return the content of a bucket's file, and what is where in it."""
    blocks: dict[Group, list[Block]] = {}
    contents: list[bytes] = []
    for group, columns in groups.items():
        for start in range(0, len(columns), _BLOCK_ROWS):
            some = PlannedBatch(columns.slice(start, _BLOCK_ROWS))
            contents.append(packed(some.columns))
            found = Block(len(contents[-1]), some.payload_bytes)
            blocks.setdefault(group, []).append(found)
    return b"".join(contents), BucketFile(bucket, file, blocks)


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
                # The end, too: a row without bytes may stand there.
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
    """Add what may follow the last byte range in the same file: one read for both."""
    if byte_ranges:
        last = byte_ranges[-1]
        if (last.file, last.offset + last.length) == (following.file, following.offset):
            byte_ranges[-1] = last._replace(length=last.length + following.length)
            return
    byte_ranges.append(following)


def planned_rows(outline: ShardOutline, contents: Iterable[bytes]) -> Columns:
    """Return the rows of a shard, in order, given what its byte ranges hold.

    A row belongs to the shard in which its first byte falls when the group's payloads are laid
    end to end: shards are contiguous ranges, equal in bytes. Rows that share a place stand in the
    order of their uris and import files.
    """
    group, index = outline.group, outline.index
    found = []
    for byte_range, content in zip(outline.byte_ranges, contents, strict=True):
        offset = byte_range.start
        for block in unpacked(content):
            ends = offset + np.cumsum(block["bytes"].to_numpy())
            starts = [offset, *ends[:-1].tolist()]
            first = bisect_left(starts, index, key=group.shard_at)
            last = bisect_right(starts, index, key=group.shard_at)
            if first < last:
                found.append(block.slice(first, last - first))
            offset = int(ends[-1])
    return in_planned_order(together(PlannedRow, found))
