"""Checks of repeated payloads: in two splits, with different labels, in one split.

Two examples have the same payload if 64 bits of its digest agree: among a million different
payloads, the odds of a false pair are 1 in 37 million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.checks.facts import ExampleFacts
from recordgen.checks.findings import FoundRows, RowIndices

#: Examples, and for each another example of its group.
Pairs: TypeAlias = "tuple[RowIndices, RowIndices]"

#: Opens an example's payload, given its uri and the import file of its row.
OpenPayload: TypeAlias = "Callable[[str, str], IO[bytes]]"


class LintedTask(Protocol):
    """The part of :class:`recordgen.core.task.task.Task` that checks use."""

    noun: ClassVar[str]
    by_address: ClassVar[bool]
    checks: ClassVar[Sequence[str]]

    def shown(self, annotation: str) -> str:
        """Return an annotation as messages show it."""

    def nearly_agree(self, one: str, other: str) -> bool:
        """Return whether different annotations of one payload mean the same."""


class Groups:
    """Examples in groups of two or more.

    Attributes:
        members: the examples, group by group; within a group train first, then by file and line.
        first: for each member, the index of its group's first member.
    """

    def __init__(self, facts: ExampleFacts, groups: npt.NDArray[Any]) -> None:
        """Group examples; ``groups`` has a number for each, the same within a group."""
        order = np.lexsort((facts.splits, groups))
        ordered = groups[order]
        is_repeated = np.zeros(len(order), np.bool_)
        is_repeated[1:] = ordered[1:] == ordered[:-1]
        is_repeated[:-1] |= is_repeated[1:]
        self.members: RowIndices = order[is_repeated]
        self.first = first_equal(ordered[is_repeated])
        self._splits = facts.splits[self.members]

    def across_splits(self) -> Pairs:
        """Return members that are in another split than the first member of their group."""
        places = np.flatnonzero(self._splits != self._splits[self.first])
        return self.pairs(places, self.first[places])

    def within_splits(self) -> Pairs:
        """Return members that have an earlier member of their group in the same split."""
        first = first_equal(self.first * (self._splits.max(initial=0) + 1) + self._splits)
        places = np.flatnonzero(first != np.arange(len(first)))
        return self.pairs(places, first[places])

    def pairs(self, places: RowIndices, partners: RowIndices) -> Pairs:
        """Return pairs of the members at ``places`` and ``partners``, by file and line."""
        rows = self.members[places]
        by_place = np.argsort(rows)
        return rows[by_place], self.members[partners[by_place]]


def first_equal(ordered: npt.NDArray[Any]) -> RowIndices:
    """Return for each of several ascending numbers the index of the first equal one."""
    return np.searchsorted(ordered, ordered)


def find_repeated(
    facts: ExampleFacts, task: LintedTask, thresholds: Mapping[str, float]
) -> Iterator[FoundRows]:
    """Yield leaks, contradictions and duplicates."""
    groups = Groups(facts, facts.contents)

    def same(code: str, rows: RowIndices, partners: RowIndices) -> FoundRows:
        def message(at: int) -> str:
            return f"the same {task.noun} as {facts.place(partners[at])}"

        return FoundRows(code, rows, message, partners)

    yield same("LEAK", *groups.across_splits())
    if task.by_address:
        return  # rows are parts of one payload, and parts may have different labels
    yield _conflicts(facts, task, groups)
    yield same("DUPLICATE", *groups.within_splits())


def _conflicts(facts: ExampleFacts, task: LintedTask, groups: Groups) -> FoundRows:
    annotations = facts.annotations[groups.members]
    annotated = np.flatnonzero(annotations >= 0)
    first = annotated[first_equal(groups.first[annotated])]
    is_other = annotations[annotated] != annotations[first]
    rows, partners = groups.pairs(annotated[is_other], first[is_other])
    contradict = np.array(
        [
            not task.nearly_agree(facts.annotation(row) or "", facts.annotation(other) or "")
            for row, other in zip(rows, partners, strict=True)
        ],
        np.bool_,
    )
    rows, partners = rows[contradict], partners[contradict]

    def message(at: int) -> str:
        here, there = (task.shown(facts.annotation(row) or "") for row in (rows[at], partners[at]))
        where = facts.place(partners[at])
        return f"{here} here, but {there} for the same {task.noun} in {where}"

    return FoundRows("CONFLICT", rows, message, partners)
