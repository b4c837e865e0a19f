"""The results of all shards, added up: memory holds a line for each shard, however many labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from recordgen.core.dataset.counts import ImageStats, Shard, Split
from recordgen.core.shards.task import ShardResult
from recordgen.rejects import Reject


@dataclass
class SplitSum:
    """The sum of the results of a split's shards; the fields are those of ShardResult."""

    shards: list[Shard] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)
    assigned: int = 0
    reencoded: Counter[str] = field(default_factory=Counter)
    rejects: list[Reject] = field(default_factory=list)
    images: ImageStats | None = None
    kept: int = 0
    unlabelled: int = 0
    changes: Counter[str] = field(default_factory=Counter)

    @property
    def examples(self) -> int:
        """Number of examples."""
        return sum(shard.examples for shard in self.shards)

    def add(self, result: ShardResult) -> None:
        """Add the result of the next shard."""
        if result.shard.examples:  # without images, their stats are unknown
            is_first = not any(shard.examples for shard in self.shards)
            images = [result.images] if is_first else [self.images, result.images]
            self.images = ImageStats.merge(images)
        self.shards.append(result.shard)
        self.labels.update(result.labels)
        self.assigned += result.assigned
        self.reencoded.update(result.reencoded)
        self.rejects += result.rejects
        self.kept += result.kept
        self.unlabelled += result.unlabelled
        self.changes.update(result.changes)

    def split(self) -> Split:
        """Return the split as ``dataset.json`` describes it."""
        return Split.of(
            self.shards,
            self.labels,
            images=self.images,
            unlabelled=self.unlabelled,
            assigned=self.assigned,
        )


def summed(results: Iterable[ShardResult]) -> dict[str, SplitSum]:
    """Return the sum of the results of each split, in the order of the results."""
    found: dict[str, SplitSum] = {}
    for result in results:
        found.setdefault(result.split, SplitSum()).add(result)
    return found
