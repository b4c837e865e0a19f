"""The checks of examples as steps of the graph, after the shards.

    shard ─SketchFacts─▶ what other shards must know: keys, signatures, sums
          ─JoinSketches─▶ for each shard: its examples that others are like, and totals
          ─ExamineShards─▶ findings about single examples; facts of those that others are like
          ─ExamineGroups─▶ findings about examples together
          ─MergeFindings─▶ staging: all findings of a code, by import file and line

Keys go to buckets by their hash, so that a bucket fits in memory whatever the number of examples.
Sketches and facts wait in the staging folder; what travels is where they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.checks.check import ALIKE, EACH, KEPT, KEYED, Check, Examined, FoundRows
from recordgen.checks.facts import GROUP, ExampleFacts
from recordgen.checks.near_pairs import NEAR_COLUMNS, alike_groups
from recordgen.conversion.appending import ExistingGroup, existing_groups, read_group
from recordgen.conversion.examination import Examination, Group
from recordgen.conversion.found import FoundFile, MergeFindings, write_found
from recordgen.core.facts.columns import Columns
from recordgen.core.flow.runner import Count, Flow, Runner, Step
from recordgen.core.planning.appending import Existing
from recordgen.core.rows.columns import packed, unpacked
from recordgen.core.runs.staging import Staging
from recordgen.core.shards.task import ShardResult
from recordgen.ordered import map_in_order

_Key: TypeAlias = tuple[str, int]
_Rows: TypeAlias = "npt.NDArray[np.int32]"
_Message: TypeAlias = tuple[_Key, Any]

# Keys of messages that are for no bucket: what all shards add up to, and the seconds of the work.
_TOTALS, _SECONDS = ("totals", 0), ("seconds", 0)

# Files of facts that are in memory together.
_FILES_AT_ONCE = 4

# Before the name of a shard, and before a code.
_SHARD, _CODE = "shard ", "code "


class _Slice(NamedTuple):
    """Columns in the staging folder, and the shard that they are of."""

    file: str
    start: int
    length: int
    shard: _Key


class _Members(NamedTuple):
    """Rows of a shard that other examples are like, and the keys of their groups."""

    group: str
    rows: _Rows
    keys: npt.NDArray[np.uint64]


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
        .grouped("GatherSketches")  # (key, [_Slice | parts | None])
        .through("JoinSketches", JoinSketches(shared))
        .grouped("SpreadToShards")  # (shard, [_Members | totals | None])
        .through("ExamineShards", ExamineShards(shared))
        .grouped("GatherGroups")  # (key, [_Slice | FoundFile])
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


@dataclass(eq=False)
class _Stage(Step):
    """A step that notes how long its work takes."""

    shared: Examination
    staging: Staging = field(init=False)

    def __post_init__(self) -> None:
        self.staging = self.shared.staging

    def begin(self, count: Count) -> None:
        super().begin(count)
        self._heartbeat = self.staging.checking_heartbeat()

    def process(self, element: Any) -> Iterator[Any]:
        started = time.monotonic()
        if isinstance(element, tuple) and element[0] == _SECONDS:
            yield self.passed(_SECONDS), sum(element[1])
            return
        yield from self._work(element)
        yield self.passed(_SECONDS), time.monotonic() - started

    def passed(self, key: _Key) -> _Key:
        """Return the key of messages for the next step but one."""
        return key

    def _work(self, element: Any) -> Iterator[_Message]:
        """Yield messages for the next step."""
        raise NotImplementedError

    def facts(self, shard: _Key) -> ExampleFacts:
        """Return the facts of a shard."""
        name, number = shard
        if number < 0:
            return ExampleFacts([self.staging.shard_facts(name)])
        return ExampleFacts([read_group(ExistingGroup(name, number))])

    def sliced(
        self, shard: _Key, parts: Iterable[tuple[_Key, Columns]]
    ) -> Iterator[tuple[_Key, _Slice]]:
        """Write columns to one file, and yield where they are, by key."""
        file, start, content, found = self.staging.new_sketch(), 0, [], []
        for key, columns in parts:
            content.append(packed(columns))
            found.append((key, _Slice(file, start, len(content[-1]), shard)))
            start += len(content[-1])
        if content:
            self.staging.write_sketch(file, b"".join(content))
        yield from found

    def read(self, part: _Slice) -> Columns:
        """Return the columns of a slice."""
        [columns] = unpacked(self.staging.read_sketch(part.file, part.start, part.length))
        return columns

    def found(
        self, name: str, checks: Sequence[Check], examined: Examined[Any], *, is_whole: bool = False
    ) -> Iterator[tuple[_Key, FoundFile]]:
        """Run checks, and yield the files of their findings by code."""
        about_all: dict[str, list[str]] = {}
        for check in checks:
            items = list(check.findings(examined))
            about_all[check.code] = [item for item in items if isinstance(item, str)]
            rows = [item for item in items if isinstance(item, FoundRows)]
            file = write_found(self.staging, check, examined.facts, rows, is_whole=is_whole)
            if file is not None:
                yield (_CODE + check.code, 0), file
        if examined.remarks or any(about_all.values()):
            self.staging.write_about(name, about_all, examined.remarks)


class SketchFacts(_Stage):
    """Note what other shards must know about a shard.

    In: its file name, or ExistingGroup. Out: (key, _Slice | parts), and (shard, None).
    """

    def _work(self, element: str | ExistingGroup) -> Iterator[_Message]:
        shared = self.shared
        shard = (element, -1) if isinstance(element, str) else (element.path, element.number)
        self._heartbeat.add(1, 0, 0)
        facts = self.facts(shard)
        examined = shared.examined(facts)
        yield (_SHARD + shard[0], shard[1]), None
        parts = {check.code: check.part(examined) for check in shared.checks(EACH)}
        if given := {code: part for code, part in parts.items() if part is not None}:
            yield _TOTALS, (shard, given)
        yield from self.sliced(shard, self._sketches(facts))

    def _sketches(self, facts: ExampleFacts) -> Iterator[tuple[_Key, Columns]]:
        for group in self.shared.groups():
            if group.scope == KEYED:
                keys = group.checks[0].keys(facts)
                buckets = self.shared.bucket_of(keys)
                for bucket in np.unique(buckets).tolist():
                    rows = np.flatnonzero(buckets == bucket).astype(np.int32)
                    yield (group.name, bucket), pa.table({"row": rows, "key": keys[rows]})
            elif group.scope == ALIKE:
                yield (group.name, 0), facts.columns.select(NEAR_COLUMNS)


class JoinSketches(_Stage):
    """Join what shards have noted.

    In: (key, [_Slice | parts | None]). Out: (shard, _Members | totals | None).
    """

    def _work(self, element: tuple[_Key, Iterable[Any]]) -> Iterator[_Message]:
        key, messages = element[0], list(element[1])
        if key[0].startswith(_SHARD):
            yield key, None
        elif key == _TOTALS:
            yield from self._totals(messages)
        else:
            group = next(each for each in self.shared.groups() if each.name == key[0])
            parts = sorted(messages, key=lambda part: part.shard)
            join = self._equal if group.scope == KEYED else self._alike
            for shard, rows, keys in join(group, parts):
                yield (_SHARD + shard[0], shard[1]), _Members(group.name, rows, keys)

    def _totals(self, messages: Sequence[tuple[_Key, dict[str, Any]]]) -> Iterator[_Message]:
        checks = {check.code: check for check in self.shared.checks(EACH)}
        messages = sorted(messages, key=lambda message: message[0])
        totals = {
            code: checks[code].total([parts[code] for _, parts in messages if code in parts])
            for code in dict.fromkeys(chain.from_iterable(parts for _, parts in messages))
        }
        for shard, _ in messages:
            yield (_SHARD + shard[0], shard[1]), totals

    def _equal(self, group: Group, parts: Sequence[_Slice]) -> Iterator[Any]:
        columns = [self.read(part) for part in parts]
        yield from _repeated(parts, [each["key"].to_numpy() for each in columns], columns)

    def _alike(self, group: Group, parts: Sequence[_Slice]) -> Iterator[Any]:
        columns = [self.read(part) for part in parts]
        counts = [len(each) for each in columns]
        facts, order = ExampleFacts.compared(columns)
        found, remarks = alike_groups(facts, group.least, self.shared.conversion.task.noun)
        keys = np.empty_like(found)
        keys[order] = found
        if remarks:
            self.staging.write_about(f"{group.name}-joined", {}, remarks)
        yield from _repeated(parts, np.split(keys, np.cumsum(counts)[:-1]), None)


def _repeated(
    parts: Sequence[_Slice], keys: Sequence[npt.NDArray[np.uint64]], columns: Any
) -> Iterator[tuple[_Key, _Rows, npt.NDArray[np.uint64]]]:
    """Yield for each shard the rows whose key another row has, and their keys."""
    together = np.concatenate([np.zeros(0, np.uint64), *keys])
    together.sort()
    again = np.unique(together[1:][together[1:] == together[:-1]])
    for at, (part, mine) in enumerate(zip(parts, keys, strict=True)):
        places = np.flatnonzero(np.isin(mine, again)) if len(again) else again[:0].astype(np.intp)
        if len(places):
            rows = places if columns is None else columns[at]["row"].to_numpy()[places]
            yield part.shard, rows.astype(np.int32), mine[places]


class ExamineShards(_Stage):
    """Examine the examples of a shard one by one, and pass on those that others are like.

    In: (shard, [_Members | totals | None]). Out: (group and bucket, _Slice) | (code, FoundFile).
    """

    def _work(self, element: tuple[_Key, Iterable[Any]]) -> Iterator[_Message]:
        (name, number), messages = element[0], list(element[1])
        shard, shared = (name.removeprefix(_SHARD), number), self.shared
        self._heartbeat.add(1, 0, 0)
        members = sorted((each for each in messages if isinstance(each, _Members)), key=_named)
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
        self, facts: ExampleFacts, members: Sequence[_Members], kept: str
    ) -> Iterator[tuple[_Key, Columns]]:
        for each in members:
            buckets = self.shared.bucket_of(each.keys)
            for bucket in np.unique(buckets).tolist():
                chosen = np.flatnonzero(buckets == bucket)
                rows = facts.columns.take(pa.array(each.rows[chosen]))
                yield (each.group, bucket), rows.append_column(GROUP, pa.array(each.keys[chosen]))
        if kept and len(rows := np.flatnonzero(np.asarray(facts.columns["row"].is_valid()))):
            yield (kept, 0), facts.columns.take(pa.array(rows))


def _named(members: _Members) -> str:
    return members.group


class ExamineGroups(_Stage):
    """Examine examples that are like others.

    In: (group and bucket, [_Slice]) | (code, [FoundFile]). Out: (code, FoundFile).
    """

    def _work(self, element: tuple[_Key, Iterable[Any]]) -> Iterator[_Message]:
        (name, bucket), messages = element[0], element[1]
        if name.startswith(_CODE):
            for file in messages:
                yield (name, bucket), file
            return
        group = next(each for each in self.shared.groups() if each.name == name)
        parts = sorted(messages, key=lambda part: part.shard)
        facts = ExampleFacts(map(self.read, parts))
        if group.scope != ALIKE:
            facts.groups = None
        examined = self.shared.examined(facts)
        is_whole = group.scope == KEPT
        yield from self.found(f"{name}-{bucket}", group.checks, examined, is_whole=is_whole)
