"""The checks of examples as steps of the graph, after the shards.

    shard ─AssignBatches─▶ batches of shards
          ─NoteKeys──────▶ what other batches must know: keys by bucket
          ─JoinKeys──────▶ for each batch: its examples that others are like
          ─UniteGroups───▶ the same for examples that are nearly the same, from all their buckets
          ─ExamineBatches▶ findings about single examples; facts of those that others are like
          ─ExamineGroups─▶ findings about examples together
          ─MergeFound────▶ staging: all findings of a code, by import file and line

Keys go to buckets by their hash, so that a bucket fits in memory whatever the number of examples.
Keys and facts wait in the staging folder; what travels is where they are.
"""

from __future__ import annotations

import posixpath
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen import storage
from recordgen.checks import copies
from recordgen.checks.check import ALIKE, EACH, GROUP, KEPT, KEYED, UNDIVIDED, ExampleFacts
from recordgen.conversion.examination import (
    BATCH,
    FOUND,
    NEAR,
    UNITE,
    Alike,
    Examination,
    Key,
    Message,
    Places,
    Rows,
    Stage,
)
from recordgen.core.dataset.counts import Shard
from recordgen.core.dataset.manifest import shard_place
from recordgen.core.facts.columns import Columns
from recordgen.core.flow.runner import Each, Flow, MergeFound, Runner
from recordgen.core.ordered import map_in_order
from recordgen.core.planning.appending import Existing, ExistingGroup
from recordgen.core.planning.plan import FoundTexts
from recordgen.core.rows.columns import grouped, mixed
from recordgen.core.runs.staging import Staging
from recordgen.measures.likeness import Forest, Indices

# Examples that are looked at together.
_AT_ONCE = 1 << 20

# Pictures and mirror images in a crowd from which on pairs are missed: below, all are compared.
_CROWD = 1000


class Size(NamedTuple):
    """The number of examples in a batch of shards."""

    batch: int
    examples: int


class Crowd(NamedTuple):
    """The number of views of pictures that are not compared with all others in a division."""

    division: int
    views: int


class UniteGroups(Stage):
    """Unite the groups of all buckets; other messages pass.

    In: (group, [Size | Crowd | Rows]) | (batch, [message]). Out: (batch, Alike | message),
    and what they have found.
    Memory holds the rows of some buckets; a file has four bytes for each example.
    """

    def examines(self, name: str) -> bool:
        """Return whether a key has the groups of all buckets."""
        return name.startswith(UNITE)

    def examine(self, name: str, number: int, messages: list[Any]) -> Iterator[Message]:
        """Yield which rows of each batch others are like."""
        name = name.removeprefix(UNITE)
        yield from self._remarks(name, [each for each in messages if isinstance(each, Crowd)])
        found = [each for each in messages if isinstance(each, Rows)]
        if not found:
            return
        sizes = dict(sorted(each for each in messages if isinstance(each, Size)))
        starts = np.zeros(max(sizes) + 1, np.int32)
        starts[list(sizes)] = np.cumsum([0, *sizes.values()])[:-1]
        forest = Forest(_numbers_in_file(sum(sizes.values())))
        for columns in self.read(found):
            _join(forest, columns, starts)
        groups, places = forest.groups(), Places(self.shared, name)
        _note_sizes(groups)
        for batch, size in sizes.items():
            mine = np.arange(starts[batch], starts[batch] + size)
            roots = np.where(groups[mine] < 0, mine, groups[mine])
            rows = np.flatnonzero(groups[roots] < -1)
            if len(rows):
                keys, counts = roots[rows].astype(np.uint64), -groups[roots[rows]].astype(np.intp)
                alike = places.placed(pa.table({"row": rows.astype(np.int32), "key": keys}), counts)
                for key, left in self.left(batch, [((BATCH, batch), alike)]):
                    yield key, Alike(name, left)
        yield from ((FOUND, texts) for texts in places.remarks())

    def _remarks(self, name: str, crowds: Sequence[Crowd]) -> Iterator[Message]:
        """Yield a remark about crowds, in whose divisions a picture may be several times."""
        views: Counter[int] = Counter()
        for crowd in crowds:
            views[crowd.division] += crowd.views
        most = max(views.values(), default=0)
        if most >= _CROWD:
            remark = (
                f"some {most // 2:,} {self.shared.conversion.task.noun}s are so much like many "
                f"others that each was only compared with some of them: near-duplicates among them "
                f"may be missing"
            )
            yield FOUND, FoundTexts(f"{name}-crowd", {}, [remark])


