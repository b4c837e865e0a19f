"""What travels between the steps of the pipeline: rows in blocks, and what steps say of them.

Rows travel as bytes: a runner that groups takes apart and packs again whatever it passes on, and
plain tuples pickle several times as fast as named ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from recordgen.planning import GroupPlan
from recordgen.resolving import Group, KnownRow, PlacedRow, PlannedRow
from recordgen.rows import Reject


@dataclass(frozen=True)
class RowBlock:
    """Placed rows that travel together."""

    data: bytes

    @classmethod
    def of(cls, rows: list[tuple[Any, ...]]) -> RowBlock:
        """Pack rows, given as plain tuples of a PlacedRow's fields."""
        return cls(pickle.dumps(rows, protocol=pickle.HIGHEST_PROTOCOL))

    @property
    def rows(self) -> Iterator[PlacedRow]:
        """The rows."""
        return map(PlacedRow._make, pickle.loads(self.data))


@dataclass(frozen=True)
class KnownBlock:
    """Examples of the dataset that is appended to, as they travel together."""

    data: bytes

    @classmethod
    def of(cls, rows: Iterable[KnownRow]) -> KnownBlock:
        """Pack rows."""
        return cls(_packed(rows))

    @property
    def rows(self) -> Iterator[KnownRow]:
        """The rows."""
        return map(KnownRow._make, pickle.loads(self.data))


@dataclass(frozen=True)
class PlannedBlock:
    """Planned rows that travel together, in order."""

    data: bytes

    @classmethod
    def of(cls, rows: Iterable[PlannedRow]) -> PlannedBlock:
        """Pack rows."""
        return cls(_packed(rows))

    @property
    def rows(self) -> Iterator[PlannedRow]:
        """The rows."""
        return map(PlannedRow._make, pickle.loads(self.data))


def _packed(rows: Iterable[tuple[Any, ...]]) -> bytes:
    return pickle.dumps(list(map(tuple, rows)), protocol=pickle.HIGHEST_PROTOCOL)


@dataclass(frozen=True)
class SplitsNamed:
    """That some row names a split."""


@dataclass(frozen=True)
class PlannedBucket:
    """The planned rows of one bucket by group, in order."""

    groups: dict[Group, PlannedBlock]


@dataclass(frozen=True)
class BucketPlan:
    """What the plan says of one bucket: how its groups are cut."""

    groups: dict[Group, GroupPlan]


@dataclass(frozen=True)
class ListedShard:
    """That a shard is to be written, also where it has no rows.

    Attributes:
        count: number of shards in its split.
    """

    count: int


@dataclass(frozen=True)
class ReadSummary:
    """What reading some rows came to: how many, whether any names a split, and rejects."""

    read: int = 0
    named: bool = False
    rejects: tuple[Reject, ...] = ()
