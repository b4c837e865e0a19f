"""Unites what buckets have found to be alike: an example may be in several buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.checks.copies import crowd_remarks
from recordgen.conversion.examination import (
    BATCH,
    FOUND,
    UNITE,
    Alike,
    Key,
    Message,
    Places,
    Rows,
    Stage,
)
from recordgen.core.facts.columns import Columns
from recordgen.core.planning.messages import FoundTexts
from recordgen.measures.likeness import Forest, Indices

# Examples that are looked at together.
_AT_ONCE = 1 << 20


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

    def process(self, element: tuple[Key, Iterable[Any]]) -> Iterator[Message]:
        """Yield which rows of each batch others are like; pass on other messages."""
        key, messages = element[0], list(element[1])
        if not key[0].startswith(UNITE):
            yield from ((key, message) for message in messages)
            return
        name = key[0].removeprefix(UNITE)
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
        if remarks := crowd_remarks(most, self.shared.conversion.task.noun):
            yield FOUND, FoundTexts(f"{name}-crowd", {}, remarks)


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