def _numbers_in_file(count: int) -> Indices:
    """Return the numbers below ``count`` in a temporary file: the system may evict its pages."""
    with TemporaryFile() as file:
        for start in range(0, count, _AT_ONCE):  # a full disk is an error here, no signal later
            file.write(np.arange(start, min(start + _AT_ONCE, count), dtype=np.int32).tobytes())
        file.flush()
        return np.asarray(np.memmap(file, np.int32))


def _note_sizes(groups: Indices) -> None:
    """Put minus the number of a group's members where its root, the lowest of them, is."""
    for start in range(0, len(groups), _AT_ONCE):
        part = groups[start : start + _AT_ONCE]
        is_root = part == np.arange(start, start + len(part))
        part[is_root] = -1
        roots, counts = np.unique(part[~is_root], return_counts=True)
        groups[roots] -= counts.astype(np.int32)


def _join(forest: Forest, columns: Columns, starts: npt.NDArray[np.int32]) -> None:
    """Join the examples of each group of a bucket: ``columns`` has batch, row and group."""
    examples = starts[columns["batch"].to_numpy()] + columns["row"].to_numpy()
    groups = columns["group"].to_numpy()
    order = np.argsort(groups, kind="stable")
    first = np.searchsorted(groups[order], groups[order])
    forest.join(examples[order[first]], examples[order])


# Times that a bucket is read, at most: one that has more is a crowd, which needs several portions.
_MOST_TIMES = 16

# Facts that are in memory together, and the bytes of those of an example.
_FACTS_BYTES, _EXAMPLE_BYTES = 64 << 20, 500


def examine(
    runner: Runner, shards: Flow, shared: Examination, existing: Existing | None = None
) -> Flow:
    """Examine all examples of shards and of the dataset that they are appended to.

    ``shards`` has their file names; facts and findings are in the staging folder.
    """
    if existing is not None:
        there = runner.start("ListExamples", existing.groups, spread=True)
        shards = shards.merged("AllFacts", [there])
    assign = Each(partial(_assigned, batches=shared.batches), shared.staging)
    return (
        shards.through("AssignBatches", assign)
        .grouped("GatherBatches")  # (batch, [Batch])
        .through("NoteKeys", NoteKeys(shared))
        .grouped("GatherKeys")  # (key, [Rows | Batch])
        .through("JoinKeys", JoinKeys(shared))
        .grouped("GatherAlike")  # (group, [Rows | Size | Crowd]) | (batch, […])
        .through("UniteGroups", UniteGroups(shared))
        .grouped("SpreadToBatches")  # (batch, [Alike | Batch])
        .through("ExamineBatches", ExamineBatches(shared))
        .grouped("GatherGroups")  # (group and bucket, [Rows]) | (FOUND, […])
        .through("ExamineGroups", ExamineGroups(shared))
        .grouped("GatherFound")  # (FOUND, [FoundFile | FoundTexts])
        .through("MergeFound", MergeFound(shared.staging))
    )


def all_facts(
    staging: Staging, shards: Sequence[Shard], existing: Existing | None = None
) -> Iterator[Columns]:
    """Yield the facts of existing examples, then those of each shard in parts.

    Raises: SourceError, StorageError: they cannot be read.
    """
    for group in existing.groups if existing is not None else ():
        yield group.facts()
    yield from chain.from_iterable(
        map_in_order(
            lambda shard: staging.shard_facts(shard.file),
            shards,
            threads=storage.threads([staging.root]),
            bytes_of=lambda shard: shard.examples * _EXAMPLE_BYTES,
            max_bytes=_FACTS_BYTES,
        )
    )


