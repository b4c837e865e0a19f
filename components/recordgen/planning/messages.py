"""What travels between the steps of the pipeline: rows in blocks, and what steps say of them.

Rows travel as bytes: a runner that groups takes apart and packs again whatever it passes on, and
plain tuples pickle several times as fast as named ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from recordgen.rejects import Reject
from recordgen.rows.planned import KnownRow, PlacedRow

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


class FindingsFile(NamedTuple):
    """Some findings of one import file, in order; sorted, such files give the order of all.

    Attributes:
        source: the import file of the first.
        line: its line.
        number: how many such files whoever wrote it has written before.
        file: its name; each attempt at reading rows writes one of its own.
    """

    source: str
    line: int
    number: int
    file: str


@dataclass(frozen=True)
class SplitsNamed:
    """That some row names a split."""


@dataclass(frozen=True)
class ReadSummary:
    """What reading some rows came to.

    Attributes:
        read: how many there were.
        named: whether any names a split.
        rejects: those that cannot be used.
        adjusted: how much was changed to make others usable, by kind.
        findings: files that say what.
    """

    read: int = 0
    named: bool = False
    rejects: tuple[Reject, ...] = ()
    adjusted: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[FindingsFile, ...] = ()
