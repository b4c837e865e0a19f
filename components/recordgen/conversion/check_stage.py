"""A step of the checks: its messages, and the files that it reads and writes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.checks.check import Check, Examined, FoundRows
from recordgen.checks.facts import ExampleFacts
from recordgen.conversion.appending import ExistingGroup, read_group
from recordgen.conversion.examination import Examination
from recordgen.conversion.found import FoundFile, write_found
from recordgen.core.facts.columns import Columns
from recordgen.core.flow.runner import Count, Step
from recordgen.core.rows.columns import packed, unpacked
from recordgen.core.runs.staging import Staging

#: Kind and name of what a message is about, and a number: of a bucket, or of a row group.
Key: TypeAlias = tuple[str, int]
Message: TypeAlias = tuple[Key, Any]

#: Keys of messages that are for no bucket: what all shards add up to, the seconds of the work.
TOTALS, SECONDS = ("totals", 0), ("seconds", 0)

#: The first word of keys: before the name of a shard, a code, or a group of checks.
SHARD, CODE, NEAR, UNITE = "shard ", "code ", "near ", "unite "


class Slice(NamedTuple):
    """Columns in the staging folder, and the shard that they are of."""

    file: str
    start: int
    length: int
    shard: Key


class Members(NamedTuple):
    """Rows of a shard that other examples are like, and the keys of their groups."""

    group: str
    rows: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint64]


def shard_key(shard: Key) -> Key:
    """Return the key of messages for a shard."""
    return SHARD + shard[0], shard[1]


@dataclass(eq=False)
class Stage(Step):
    """A step that notes how long its work takes."""

    shared: Examination
    staging: Staging = field(init=False)

    def __post_init__(self) -> None:
        self.staging = self.shared.staging

    def begin(self, count: Count) -> None:
        """Prepare for elements, and for a report of the shards."""
        super().begin(count)
        self._heartbeat = self.staging.checking_heartbeat()

    def process(self, element: Any) -> Iterator[Any]:
        """Yield the messages of the work, and how long it took."""
        started = time.monotonic()
        if isinstance(element, tuple) and element[0] == SECONDS:
            yield SECONDS, sum(element[1])
            return
        yield from self._work(element)
        yield SECONDS, time.monotonic() - started

    def _work(self, element: Any) -> Iterator[Message]:
        """Yield messages for the next step."""
        raise NotImplementedError

    def facts(self, shard: Key) -> ExampleFacts:
        """Return the facts of a shard."""
        name, number = shard
        if number < 0:
            return ExampleFacts([self.staging.shard_facts(name)])
        return ExampleFacts([read_group(ExistingGroup(name, number))])

    def sliced(
        self, shard: Key, parts: Iterable[tuple[Key, Columns]]
    ) -> Iterator[tuple[Key, Slice]]:
        """Write columns to one file, and yield where they are, by key."""
        file, start, content, found = self.staging.new_sketch(), 0, [], []
        for key, columns in parts:
            content.append(packed(columns))
            found.append((key, Slice(file, start, len(content[-1]), shard)))
            start += len(content[-1])
        if content:
            self.staging.write_sketch(file, b"".join(content))
        yield from found

    def read(self, part: Slice) -> Columns:
        """Return the columns of a slice."""
        [columns] = unpacked(self.staging.read_sketch(part.file, part.start, part.length))
        return columns

    def found(
        self, name: str, checks: Sequence[Check], examined: Examined[Any], *, is_whole: bool = False
    ) -> Iterator[tuple[Key, FoundFile]]:
        """Run checks, and yield the files of their findings by code."""
        about_all: dict[str, list[str]] = {}
        for check in checks:
            items = list(check.findings(examined))
            about_all[check.code] = [item for item in items if isinstance(item, str)]
            rows = [item for item in items if isinstance(item, FoundRows)]
            file = write_found(self.staging, check, examined.facts, rows, is_whole=is_whole)
            if file is not None:
                yield (CODE + check.code, 0), file
        if examined.remarks or any(about_all.values()):
            self.staging.write_about(name, about_all, examined.remarks)