def _assigned(
    place: str | ExistingGroup, batches: int
) -> Iterator[tuple[Key, str | ExistingGroup]]:
    """Assign a shard or a group to a batch: the shards of a split to one after the other."""
    folder, number = (
        (posixpath.dirname(place), shard_place(place)[1]) if isinstance(place, str) else place[:2]
    )
    yield (BATCH, (zlib.crc32(folder.encode()) + number) % batches), place


class NoteKeys(Stage):
    """Note what other batches must know about a batch.

    In: (batch, Batch). Out: (key, Rows), and (batch, Batch).
    """

    def examine(self, name: str, number: int, batch: list[Any]) -> Iterator[Message]:
        """Yield the batch, and its keys by bucket."""
        shared = self.shared
        yield (name, number), batch
        if not shared.groups():
            return
        facts = self.facts(batch)
        for group in shared.groups():
            if group.scope == ALIKE:
                yield (UNITE + group.name, 0), Size(number, len(facts))
        yield from self.left(number, self._keys(facts))

    def _keys(self, facts: ExampleFacts) -> Iterator[tuple[Key, Columns]]:
        for group in self.shared.groups():
            if group.scope == KEYED:
                keys = group.checks[0].keys(facts)
                columns = pa.table({"row": np.arange(len(keys), dtype=np.int32), "key": keys})
                for bucket, part in grouped(columns, self.shared.bucket_of(keys)):
                    yield (group.name, bucket), part
            elif group.scope == ALIKE:
                for division, rows, keys in facts.divided(self.shared.buckets):
                    chosen = pa.array(rows.astype(np.int32))
                    columns = facts.columns.select(copies.NEAR_COLUMNS).take(chosen)
                    columns = columns.append_column("row", chosen)
                    for bucket, part in grouped(columns, self.shared.bucket_of(keys)):
                        yield (f"{NEAR}{group.name} {division}", bucket), part


