"""A step of the checks: its messages, and the files that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from recordgen.checks.check import Check, Examined, FoundRows
from recordgen.checks.facts import ExampleFacts
from recordgen.conversion.appending import read_group
from recordgen.conversion.examination import Examination
from recordgen.core.facts.columns import Columns
from recordgen.core.flow.found import Place, write_sorted
from recordgen.core.flow.runner import Step
from recordgen.core.ordered import map_in_order
from recordgen.core.planning.appending import ExistingGroup
from recordgen.core.planning.messages import FoundTexts
from recordgen.core.rows.columns import packed
from recordgen.core.runs.staging import Staging

#: What a message is about, and a number: of a bucket, or of a batch of shards.
Key: TypeAlias = tuple[str, int]
Message: TypeAlias = tuple[Key, Any]

#: The key of messages that are for no bucket: what all shards add up to.
TOTALS: Key = ("totals", 0)

#: The key of what the steps have found.
FOUND: Key = ("found", 0)

#: The first word of keys: before a group of checks, or alone, with the number of a batch.
NEAR, UNITE, BATCH = "near ", "unite ", "batch"

#: Shards that are examined together, or row groups of ``examples.parquet``.
Batch: TypeAlias = Sequence[str | ExistingGroup]

# Findings of one file.
_FILE_FINDINGS = 1 << 16

# Files that are read at once, and their bytes.
_FILES_AT_ONCE, _BYTES_AT_ONCE = 8, 64 << 20


class Rows(NamedTuple):
    """Rows of a batch in the staging folder: what the next step needs of them."""

    file: str
    start: int
    length: int
    batch: int
    size: int


class Alike(NamedTuple):
    """Rows of a batch that other examples are like, in the staging folder.

    Their columns: ``row``, ``key``, the key of its group, and ``place``, where that is examined.
    """

    group: str
    rows: Rows


@dataclass(eq=False)
class Stage(Step):
    """A step of the checks, with the files that it reads and writes."""

    shared: Examination
    staging: Staging = field(init=False)

    def __post_init__(self) -> None:
        self.staging = self.shared.staging

    def facts(self, batch: Batch) -> ExampleFacts:
        """Return the facts of a batch, in the same order each time."""
        return ExampleFacts(
            map_in_order(self._facts, sorted(batch, key=str), threads=_FILES_AT_ONCE)
        )

    def _facts(self, place: str | ExistingGroup) -> Columns:
        return self.staging.shard_facts(place) if isinstance(place, str) else read_group(place)

    def left(self, batch: int, parts: Iterable[tuple[Key, Columns]]) -> Iterator[tuple[Key, Rows]]:
        """Write rows to one file for the next step, and yield where they are, by key."""
        content = [(key, packed(columns), len(columns)) for key, columns in parts]
        if content:
            file, start = self.staging.leave(b"".join(data for _, data, _ in content)), 0
            for key, data, count in content:
                yield key, Rows(file, start, len(data), batch, count)
                start += len(data)

    def read(self, parts: Iterable[Rows]) -> Iterator[Columns]:
        """Yield rows that other steps have left."""
        return map_in_order(
            self._read,
            parts,
            threads=_FILES_AT_ONCE,
            bytes_of=lambda part: part.length,
            max_bytes=_BYTES_AT_ONCE,
        )

    def _read(self, part: Rows) -> Columns:
        return self.staging.read_left_columns(part.file, part.start, part.length)

    def found(
        self, name: str, checks: Sequence[Check], examined: Examined[Any], *, is_whole: bool = False
    ) -> Iterator[Message]:
        """Run checks, and yield the files of their findings, and their texts.

        ``is_whole``: the checks examine all examples, so the order of their findings is final.
        """
        about_all: dict[str, list[str]] = {}
        for check in checks:
            items = list(check.findings(examined))
            about_all[check.code] = [item for item in items if isinstance(item, str)]
            rows = (item for item in items if isinstance(item, FoundRows))
            lines = enumerate(_lines(check, examined.facts, rows))
            while some := list(islice(lines, _FILE_FINDINGS)):
                placed = [((*((0,) if is_whole else at), n), line) for n, (at, line) in some]
                yield FOUND, write_sorted(self.staging, check.code, placed)
        yield FOUND, FoundTexts(name, about_all, examined.remarks)


def _lines(
    check: Check, facts: ExampleFacts, found: Iterable[FoundRows]
) -> Iterator[tuple[Place, str]]:
    """Yield the findings of a check about examples, and where these are."""
    for part in found:
        for at, row in enumerate(part.rows.tolist()):
            other = None if part.partners is None else int(part.partners[at])
            finding = facts.finding(check.code, check.level, row, part.message(at), other)
            yield facts.address(row), finding.to_line()
