"""Lines of a table on their way to shards: columns of Arrow instead of an object for each row.

    Lines ──place──▶ LineBlocks by bucket ──resolve_lines──▶ PlannedLines by Group, BucketSummary
    PlannedLines ──encode──▶ blocks of a bucket's file ──lines_of──▶ PlannedLines of a shard

What becomes of a line is what :mod:`recordgen.planning.resolve` and :mod:`recordgen.planning.bucket_files` would make
of a row without a uri: it is an example of its own, placed by all that it says. Pure functions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.dataset.splits import EVAL, SECOND_DRAW, EvalFrom, SplitFractions
from recordgen.planning.bucket_files import ShardOutline
from recordgen.rows.placing import seeded_hash
from recordgen.rows.planned import BucketSummary, Group
from recordgen.rows.row import Lines
from recordgen.shards.lines import Columns, PlannedLines, packed, unpacked
from recordgen.tables.columns import Table
from recordgen.tables.examples import count_labels

# Made into examples together: enough for Arrow, and few beside the lines of a shard.
_BLOCK_LINES = 8192

# What a feature takes in a record beside its name and value, about.
_FEATURE_BYTES = 14


@dataclass(frozen=True)
class LineBlock:
    """Placed lines of an import file that travel together.

    Attributes:
        source: the file.
        data: columns ``order`` and ``draw`` (see :class:`recordgen.rows.placing.Place`), ``line``,
            ``split`` and ``text``.
    """

    source: str
    data: bytes


def place(lines: Lines, seed: int, buckets: int) -> Iterator[tuple[int, LineBlock]]:
    """Yield lines by bucket, each placed by its text."""
    if not lines.texts:
        return
    seeded = seeded_hash(seed)
    digests = []
    for text in lines.texts:
        hasher = seeded.copy()
        hasher.update(text.encode())
        digests.append(hasher.digest())
    places = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, 2)
    bucket_of = shares_of(places[:, 0], [1] * buckets)
    ordered = np.argsort(bucket_of, kind="stable")
    table = pa.table(
        {
            "order": places[:, 0],
            "draw": places[:, 1],
            "line": pa.array(lines.numbers, pa.int64()),
            "split": pa.array(lines.splits, pa.string()),
            "text": pa.array(lines.texts, pa.string()),
        }
    ).take(pa.array(ordered))
    found, starts = np.unique(bucket_of[ordered], return_index=True)
    ends = [*starts[1:].tolist(), len(ordered)]
    for bucket, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
        yield bucket, LineBlock(lines.source, packed(table.slice(start, end - start)))


def shares_of(numbers: npt.NDArray[np.uint64], weights: Sequence[int]) -> npt.NDArray[np.intp]:
    """Return in which share of the 64-bit range each number lies, int [n].

    Args:
        numbers: uint64 [n].
        weights: how large the shares are beside each other, in their order.
    """
    *ends, total = accumulate(weights)
    starts = [-(-(end << 64) // total) for end in ends]
    # A share that begins behind the range is empty, as are all that follow.
    inside = np.array([start for start in starts if start < 1 << 64], np.uint64)
    return np.searchsorted(inside, numbers, side="right")


def resolve_lines(
    bucket: int,
    blocks: Iterable[LineBlock],
    *,
    fractions: SplitFractions,
    share: EvalFrom | None,
    table: Table,
    drop_unnamed: bool,
) -> tuple[dict[Group, PlannedLines], BucketSummary]:
    """Decide for every line of a bucket which split it is in.

    Args:
        bucket: its number.
        blocks: all lines of the bucket, in any order.
        fractions: of lines that name no split.
        share: moves lines to ``eval``.
        table: the columns of the table.
        drop_unnamed: leave out lines without a split.

    Returns:
        Planned lines by group, in their order; and the summary.
    """
    lines = _ordered(list(blocks))
    placed = lines.num_rows
    if drop_unnamed:
        lines = lines.filter(pc.is_valid(lines["split"]))
    groups, moved = _in_splits(lines, fractions, share, table) if lines.num_rows else ({}, 0)
    labels: Counter[str] = Counter()
    for planned in groups.values():
        for block in planned.blocks:
            labels.update(count_labels(block.column("text"), table))
    summary = BucketSummary(
        bucket,
        {group: sum(map(len, planned.blocks)) for group, planned in groups.items()},
        {group: planned.payload_bytes for group, planned in groups.items()},
        dict(labels),
        duplicates=0,
        merged=0,
        dropped=placed - lines.num_rows,
        rejects=(),
        existing=0,
        moved=moved,
    )
    return groups, summary


def _in_splits(
    lines: Columns, fractions: SplitFractions, share: EvalFrom | None, table: Table
) -> tuple[dict[Group, PlannedLines], int]:
    """Return the lines by group, and how many of them moved to ``eval``."""
    draws = lines["draw"].to_numpy()
    drawn = pa.array(fractions.names).take(pa.array(shares_of(draws, fractions.weights)))
    splits = pc.coalesce(lines["split"], pa.chunked_array([drawn]))
    is_assigned = pc.is_null(lines["split"])
    moved = 0
    if share is not None:
        is_low = pa.chunked_array([pa.array((draws & np.uint64(SECOND_DRAW)) < share.end)])
        moves = pc.and_(pc.equal(splits, share.split), is_low)
        splits = pc.if_else(moves, EVAL, splits)
        is_assigned = pc.or_(is_assigned, moves)
        moved = pc.sum(moves).as_py() or 0
    in_names = sum(len(column.name) + _FEATURE_BYTES for column in table.stored)
    planned = pa.table(
        {
            "source": lines["source"],
            "line": lines["line"],
            "text": lines["text"],
            # Names stand in every record.
            "bytes": pc.add(pc.cast(pc.utf8_length(lines["text"]), pa.int64()), in_names),
            "drawn": is_assigned,
        }
    )
    groups = {}
    for split in pc.unique(splits).to_pylist():
        mine = planned.filter(pc.equal(splits, split)).combine_chunks()
        groups[Group(split, None)] = PlannedLines(mine.to_batches(max_chunksize=_BLOCK_LINES))
    return groups, moved


def _ordered(blocks: Sequence[LineBlock]) -> Columns:
    """Return the lines of several blocks in one table, with their ``source``, by place and line."""
    if not blocks:
        return pa.table({"split": pa.array([], pa.string()), "text": pa.array([], pa.string())})
    tables = [unpacked(pa.BufferReader(block.data)) for block in blocks]
    together = pa.concat_tables(tables).combine_chunks()
    sources = sorted({block.source for block in blocks})
    numbers = [sources.index(block.source) for block in blocks]
    source = np.repeat(np.array(numbers, np.int32), [table.num_rows for table in tables])
    together = together.append_column(
        "source", pa.DictionaryArray.from_arrays(pa.array(source), pa.array(sources))
    )
    keys = [together[name].to_numpy() for name in ("line", "draw", "order")]
    return together.take(pa.array(np.lexsort((keys[0], source, *keys[1:]))))


def lines_of(outline: ShardOutline, contents: Iterable[bytes]) -> PlannedLines:
    """Return the lines of a shard, given what its stretches hold; see ``stretches.rows_of``."""
    group, index = outline.group, outline.index
    found = []
    for stretch, content in zip(outline.stretches, contents, strict=True):
        offset = stretch.start
        file = pa.BufferReader(content)
        while file.tell() < len(content):
            for block in unpacked(file).to_batches():
                ends = offset + np.cumsum(block.column("bytes").to_numpy())
                starts = [offset, *ends[:-1].tolist()]
                first = bisect_left(starts, index, key=group.shard_at)
                last = bisect_right(starts, index, key=group.shard_at)
                if first < last:
                    found.append(block.slice(first, last - first))
                offset = int(ends[-1])
    return PlannedLines(found)
