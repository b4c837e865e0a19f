"""Payloads that are there several times: in two splits, with other labels, in one split.

Two examples have one payload if 64 bits of its digest agree: among a million different ones, the
odds of a false pair are 1 in 37 million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.lint.facts import Facts
from recordgen.lint.findings import Hits, Rows

#: Opens the payload that a uri of an example names, given the import file of its row, too.
OpenPayload: TypeAlias = "Callable[[str, str], IO[bytes]]"


class LintedTask(Protocol):
    """What checks ask a task, see :class:`recordgen.tasks.task.Task`."""

    noun: ClassVar[str]
    by_address: ClassVar[bool]
    checks: ClassVar[Sequence[str]]

    def shown(self, annotation: str) -> str:
        """Return an annotation as messages show it."""


class Groups:
    """Examples that belong together, by twos or more.

    Attributes:
        members: the examples, group by group; of each, train first, then by file and line.
        first: for each member the place of the first of its group.
    """

    def __init__(self, facts: Facts, groups: npt.NDArray[Any]) -> None:
        """Take a number for each example, the same for those of one group."""
        order = np.lexsort((facts.splits, groups))
        self.members: Rows = order[_is_repeated(groups[order])]
        self.first = _first_of_run(groups[self.members])
        self._splits = facts.splits[self.members]
        self._facts = facts

    def across_splits(self) -> Pairs:
        """Return those that are in another split than the first of their group."""
        return self.pairs(self.first, self._splits != self._splits[self.first])

    def within_splits(self) -> Pairs:
        """Return those before which another one of their group is in their split."""
        first = _first_of_run(self.first * len(self._facts.names) + self._splits)
        return self.pairs(first, first != np.arange(len(first)))

    def pairs(self, partner: Rows, is_found: npt.NDArray[np.bool_]) -> Pairs:
        """Return those that were found, by file and line, each with the one at its ``partner``."""
        rows, partners = self.members[is_found], self.members[partner[is_found]]
        by_place = np.argsort(rows)
        return Pairs(rows[by_place], partners[by_place])


class Pairs(NamedTuple):
    """Examples, each beside another one of its group."""

    rows: Rows
    partners: Rows


def find_repeated(
    facts: Facts, task: LintedTask, thresholds: Mapping[str, float]
) -> Iterator[Hits]:
    """Yield leaks, contradictions and duplicates."""
    groups = Groups(facts, facts.contents)

    def same(code: str, pairs: Pairs) -> Hits:
        def message(at: int) -> str:
            return f"the same {task.noun} as {facts.place(pairs.partners[at])}"

        return Hits(code, pairs.rows, message, pairs.partners)

    yield same("LEAK", groups.across_splits())
    if task.by_address:
        return  # rows are parts of one payload, which may well say different things
    yield _conflicts(facts, task, groups)
    yield same("DUPLICATE", groups.within_splits())


def _conflicts(facts: Facts, task: LintedTask, groups: Groups) -> Hits:
    said = facts.annotations[groups.members]
    speaker = _first_of_run(groups.first, where=said >= 0)
    pairs = groups.pairs(speaker, (said >= 0) & (said != said[speaker]))

    def message(at: int) -> str:
        here, there = (
            task.shown(facts.annotation(row) or "") for row in (pairs.rows[at], pairs.partners[at])
        )
        where = facts.place(pairs.partners[at])
        return f"{here} here, but {there} for the same {task.noun} in {where}"

    return Hits("CONFLICT", pairs.rows, message, pairs.partners)


def _is_repeated(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Say of each of several ordered numbers whether it is there again."""
    same = ordered[1:] == ordered[:-1]
    is_repeated = np.zeros(len(ordered), np.bool_)
    is_repeated[1:] |= same
    is_repeated[:-1] |= same
    return is_repeated


def _first_of_run(ordered: npt.NDArray[Any], where: npt.NDArray[np.bool_] | None = None) -> Rows:
    """Return for each of several ordered numbers the place of the first that equals it.

    Args:
        ordered: equal ones stand together.
        where: places that may be first; of numbers without such a place, any is.
    """
    count = len(ordered)
    is_start = np.ones(count, np.bool_)
    is_start[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_start)
    places = np.arange(count)
    if where is not None and count:
        places = np.where(where, places, count - 1)
    first = np.minimum.reduceat(places, starts) if count else starts
    return np.repeat(first, np.diff(np.append(starts, count)))