class JoinKeys(Stage):
    """Join the keys of a bucket.

    In: (key, [Rows | Batch]). Out: (batch, Alike | Batch), (group, Rows | Crowd).
    """

    def examines(self, name: str) -> bool:
        """Return whether a key has those of a bucket."""
        return name != BATCH and not name.startswith(UNITE)

    def examine(self, name: str, number: int, messages: list[Any]) -> Iterator[Message]:
        """Yield which rows of each batch others are like, and which may be nearly the same."""
        if name.startswith(NEAR):
            _, group, division = name.split(" ")
            yield from self._alike(group, int(division), messages)
        else:
            yield from self._equal(name, number, messages)

    def _equal(self, group: str, bucket: int, parts: Sequence[Rows]) -> Iterator[Message]:
        parts = sorted(parts, key=lambda part: part.batch)
        columns, places = list(self.read(parts)), Places(self.shared, group, bucket)
        together = np.concatenate([each["key"].to_numpy() for each in columns])
        found, counts = np.unique(together, return_counts=True)
        alike = list[tuple[Key, Columns]]()
        for part, mine in zip(parts, columns, strict=True) if counts.max() > 1 else ():
            sizes = counts[np.searchsorted(found, mine["key"].to_numpy())]
            if len(again := np.flatnonzero(sizes > 1)):
                placed = places.placed(mine.take(pa.array(again)), sizes[again])
                alike.append(((BATCH, part.batch), placed))
        yield from ((key, Alike(group, rows)) for key, rows in self.left(0, alike))
        yield from ((FOUND, texts) for texts in places.remarks())

    def _alike(self, name: str, division: int, parts: Sequence[Rows]) -> Iterator[Message]:
        group, to_all = self.shared.group(name), (UNITE + name, 0)
        for each, tables in self._divided_again(division, sorted(parts, key=lambda p: p.batch)):
            crowds: list[int] = []
            for found in copies.joined(tables, group.least, crowds.append, each):
                if len(found):
                    yield from self.left(0, [(to_all, found)])
            if crowds:
                yield to_all, Crowd(each, sum(crowds))

    def _divided_again(
        self, division: int, parts: Sequence[Rows]
    ) -> Iterator[tuple[int, Iterable[Columns]]]:
        """Yield a division and rows of it; a bucket that is too large is read several times."""
        count, most = sum(part.size for part in parts), copies.MOST_COMPARED
        if count <= most:
            yield division, self._with_batches(parts)
            return
        times = min(-(-2 * count // most), _MOST_TIMES)  # keys are not spread evenly
        all_of = copies.divisions_of(self.shared.conversion.task)
        for each in all_of if division == UNDIVIDED else [division]:
            for turn in range(times):
                some = partial(self._some, division=each, turn=turn, times=times)
                yield each, map(some, self._with_batches(parts))

    def _with_batches(self, parts: Sequence[Rows]) -> Iterator[Columns]:
        for part, columns in zip(parts, self.read(parts), strict=True):
            batch = np.full(len(columns), part.batch, np.int32)
            yield columns.append_column("batch", pa.array(batch))

    def _some(self, columns: Columns, division: int, turn: int, times: int) -> Columns:
        """Return the rows whose keys have this turn."""
        facts = ExampleFacts.compared([columns])
        divisions = facts.divided(times)
        rows, keys = next((rows, keys) for each, rows, keys in divisions if each == division)
        turns = mixed(keys) // np.uint64(self.shared.buckets) % np.uint64(times)
        return facts.columns.take(pa.array(rows[turns == turn]))


class ExamineBatches(Stage):
    """Examine the examples of a batch one by one, and pass on those that others are like.

    In: (batch, [Alike | Batch]). Out: (group and bucket, Rows) | (FOUND, FoundFile | …).
    """

    def examine(self, name: str, number: int, messages: list[Any]) -> Iterator[Message]:
        """Yield files of findings, and rows for the groups that they belong to."""
        shared = self.shared
        [batch] = (each for each in messages if isinstance(each, list))
        alike = sorted(
            (each for each in messages if isinstance(each, Alike)), key=lambda each: each.group
        )
        kept = next((each.name for each in shared.groups() if each.scope == KEPT), "")
        checks = shared.checks(EACH)
        if checks or alike or kept:
            facts = self.facts(batch)
            yield from self.found(f"batch-{number}", checks, shared.examined(facts))
            yield from self.left(number, self._parts(facts, alike, kept))

    def _parts(
        self, facts: ExampleFacts, alike: Sequence[Alike], kept: str
    ) -> Iterator[tuple[Key, Columns]]:
        for each, mine in zip(alike, self.read(each.rows for each in alike), strict=True):
            rows = facts.taken(mine["row"].to_numpy()).append_column(GROUP, mine["key"])
            for place, part in grouped(rows, mine["place"].to_numpy()):
                yield (each.group, place), part
        if kept and len(rows := np.flatnonzero(np.asarray(facts.columns["row"].is_valid()))):
            yield (kept, 0), facts.taken(rows)


class ExamineGroups(Stage):
    """Examine examples that are like others.

    In: (group and bucket, [Rows]) | (FOUND, […]). Out: (FOUND, FoundFile | FoundTexts).
    """

    def examine(self, name: str, number: int, messages: list[Any]) -> Iterator[Message]:
        """Yield files of findings."""
        group = self.shared.group(name)
        parts = sorted(messages, key=lambda part: part.batch)
        facts = ExampleFacts(self.read(parts))
        examined = self.shared.examined(facts)
        is_whole = group.scope == KEPT
        yield from self.found(f"{name}-{number}", group.checks, examined, is_whole=is_whole)
