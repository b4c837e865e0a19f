"""Checks of repeated payloads: in two splits, with different labels, in one split; and of videos.

Two examples have the same payload if 64 bits of its digest agree: among a million different
payloads, the odds of a false pair are 1 in 37 million.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.checks.check import KEYED, MOST_TOGETHER, Check, CheckedTask, Examined, FoundRows
from recordgen.checks.facts import ExampleFacts
from recordgen.core.dataset.lint import ERROR
from recordgen.core.facts import SEGMENTS
from recordgen.core.facts.kept_rows import RowIndices

#: Examples, and for each another example of its group.
Pairs: TypeAlias = "tuple[RowIndices, RowIndices]"


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


class CopyCheck(Check):
    """A check of the copies of a payload."""

    scope = KEYED
    most_together = MOST_TOGETHER


class Leak(CopyCheck):
    """The same payload is in two splits."""

    code = "LEAK"
    level = ERROR
    remedies = (
        "--group-by content keeps copies in one split if rows name none",
        "give copies the same split, or delete one",
    )

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples whose payload is in an earlier split, too."""
        yield _same(examined, *examined.shared(_copies).across_splits())


class Conflict(CopyCheck):
    """The same payload has different annotations."""

    code = "CONFLICT"
    level = ERROR
    remedies = ("correct the label that is wrong",)

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples that contradict the first annotated one with their payload."""
        # Rows with an address are parts of one payload, and parts may have different labels.
        if not examined.task.by_address:
            yield _conflicts(examined.facts, examined.task, examined.shared(_copies))


class Duplicate(CopyCheck):
    """The same payload is twice in one split."""

    code = "DUPLICATE"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples whose payload is earlier in their split, too."""
        if not examined.task.by_address:
            yield _same(examined, *examined.shared(_copies).within_splits())


class Overlap(CopyCheck):
    """Parts of one video with different labels overlap."""

    code = "OVERLAP"
    needs = (SEGMENTS,)

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield segments that begin inside an earlier segment of their video with another label.

        Segments with the same start and end are one segment with several labels.
        """
        facts, task = examined.facts, examined.task
        segments = [task.segment(facts.annotation(row)) for row in range(len(facts))]
        videos = facts.contents
        order = sorted(range(len(facts)), key=lambda row: (videos[row], *segments[row][1:]))
        found: dict[int, int] = {}
        for _, parts in groupby(order, videos.__getitem__):
            last, *others = parts  # ``last`` is the segment with the latest end so far
            for row in others:
                label, start, end = segments[row]
                other, other_start, other_end = segments[last]
                is_other = label != other and (start, end) != (other_start, other_end)
                if start < other_end and is_other:
                    found[row] = last
                if end > other_end:
                    last = row
        rows = np.array(sorted(found), np.intp)
        partners = np.array([found[row] for row in rows], np.intp)

        def message(at: int) -> str:
            partner = int(partners[at])
            label, start, end = segments[partner]
            return f"overlaps {start:g} to {end:g} s, {label!r}, in {facts.place(partner)}"

        yield FoundRows(rows, message, partners)


def _copies(examined: Examined[CheckedTask]) -> Groups:
    return Groups(examined.facts, examined.facts.contents)


def _same(examined: Examined[CheckedTask], rows: RowIndices, partners: RowIndices) -> FoundRows:
    noun, place = examined.task.noun, examined.facts.place
    return FoundRows(rows, lambda at: f"the same {noun} as {place(partners[at])}", partners)


def _conflicts(facts: ExampleFacts, task: CheckedTask, groups: Groups) -> FoundRows:
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

    return FoundRows(rows, message, partners)
