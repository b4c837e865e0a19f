"""The checks of examples as steps of the graph, after the shards.

    shard ─SketchFacts─▶ what other shards must know: keys, signatures, sums
          ─JoinSketches─▶ for each shard: its examples that others are like, and totals
          ─UniteGroups──▶ the same for examples that are nearly the same, from all their buckets
          ─ExamineShards─▶ findings about single examples; facts of those that others are like
          ─ExamineGroups─▶ findings about examples together
          ─MergeFindings─▶ staging: all findings of a code, by import file and line

Keys go to buckets by their hash, so that a bucket fits in memory whatever the number of examples.
Sketches and facts wait in the staging folder; what travels is where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from recordgen.checks.check import ALIKE, EACH, KEPT, KEYED
from recordgen.checks.facts import GROUP, ExampleFacts
from recordgen.checks.near_pairs import NEAR_COLUMNS, alike_groups, divided
from recordgen.conversion.appending import ExistingGroup, existing_groups, read_group
from recordgen.conversion.check_stage import (
    CODE,
    NEAR,
    SHARD,
    TOTALS,
    UNITE,
    Key,
    Members,
    Message,
    Slice,
    Stage,
    shard_key,
)
from recordgen.conversion.examination import Examination, Group
from recordgen.conversion.found import MergeFindings
from recordgen.conversion.uniting import Alike, Crowd, Size, UniteGroups
from recordgen.core.facts.columns import Columns
from recordgen.core.flow.runner import Flow, Runner
from recordgen.core.planning.appending import Existing
from recordgen.core.runs.staging import Staging
from recordgen.core.shards.task import ShardResult
from recordgen.ordered import map_in_order

# Files of facts that are in memory together.
_FILES_AT_ONCE = 4


def examine(
    runner: Runner, shards: Flow, shared: Examination, existing: Existing | None = None
) -> Flow:
    """Examine all examples; the findings are written to the staging folder.

    Args:
        runner: the runner of the graph.
        shards: file names of the shards, whose facts are in the staging folder.
        shared: what the steps share.
        existing: the dataset that the shards are appended to.
    """
    if existing is not None and (groups := existing_groups(existing)):
        there = runner.start("ListExamples", groups, spread=True)
        shards = shards.merged("AllFacts", [there])
    return (
        shards.through("SketchFacts", SketchFacts(shared))
        .grouped("GatherSketches")  # (key, [Slice | parts | None])
        .through("JoinSketches", JoinSketches(shared))
        .grouped("GatherAlike")  # (group, [Slice | Size | Crowd]) | (shard, […])
        .through("UniteGroups", UniteGroups(shared))
        .grouped("SpreadToShards")  # (shard, [Members | totals | None])
        .through("ExamineShards", ExamineShards(shared))
        .grouped("GatherGroups")  # (key, [Slice | FoundFile])
        .through("ExamineGroups", ExamineGroups(shared))
        .grouped("GatherFindings")  # (code, [FoundFile])
        .through("MergeFindings", MergeFindings(shared.staging))
    )


def all_facts(
    staging: Staging, results: Sequence[ShardResult], existing: Existing | None = None
) -> Iterator[Columns]:
    """Yield the facts of existing examples, then those of each shard.

    Raises: SourceError, StorageError: they cannot be read.
    """
    yield from map(read_group, existing_groups(existing) if existing is not None else ())
    files = [result.shard.file for result in results]
    yield from map_in_order(staging.shard_facts, files, threads=_FILES_AT_ONCE)


class SketchFacts(Stage):
    """Note what other shards must know about a shard.

    In: its file name, or ExistingGroup. Out: (key, Slice | parts), and (shard, None).
    """

    def _work(self, element: str | ExistingGroup) -> Iterator[Message]:
        shared = self.shared
        shard = (element, -1) if isinstance(element, str) else (element.path, element.number)
        self._heartbeat.add(1, 0, 0)
        facts = self.facts(shard)
        examined = shared.examined(facts)
        yield shard_key(shard), None
        parts = {check.code: check.part(examined) for check in shared.checks(EACH)}
        if given := {code: part for code, part in parts.items() if part is not None}:
            yield TOTALS, (shard, given)
        for group in shared.groups():
            if group.scope == ALIKE:
                yield (UNITE + group.name, 0), Size(shard, len(facts))
        yield from self.sliced(shard, self._sketches(facts))

    def _sketches(self, facts: ExampleFacts) -> Iterator[tuple[Key, Columns]]:
        for group in self.shared.groups():
            if group.scope == KEYED:
                keys = group.checks[0].keys(facts)
                buckets = self.shared.bucket_of(keys)
                for bucket in np.unique(buckets).tolist():
                    rows = np.flatnonzero(buckets == bucket).astype(np.int32)
                    yield (group.name, bucket), pa.table({"row": rows, "key": keys[rows]})
            elif group.scope == ALIKE:
                yield from self._near(group, facts)

    def _near(self, group: Group, facts: ExampleFacts) -> Iterator[tuple[Key, Columns]]:
        columns = facts.columns.select(NEAR_COLUMNS)
        for division, rows, keys in divided(facts, self.shared.buckets):
            buckets = self.shared.bucket_of(keys)
            for bucket in np.unique(buckets).tolist():
                chosen = rows[buckets == bucket]
                part = columns.take(pa.array(chosen)).append_column("row", pa.array(chosen))
                yield (f"{NEAR}{group.name} {division}", bucket), part


class JoinSketches(Stage):
    """Join what shards have noted.

    In: (key, [Slice | parts | None]). Out: (shard, Members | totals | None).
    """

    def _work(self, element: tuple[Key, Iterable[Any]]) -> Iterator[Message]:
        (name, number), messages = element[0], list(element[1])
        if name.startswith((SHARD, UNITE)):
            yield from (((name, number), message) for message in messages)
        elif (name, number) == TOTALS:
            yield from self._totals(messages)
        elif name.startswith(NEAR):
            _, group, division = name.split(" ")
            yield from self._alike(group, int(division), messages)
        else:
            yield from self._equal(name, messages)

    def _totals(self, messages: Sequence[tuple[Key, dict[str, Any]]]) -> Iterator[Message]:
        checks = {check.code: check for check in self.shared.checks(EACH)}
        messages = sorted(messages, key=lambda message: message[0])
        totals = {
            code: checks[code].total([parts[code] for _, parts in messages if code in parts])
            for code in dict.fromkeys(chain.from_iterable(parts for _, parts in messages))
        }
        for shard, _ in messages:
            yield shard_key(shard), totals

    def _equal(self, group: str, parts: Sequence[Slice]) -> Iterator[Message]:
        columns = [self.read(part) for part in parts]
        together = np.concatenate([each["key"].to_numpy() for each in columns])
        together.sort()
        again = np.unique(together[1:][together[1:] == together[:-1]])
        for part, mine in zip(parts, columns, strict=True) if len(again) else ():
            keys = mine["key"].to_numpy()
            if (is_again := np.isin(keys, again)).any():
                rows = mine["row"].to_numpy()[is_again]
                yield shard_key(part.shard), Members(group, rows, keys[is_again])

    def _alike(self, name: str, division: int, parts: Sequence[Slice]) -> Iterator[Message]:
        group = self.shared.group(name)
        parts = sorted(parts, key=lambda part: part.shard)
        columns = [self.read(part) for part in parts]
        rows = np.concatenate([each["row"].to_numpy() for each in columns])
        shards = np.repeat(np.arange(len(parts)), [len(each) for each in columns])
        facts, order = ExampleFacts.compared([each.select(NEAR_COLUMNS) for each in columns])
        crowds: list[int] = []
        found = alike_groups(facts, group.least, crowds.append, division)
        if crowds:
            yield (UNITE + name, 0), Crowd(division, sum(crowds))
        has_company = np.bincount(found.astype(np.intp))[found] > 1
        chosen = order[has_company]
        if len(chosen):
            members = pa.table(
                {
                    "shard": pa.array(shards[chosen].astype(np.int32)),
                    "row": pa.array(rows[chosen].astype(np.int32)),
                    "group": pa.array(found[has_company].astype(np.int32)),
                }
            )
            names = [part.shard for part in parts]
            for key, part in self.sliced(names[0], [((UNITE + name, 0), members)]):
                yield key, Alike(part, names)


class ExamineShards(Stage):
    """Examine the examples of a shard one by one, and pass on those that others are like.

    In: (shard, [Members | totals | None]). Out: (group and bucket, Slice) | (code, FoundFile).
    """

    def _work(self, element: tuple[Key, Iterable[Any]]) -> Iterator[Message]:
        (name, number), messages = element[0], list(element[1])
        shard, shared = (name.removeprefix(SHARD), number), self.shared
        self._heartbeat.add(1, 0, 0)
        members = sorted((each for each in messages if isinstance(each, Members)), key=_named)
        totals = next((each for each in messages if isinstance(each, dict)), {})
        kept = next((each.name for each in shared.groups() if each.scope == KEPT), "")
        checks = shared.checks(EACH)
        if not (checks or members or kept):
            return
        facts = self.facts(shard)
        examined = shared.examined(facts, totals)
        yield from self.found(f"{shard[0]}-{number}".replace("/", "-"), checks, examined)
        yield from self.sliced(shard, self._parts(facts, members, kept))

    def _parts(
        self, facts: ExampleFacts, members: Sequence[Members], kept: str
    ) -> Iterator[tuple[Key, Columns]]:
        for each in members:
            buckets = self.shared.bucket_of(each.keys)
            for bucket in np.unique(buckets).tolist():
                chosen = np.flatnonzero(buckets == bucket)
                rows = facts.columns.take(pa.array(each.rows[chosen]))
                yield (each.group, bucket), rows.append_column(GROUP, pa.array(each.keys[chosen]))
        if kept and len(rows := np.flatnonzero(np.asarray(facts.columns["row"].is_valid()))):
            yield (kept, 0), facts.columns.take(pa.array(rows))


def _named(members: Members) -> str:
    return members.group


class ExamineGroups(Stage):
    """Examine examples that are like others.

    In: (group and bucket, [Slice]) | (code, [FoundFile]). Out: (code, FoundFile).
    """

    def _work(self, element: tuple[Key, Iterable[Any]]) -> Iterator[Message]:
        (name, bucket), messages = element[0], element[1]
        if name.startswith(CODE):
            for file in messages:
                yield (name, bucket), file
            return
        group = self.shared.group(name)
        parts = sorted(messages, key=lambda part: part.shard)
        facts = ExampleFacts(map(self.read, parts))
        if group.scope != ALIKE:
            facts.groups = None
        examined = self.shared.examined(facts)
        is_whole = group.scope == KEPT
        yield from self.found(f"{name}-{bucket}", group.checks, examined, is_whole=is_whole)
