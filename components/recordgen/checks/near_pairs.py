"""Checks of near-duplicates: images and texts that are nearly, but not fully, the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.checks.check import ALIKE, Check, CheckedTask, Examined, FoundRows
from recordgen.checks.contents import Groups, Pairs
from recordgen.checks.facts import ExampleFacts
from recordgen.core.facts import IMAGES, MEASURES
from recordgen.core.facts.columns import Columns
from recordgen.core.facts.kept_rows import RowIndices
from recordgen.measures import likeness, texts
from recordgen.measures.likeness import BANDS, Indices, group_by_keys

#: The facts that tell which examples are alike.
NEAR_COLUMNS = ["source", "line", "perceptual_hash", "signature", "contrast", "characters"]

#: The division in which all examples are together.
UNDIVIDED = -1

#: The least similarity of two texts that are nearly the same.
LEAST_SIMILARITY = 0.7

#: Examples that are compared at once, and the most that a portion takes over from the one before.
MOST_COMPARED, _MOST_LEADERS = 1 << 20, 1 << 17

# Pictures and mirror images in a crowd from which on pairs are missed: below, all are compared.
_CROWD = 1000


class _Near(Check):
    scope = ALIKE
    needs = (MEASURES,)
    is_similarity = True


class NearLeak(_Near):
    """Payloads in two splits are nearly the same."""

    code = "NEAR_LEAK"
    remedies = (
        "--group-by near keeps similar images in one split if rows name none",
        "give similar ones the same split, or delete one",
    )

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield examples that are nearly the same as one in an earlier split."""
        yield _near(examined, examined.shared(_groups).across_splits())


class NearDuplicate(_Near):
    """Payloads in one split are nearly the same."""

    code = "NEAR_DUPLICATE"

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
    """Return the divisions of :func:`divided` with pictures or with texts."""
    return range(BANDS) if IMAGES in task.facts else range(BANDS, BANDS + texts.BANDS)


def divided(
    facts: ExampleFacts, buckets: int
) -> Iterator[tuple[int, RowIndices, npt.NDArray[np.uint64]]]:
    """Yield divisions of the measured examples: two that are alike share a key in one of them.

    A division has a number, the rows, and a key of each. With one bucket, all are one division.
    """
    rows, looks = facts.looks
    usable = likeness.has_hash(looks) if len(rows) else np.zeros(0, np.bool_)
    rows, hashes = rows[usable], looks.perceptual_hash[usable]
    worded, signatures = facts.signatures
    if buckets == 1:
        every = np.concatenate([rows, worded])
        yield UNDIVIDED, every, np.zeros(len(every), np.uint64)
        return
    for band in range(BANDS):
        yield band, rows, likeness.same_in_band(hashes, band)
    for band, keys in enumerate(texts.bands(signatures)):
        yield BANDS + band, worded, keys.astype(np.uint64)


def alike_groups(
    facts: ExampleFacts,
    least: float | None,
    on_crowd: Callable[[int], None] = lambda views: None,
    division: int = UNDIVIDED,
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
    band = None if division == UNDIVIDED else division
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
    tables: Iterable[Columns],
    least: float | None,
    on_crowd: Callable[[int], None],
    division: int,
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


def crowd_remarks(views: int, noun: str) -> Sequence[str]:
    """Return what to say if so many pictures and mirror images look like very many others."""
    if views < _CROWD:
        return []
    return [
        f"some {views // 2:,} {noun}s are so much like many others that each was only compared "
        f"with some of them: near-duplicates among them may be missing"
    ]


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
