"""What travels between the steps of the pipeline: rows in blocks, and what steps say of them.

Rows travel as bytes: a runner that groups takes apart and packs again whatever it passes on, and
plain tuples pickle several times as fast as named ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from recordgen.planning import GroupPlan
from recordgen.resolving import Group, KnownRow, PlacedRow, PlannedRow
from recordgen.rows import Reject

_Row = TypeVar("_Row")
_B = TypeVar("_B", bound="_Block[Any]")


@dataclass(frozen=True)
class _Block(Generic[_Row]):
    """Rows that travel together, in order."""

    data: bytes

    _kind: ClassVar[Any]

    @classmethod
    def of(cls: type[_B], rows: Iterable[tuple[Any, ...]]) -> _B:
        """Pack rows, also given as plain tuples of their fields."""
        return cls(pickle.dumps(list(map(tuple, rows)), protocol=pickle.HIGHEST_PROTOCOL))

    @property
    def rows(self) -> Iterator[_Row]:
        """The rows."""
        return map(self._kind._make, pickle.loads(self.data))


class RowBlock(_Block[PlacedRow]):
    """Placed rows."""

    _kind = PlacedRow


class KnownBlock(_Block[KnownRow]):
    """Examples of the dataset that is appended to."""

    _kind = KnownRow


class PlannedBlock(_Block[PlannedRow]):
    """Planned rows."""

    _kind = PlannedRow


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
        label: the one label of all its rows, as its group has it.
        count: number of shards in its split.
    """

    label: str | None
    count: int


@dataclass(frozen=True)
class ReadSummary:
    """What reading some rows came to: how many, whether any names a split, and rejects."""

    read: int = 0
    named: bool = False
    rejects: tuple[Reject, ...] = ()
