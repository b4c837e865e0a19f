"""What the steps of the checks share: the selected checks, their messages, and their files."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen import storage
from recordgen.checks.check import (
    ALIKE,
    KEPT,
    KEYED,
    MOST_TOGETHER,
    Check,
    Examined,
    ExampleFacts,
    FoundRows,
    checks_of,
)
from recordgen.checks.selection import Selection
from recordgen.core.conversion import Conversion, RowSource
from recordgen.core.facts.columns import Columns
from recordgen.core.flow.graph import bucket_count
from recordgen.core.flow.runner import Place, Step, write_sorted
from recordgen.core.ordered import map_in_order
from recordgen.core.planning.appending import Existing, ExistingGroup
from recordgen.core.planning.plan import FoundTexts
from recordgen.core.rows.columns import mixed, packed
from recordgen.core.runs.staging import Staging

#: What a message is about, and a number: of a bucket, or of a batch of shards.
Key: TypeAlias = tuple[str, int]
Message: TypeAlias = tuple[Key, Any]

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

# Buckets of the plan, of some 30,000 rows each, that are one of the checks, or a batch of shards.
_BUCKETS, _BATCH = 16, 4


@dataclass(frozen=True)
class Group:
    """Checks that examine the same examples together; their first code is its name.

    Examples with the same key, or that are alike, are examined in parts of at most ``most``.
    """

    scope: str
    checks: Sequence[Check]
    least: float | None = None
    most: int = sys.maxsize

    @property
    def name(self) -> str:
        """Its name."""
        return self.checks[0].code


@dataclass(frozen=True)
class Examination:
    """What the steps share.

    Attributes:
        folder: where the paths of rows with an address begin.
        buckets: number of buckets for keys.
        batches: number of batches of shards. Each is examined as a whole, so a bucket reads a file
            for each batch, not for each shard.
    """

    conversion: Conversion
    selection: Selection
    staging: Staging
    folder: str
    buckets: int
    batches: int = 1

    def checks(self, scope: str) -> Sequence[Check]:
        """Return the selected checks of a scope."""
        found = checks_of(self.conversion.task, self.selection)
        return [check for check in found if check.scope == scope]

    def groups(self) -> Sequence[Group]:
        """Return the checks of examples together, by what they compare."""
        by_keys, by_least = defaultdict[Any, list[Check]](list), defaultdict[Any, list[Check]](list)
        for check in self.checks(KEYED):
            by_keys[type(check).keys, check.most_together].append(check)
        for check in self.checks(ALIKE):
            by_least[self.selection.thresholds.get(check.code)].append(check)
        kept = self.checks(KEPT)
        return [
            *(Group(KEYED, checks, most=most) for (_, most), checks in by_keys.items()),
            *(Group(ALIKE, checks, least, MOST_TOGETHER) for least, checks in by_least.items()),
            *([Group(KEPT, kept)] if kept else []),
        ]

    def group(self, name: str) -> Group:
        """Return the checks with a name."""
        return next(group for group in self.groups() if group.name == name)

    def examined(self, facts: ExampleFacts) -> Examined[Any]:
        """Return what the checks examine."""
        return Examined(facts, self.conversion.task, self.selection.thresholds)

    def bucket_of(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        """Return the bucket of each key."""
        return (mixed(keys) % np.uint64(self.buckets)).astype(np.intp)


class Places:
    """The places of rows: the bucket of their key, and further ones for parts of a large group.

    Members take turns in the order of batches and rows, so each part has some of each shard.
    """

    def __init__(self, shared: Examination, group: str, number: int = 0) -> None:
        """Place the examples of a group of checks; ``number`` tells several steps apart."""
        self._shared, self._group, self._number = shared, shared.group(group), number
        self._members = Counter[int]()  # of large groups, so far

    def placed(self, rows: Columns, sizes: npt.NDArray[np.intp]) -> Columns:
        """Return rows with their ``place``, given their ``key`` and the number of rows with it."""
        keys, most = rows["key"].to_numpy(), self._group.most
        places = self._shared.bucket_of(keys)
        for key in np.unique(keys[sizes > most]).tolist():
            mine = np.flatnonzero(keys == np.uint64(key))
            parts = -(-int(sizes[mine[0]]) // most)
            turns = (self._members[key] + np.arange(len(mine))) % parts
            places[mine] += self._shared.buckets * turns
            self._members[key] += len(mine)
        return rows.append_column("place", pa.array(places))

    def remarks(self) -> Iterator[FoundTexts]:
        """Yield which checks examined groups in parts, if they did."""
        if self._members:
            codes = ", ".join(check.code for check in self._group.checks)
            noun, count = self._shared.conversion.task.noun, sum(self._members.values())
            text = f"{codes}: {count:,} {noun}s are in groups of more than {self._group.most:,}, "
            text += "which were examined in parts: some findings are missing"
            yield FoundTexts(f"{self._group.name}-{self._number}-parts", {}, [text])


def examination_of(
    source: RowSource,
    conversion: Conversion,
    selection: Selection,
    staging: Staging,
    existing: Existing | None = None,
) -> Examination:
    """Return what the steps share when a source becomes examples."""
    folder = existing.folder if existing else storage.folder_of(source.names[0])
    count = bucket_count(source, existing)
    buckets, batches = -(-count // _BUCKETS), -(-count // _BATCH)
    return Examination(conversion, selection, staging, folder, buckets, batches)


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
    """A step of the checks, with the files that it reads and writes.

    It examines the messages of some keys, and passes on all others.
    """

    shared: Examination
    staging: Staging = field(init=False)

    def __post_init__(self) -> None:
        self.staging = self.shared.staging

    def process(self, element: tuple[Key, Iterable[Any]]) -> Iterator[Message]:
        """Yield what the messages of a key become."""
        key, messages = element
        if self.examines(key[0]):
            yield from self.examine(*key, list(messages))
        else:
            yield from ((key, message) for message in messages)

    def examines(self, name: str) -> bool:
        """Return whether this step examines the messages of keys with a name."""
        return name != FOUND[0]

    def examine(self, name: str, number: int, messages: list[Any]) -> Iterator[Message]:
        """Yield what the messages of a key become that the step examines."""
        raise NotImplementedError

    def facts(self, batch: Batch) -> ExampleFacts:
        """Return the facts of a batch, in the same order each time."""
        places = sorted(batch, key=str)
        found = map_in_order(self._facts, places, threads=_FILES_AT_ONCE)
        return ExampleFacts(chain.from_iterable(found))

    def _facts(self, place: str | ExistingGroup) -> Iterable[Columns]:
        return self.staging.shard_facts(place) if isinstance(place, str) else [place.facts()]

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
        yield FOUND, FoundTexts(name, about_all, ())


def _lines(
    check: Check, facts: ExampleFacts, found: Iterable[FoundRows]
) -> Iterator[tuple[Place, str]]:
    """Yield the findings of a check about examples, and where these are."""
    for part in found:
        for at, row in enumerate(part.rows.tolist()):
            other = None if part.partners is None else int(part.partners[at])
            finding = facts.finding(check.code, check.level, row, part.message(at), other)
            yield facts.address(row), finding.to_line()
