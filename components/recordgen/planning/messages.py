"""What travels between the steps of the pipeline: rows in blocks, and what steps say of them.

Rows travel as bytes: a runner that groups takes apart and packs again whatever it passes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from recordgen.planning.resolve import Settled
from recordgen.rejects import OddLine, Reject


@dataclass(frozen=True)
class RowBlock:
    """Placed rows of one bucket.

    Attributes:
        data: their columns, see :func:`recordgen.rows.columns.packed`.
    """

    data: bytes


@dataclass(frozen=True)
class KnownBlock:
    """Examples of the dataset that is appended to, of one bucket.

    Attributes:
        data: as :class:`RowBlock` has it.
    """

    data: bytes


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
class SettledFile:
    """The settled rows of a bucket, before and after all rows together decide about them.

    Attributes:
        bucket: its number.
        file: where the rows lie.
        settled: all but the rows.
        facts: what the decision needs, see :func:`recordgen.rows.columns.packed`; empty once it is
            taken.
        decided: see :func:`recordgen.planning.decide.decide`, packed as well; empty before.
    """

    bucket: int
    file: str
    settled: Settled
    facts: bytes = b""
    decided: bytes = b""


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
        odd_lines: what the checks say of lines, whatever became of their rows.
    """

    read: int = 0
    named: bool = False
    rejects: tuple[Reject, ...] = ()
    adjusted: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[FindingsFile, ...] = ()
    odd_lines: tuple[OddLine, ...] = ()
