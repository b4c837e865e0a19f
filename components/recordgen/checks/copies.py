"""Checks of repeated payloads: in two splits, with different labels, in one; exactly or nearly.

Two examples have the same payload if 64 bits of its digest agree: among a million different
payloads, the odds of a false pair are 1 in 37 million. Images and texts may also be nearly alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.checks import check
from recordgen.checks.check import Check, CheckedTask, Examined, ExampleFacts, FoundRows
from recordgen.core.dataset.lint import ERROR
from recordgen.core.facts import IMAGES, MEASURES
from recordgen.core.facts.columns import Columns
from recordgen.core.facts.kept_rows import RowIndices
from recordgen.measures import likeness, texts
from recordgen.measures.likeness import BANDS, Indices, group_by_keys

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

    scope = check.KEYED
    most_together = check.MOST_TOGETHER


class Leak(CopyCheck):
    """The same payload is in two splits."""

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

    level = ERROR
    remedies = ("correct the label that is wrong",)

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples that contradict the first annotated one with their payload."""
        # Rows with an address are parts of one payload, and parts may have different labels.
        if not examined.task.by_address:
            yield _conflicts(examined.facts, examined.task, examined.shared(_copies))


class Duplicate(CopyCheck):
    """The same payload is twice in one split."""

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples whose payload is earlier in their split, too."""
        if not examined.task.by_address:
            yield _same(examined, *examined.shared(_copies).within_splits())


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


#: The facts that tell which examples are alike.
NEAR_COLUMNS = ["source", "line", "perceptual_hash", "signature", "contrast", "characters"]

#: The least similarity of two texts that are nearly the same.
LEAST_SIMILARITY = 0.7

#: Examples that are compared at once, and the most that a portion takes over from the one before.
MOST_COMPARED, _MOST_LEADERS = 1 << 20, 1 << 17


class _Near(Check):
    scope = check.ALIKE
    needs = (MEASURES,)
    is_similarity = True


class NearLeak(_Near):
    """Payloads in two splits are nearly the same."""

    remedies = (
        "--group-by near keeps similar images in one split if rows name none",
        "give similar ones the same split, or delete one",
    )

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples that are nearly the same as one in an earlier split."""
        yield _near(examined, examined.shared(_groups).across_splits())


class NearDuplicate(_Near):
    """Payloads in one split are nearly the same."""

    is_default = False

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples that are nearly the same as an earlier one in their split."""
        yield _near(examined, examined.shared(_groups).within_splits())


def _groups(examined: Examined[CheckedTask]) -> Groups:
    return Groups(examined.facts, _without_copies(examined.facts, examined.facts.groups))


def _near(examined: Examined[CheckedTask], pairs: Pairs) -> FoundRows:
    facts, noun = examined.facts, examined.task.noun
    is_other = facts.contents[pairs[0]] != facts.contents[pairs[1]]
    rows, partners = (side[is_other] for side in pairs)

    def message(at: int) -> str:
        text = f"nearly the same {noun} as {facts.place(partners[at])}"
        similarity = facts.similarity(rows[at], partners[at])
        return text if similarity is None else f"{text}, similarity {similarity:.2f}"

    return FoundRows(rows, message, partners)


def divisions_of(task: CheckedTask) -> range:
    """Return the divisions of :meth:`ExampleFacts.divided` with pictures or with texts."""
    return range(BANDS) if IMAGES in task.facts else range(BANDS, BANDS + texts.BANDS)


def alike_groups(
    facts: ExampleFacts,
    least: float | None,
    on_crowd: Callable[[int], None] = lambda views: None,
    division: int = check.UNDIVIDED,
) -> npt.NDArray[np.uint64]:
    """Return a number for each example, the same for examples that are alike.

    Args:
        facts: facts about all examples, or about those with some of the keys of a division.
        least: the least similarity.
        on_crowd: called with the number of pictures and mirror images that look like very many
            others, and are not compared with all of them.
        division: the division.
    """
    numbers = np.arange(len(facts))  # each example that was not measured is alone
    band = None if division == check.UNDIVIDED else division
    seen, looks = facts.looks
    if len(seen):
        least_correlation = least or likeness.LEAST_CORRELATION
        alike = likeness.find_alike(looks, least=least_correlation, on_crowd=on_crowd, band=band)
        numbers[seen] = seen[alike]
    rows, signatures = facts.signatures
    if len(rows):
        bands = range(texts.BANDS) if band is None else [band - BANDS]
        numbers[rows] = rows[group_texts(signatures, least or LEAST_SIMILARITY, bands)]
    return numbers.astype(np.uint64)


def joined(
    tables: Iterable[Columns], least: float | None, on_crowd: Callable[[int], None], division: int
) -> Iterator[Columns]:
    """Yield the examples that others are like, portion by portion.

    A portion has at most about :data:`MOST_COMPARED` examples, and the first ones of the largest
    groups of the portion before. Those of several portions are a crowd.

    Args:
        tables: columns of :data:`NEAR_COLUMNS`, and the ``batch`` and ``row`` of each example.
        least: the least similarity.
        on_crowd: called with the number of pictures and mirror images, or twice that of texts, that
            are not compared with all that are like them.
        division: the division.

    Yields: ``batch``, ``row`` and ``group``, the same number for those that are alike.
    """
    tables, leaders = iter(tables), list[Columns]()
    while portion := list(_up_to(tables, MOST_COMPARED)):
        views = [2 * sum(map(len, portion))] if leaders else []
        facts = ExampleFacts.compared([*leaders, *portion])
        portion.clear()  # its memory is needed
        groups = alike_groups(facts, least, views.append, division).astype(np.int32)
        if views:
            on_crowd(views[0])
        sizes = np.bincount(groups, minlength=len(groups))
        chosen = np.flatnonzero(sizes[groups] > 1)
        found = facts.columns.select(["batch", "row"]).take(pa.array(chosen))
        yield found.append_column("group", pa.array(groups[chosen]))
        largest = np.argsort(-sizes, kind="stable")[:_MOST_LEADERS]
        leaders = [facts.columns.take(pa.array(largest[sizes[largest] > 1]))]
        del facts


def _up_to(tables: Iterable[Columns], count: int) -> Iterator[Columns]:
    """Yield tables until they have so many rows."""
    for table in tables:
        yield table
        count -= len(table)
        if count <= 0:
            return


def _without_copies(facts: ExampleFacts, groups: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """Return the groups without all but one of several copies in a split.

    DUPLICATE reports the others.
    """
    numbers = groups.astype(np.intp)
    by_content = np.lexsort((facts.splits, facts.contents))
    contents, splits = facts.contents[by_content], facts.splits[by_content]
    is_copy = (contents[1:] == contents[:-1]) & (splits[1:] == splits[:-1])
    copies = by_content[1:][is_copy]
    numbers[copies] = -1 - copies
    return numbers


def group_texts(
    signatures: texts.Signatures, least: float, bands: Iterable[int] = range(texts.BANDS)
) -> Indices:
    """Group texts that are nearly the same.

    Args:
        signatures: signatures of all texts, see :mod:`recordgen.measures.texts`.
        least: the least similarity of two such texts, 0 to 1. Below 0.5, many pairs are missed.
        bands: the parts of signatures of which two such texts have one in common.

    Returns:
        int32 [n]: the lowest number of the group of each text; its own if it has none.
    """

    def alike(first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        shared = texts.similarity(signatures[first], signatures[second])
        return shared >= least

    return group_by_keys(texts.bands(signatures, bands), len(signatures), alike)
