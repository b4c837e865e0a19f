"""What the steps of the checks share: the selected checks, and which examine examples together."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen import storage
from recordgen.checks.check import ALIKE, KEPT, KEYED, MOST_TOGETHER, Check, Examined
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.run import checks_of
from recordgen.checks.selection import Selection
from recordgen.core.conversion import Conversion, RowSource
from recordgen.core.facts.columns import Columns
from recordgen.core.flow.graph import bucket_count
from recordgen.core.planning.appending import Existing
from recordgen.core.planning.messages import FoundTexts
from recordgen.core.rows.columns import mixed
from recordgen.core.runs.staging import Staging

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

    def examined(
        self, facts: ExampleFacts, totals: Mapping[str, Any] | None = None
    ) -> Examined[Any]:
        """Return what the checks examine."""
        task, thresholds = self.conversion.task, self.selection.thresholds
        return Examined(facts, task, thresholds, totals=totals or {})

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
            text = (
                f"{codes}: {count:,} {noun}s are in groups of more than {self._group.most:,}, "
                f"which were examined in parts: some findings are missing"
            )
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
