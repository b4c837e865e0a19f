"""Unites what buckets have found to be alike: an example may be in several buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from recordgen.checks.near_pairs import crowd_remarks
from recordgen.conversion.check_stage import UNITE, Key, Members, Message, Slice, Stage, shard_key
from recordgen.core.facts.neighbours import Forest

# Examples that are looked at together.
_AT_ONCE = 1 << 20


class Size(NamedTuple):
    """The number of examples in a shard."""

    shard: Key
    examples: int


class Crowd(NamedTuple):
    """The number of views of pictures that are not compared with all others in a division."""

    division: int
    views: int


class Alike(NamedTuple):
    """Examples that are alike in a bucket: index of the shard, row, number of the group."""

    columns: Slice
    shards: Sequence[Key]


class UniteGroups(Stage):
    """Unite the groups of all buckets; other messages pass.

    In: (group, [Size | Crowd | Alike]) | (shard, [message]). Out: (shard, Members | message).
    Memory holds five bytes for each example, and the members of one bucket.
    """

    def _work(self, element: tuple[Key, Iterable[Any]]) -> Iterator[Message]:
        key, messages = element[0], list(element[1])
        if not key[0].startswith(UNITE):
            yield from ((key, message) for message in messages)
            return
        name = key[0].removeprefix(UNITE)
        self._remark(name, [each for each in messages if isinstance(each, Crowd)])
        sizes = dict(sorted(each for each in messages if isinstance(each, Size)))
        starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
        forest = Forest(sum(sizes.values()))
        for each in messages:
            if isinstance(each, Alike):
                self._join(forest, each, starts)
        groups = forest.groups()
        has_company = np.zeros(len(groups), np.bool_)
        for start in range(0, len(groups), _AT_ONCE):
            part = groups[start : start + _AT_ONCE]
            others = np.flatnonzero(part != np.arange(start, start + len(part)))
            has_company[start + others] = has_company[part[others]] = True
        for shard, size in sizes.items():
            mine = slice(starts[shard], starts[shard] + size)
            rows = np.flatnonzero(has_company[mine]).astype(np.int32)
            if len(rows):
                yield shard_key(shard), Members(name, rows, groups[mine][rows].astype(np.uint64))

    def _join(self, forest: Forest, found: Alike, starts: dict[Key, int]) -> None:
        columns = self.read(found.columns)
        start = np.array([starts[shard] for shard in found.shards], np.int32)
        examples = start[columns["shard"].to_numpy()] + columns["row"].to_numpy()
        groups = columns["group"].to_numpy()
        order = np.argsort(groups, kind="stable")
        first = np.searchsorted(groups[order], groups[order])
        forest.join(examples[order[first]], examples[order])

    def _remark(self, name: str, crowds: Sequence[Crowd]) -> None:
        """Write a remark about crowds, in whose divisions a picture may be several times."""
        views: Counter[int] = Counter()
        for crowd in crowds:
            views[crowd.division] += crowd.views
        most = max(views.values(), default=0)
        if remarks := crowd_remarks(most, self.shared.conversion.task.noun):
            self.staging.write_about(f"{name}-crowd", {}, remarks)
