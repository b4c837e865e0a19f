"""Messages between the steps of a conversion: blocks of rows, files and summaries.

Rows travel as columns. Only a runner that sends messages to other processes packs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recordgen.core.planning.resolve import Settled
from recordgen.core.rows.columns import Columns, packed, unpacked
from recordgen.rejects import Reject


@dataclass(frozen=True, eq=False)
class Block:
    """Rows as columns, which are pickled as :func:`recordgen.core.rows.columns.packed` gives them.

    Arrow pickles a slice with all rows of its table, and an array in many objects.
    """

    columns: Columns

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), packed(self.columns))

    def __sizeof__(self) -> int:
        return int(self.columns.nbytes)


def _unpickled(kind: type[Block], data: bytes) -> Block:
    [columns] = unpacked(data)
    return kind(columns)


class RowBlock(Block):
    """Placed rows of one bucket."""


class KnownBlock(Block):
    """Known rows of one bucket, from the dataset that is appended to."""


@dataclass(frozen=True)
class LostRows:
    """Rejected rows of payloads in one bucket, whose other rows would be incomplete examples."""

    rejects: tuple[Reject, ...]


class FindingsFile(NamedTuple):
    """A file of findings of one import file, in order; sorted, these files order all findings."""

    source: str  # import file of the first finding
    line: int  # line of the first finding
    number: int  # number of this file among the files of its writer, from 0
    file: str  # name of the file; each attempt at reading rows writes its own file


class FoundFile(NamedTuple):
    """A file of findings of one code, sorted, for ``lint.jsonl``, and its size in bytes."""

    code: str
    name: str
    bytes: int


class FoundTexts(NamedTuple):
    """What a step of the checks has found about the dataset as a whole."""

    step: str  # its name, which orders the texts
    about_all: Mapping[str, Sequence[str]]  # messages by code
    remarks: Sequence[str]  # what checks had to leave out


@dataclass(frozen=True)
class SettledFile:
    """The settled rows of a bucket, before or after the decision about all rows."""

    bucket: int
    file: str  # name of the file with the rows
    settled: Settled  # everything except the rows
    facts: Block  # facts for the decision; after it, what decide returns


@dataclass(frozen=True)
class SplitsNamed:
    """Tells a bucket that some row of the run names a split."""


@dataclass(frozen=True)
class ReadSummary:
    """Counts of some rows that were read."""

    read: int = 0  # number of rows
    named: bool = False  # whether any row names a split
    rejects: tuple[Reject, ...] = ()
    # Changes that made other rows usable, by kind.
    adjusted: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[FindingsFile, ...] = ()  # files that list these changes
    # Findings of the checks in lines, whether or not their rows were rejected.
    odd_lines: tuple[FoundFile, ...] = ()
