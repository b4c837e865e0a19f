"""Planned rows on their way from buckets to shards: files that lie between the two.

A bucket's rows are left in one file, group after group, each in blocks. Laid end to end in the
order of buckets, the blocks of a group are its payloads' bytes, of which a shard is a range:

    PlannedRows by Group ──encode_rows──▶ lines ──encode_bucket──▶ a file, BucketFile
    Plan + BucketFiles ──cut──▶ ShardOutline of every shard
    ShardOutline + lines ──rows_of──▶ its PlannedRows

Lines of a table have blocks of another kind, see :mod:`recordgen.planning.resolve_lines`. Pure functions;
:class:`recordgen.runs.staging.Staging` writes and reads the files.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recordgen.planning.plan import GroupPlan, Plan
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


class Stretch(NamedTuple):
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
        stretches: hold its rows, in order, and may hold rows of its neighbours; empty if it has
            none: a payload larger than a shard leaves others without rows.
    """

    split: str
    index: int
    count: int
    label: str | None
    group: GroupPlan
    stretches: tuple[Stretch, ...]


def encode_rows(rows: Sequence[PlannedRow]) -> Iterator[tuple[bytes, int]]:
    """Yield a line for each block of rows, and their payloads' bytes."""
    for start in range(0, len(rows), _BLOCK_ROWS):
        some = rows[start : start + _BLOCK_ROWS]
        line = json.dumps(some, separators=(",", ":")).encode("ascii") + b"\n"
        yield line, sum(row.bytes for row in some)


def encode_bucket(
    bucket: int, file: str, groups: Mapping[Group, Iterable[tuple[bytes, int]]]
) -> tuple[bytes, BucketFile]:
    """Return the content of a bucket's file, and what is where in it.

    Args:
        bucket: its number.
        file: the file's name.
        groups: encoded blocks of rows by group, and their payloads' bytes.
    """
    blocks: dict[Group, list[Block]] = {}
    contents: list[bytes] = []
    for group, encoded in groups.items():
        for content, size in encoded:
            contents.append(content)
            blocks.setdefault(group, []).append(Block(len(content), size))
    return b"".join(contents), BucketFile(bucket, file, blocks)


def cut(plan: Plan, files: Iterable[BucketFile]) -> Iterator[ShardOutline]:
    """Yield every shard of a plan, with the stretches that hold its rows."""
    laid: dict[Group, dict[int, list[Stretch]]] = defaultdict(dict)
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
                    _extend(found, Stretch(file.file, offset, block.length, start))
                offset += block.length
    for split, cut_split in plan.splits.items():
        for label, cut_group in cut_split.groups.items():
            shards = laid[Group(split, label)]
            for index in range(cut_group.first, cut_group.first + cut_group.shards):
                stretches = tuple(shards.get(index, ()))
                yield ShardOutline(split, index, cut_split.shards, label, cut_group, stretches)


def _extend(stretches: list[Stretch], following: Stretch) -> None:
    """Add what may follow the last stretch in the same file: one read for both."""
    if stretches:
        last = stretches[-1]
        if (last.file, last.offset + last.length) == (following.file, following.offset):
            stretches[-1] = last._replace(length=last.length + following.length)
            return
    stretches.append(following)


def rows_of(outline: ShardOutline, contents: Iterable[bytes]) -> Iterator[PlannedRow]:
    """Yield the rows of a shard, in order, given what its stretches hold.

    A row belongs to the shard in which its first byte falls when the group's payloads are laid
    end to end: shards are contiguous ranges, equal in bytes.
    """
    for stretch, content in zip(outline.stretches, contents, strict=True):
        offset = stretch.start
        for line in content.splitlines():
            for row in map(PlannedRow._make, json.loads(line)):
                if outline.group.shard_at(offset) == outline.index:
                    yield row
                offset += row.bytes
