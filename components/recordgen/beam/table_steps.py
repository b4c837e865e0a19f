"""The steps of the pipeline that differ for tables, whose lines go by columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from recordgen.beam.steps import ReadingStep, ResolveBuckets, summarised
from recordgen.options import ConvertOptions
from recordgen.planning.bucket_files import ShardOutline
from recordgen.planning.messages import ReadSummary, SplitsNamed
from recordgen.planning.resolve_lines import LineBlock, lines_of, place, resolve_lines
from recordgen.rejects import Reject
from recordgen.rows.planned import BucketSummary, Group
from recordgen.rows.row import BLOCK_ROWS
from recordgen.runs.staging import Staging
from recordgen.shards.lines import PlannedLines
from recordgen.sources.import_file import ImportFile
from recordgen.sources.table_csv import read_table
from recordgen.tables.columns import Table


class ReadLines(ReadingStep):
    """ImportFile, or lines of a DataFrame → (bucket, LineBlock), and (0, ReadSummary)."""

    def __init__(self, options: ConvertOptions, buckets: int, staging: Staging) -> None:
        super().__init__(staging)
        self._seed = options.seed
        self._table = Table.from_json(options.table)
        self._buckets = buckets

    def process(self, source: Any) -> Any:  # noqa: D102
        return self._reported(self._blocks(source))

    def _blocks(self, source: Any) -> Iterator[Any]:
        found = read_table(source.path, self._table) if isinstance(source, ImportFile) else source
        split = source.split if isinstance(source, ImportFile) else None
        rejects: list[Reject] = []
        for item in found:
            if not isinstance(item, Reject):
                lines = item if split is None else item.with_split(split)
                self._count(len(lines.texts), 0)
                yield from place(lines, self._seed, self._buckets)
                yield summarised(ReadSummary(len(lines.texts), any(lines.splits)))
                continue
            rejects.append(item)
            if len(rejects) == BLOCK_ROWS:
                yield self._summarised_rejects(rejects)
                rejects = []
        # Also of a source without a row: that nothing was read has to be known.
        yield self._summarised_rejects(rejects)

    def _summarised_rejects(self, rejects: Sequence[Reject]) -> tuple[int, ReadSummary]:
        self._count(len(rejects), len(rejects))
        return summarised(ReadSummary(len(rejects), rejects=tuple(rejects)))


class ResolveLines(ResolveBuckets):
    """(bucket, all that is of it) → (ALL, summary) of any kind; leaves the planned lines."""

    def __init__(self, options: ConvertOptions, staging: Staging) -> None:
        super().__init__(options, frozenset(), staging)

    def _planned(
        self, bucket: int, parts: Sequence[Any]
    ) -> tuple[Mapping[Group, Iterable[tuple[bytes, int]]], BucketSummary]:
        planned, summary = resolve_lines(
            bucket,
            [part for part in parts if isinstance(part, LineBlock)],
            fractions=self._options.split_fractions,
            share=self._options.eval_share,
            table=Table.from_json(self._options.table),
            drop_unnamed=any(isinstance(part, SplitsNamed) for part in parts),
        )
        return {group: lines.encode() for group, lines in planned.items()}, summary


def read_lines(staging: Staging, outline: ShardOutline) -> PlannedLines:
    """Return the lines of a shard. Raises: StorageError: they are not there."""
    return lines_of(outline, staging.read_blocks(outline))
