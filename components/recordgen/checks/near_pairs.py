"""Checks of near-duplicates: images and texts that are nearly, but not fully, the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from recordgen.checks import minhash, pictures
from recordgen.checks.contents import Groups, LintedTask, Pairs
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.findings import FoundRows
from recordgen.checks.neighbours import Indices, group_by_keys

#: The least similarity of two texts that are nearly the same.
LEAST_SIMILARITY = 0.7


def find_alike(
    facts: ExampleFacts, task: LintedTask, thresholds: Mapping[str, float]
) -> Iterator[FoundRows]:
    """Yield payloads that are nearly the same as another one."""

    @lru_cache(maxsize=1)  # both codes nearly always have the same threshold
    def groups(least: float | None) -> Groups:
        return Groups(facts, _numbers(facts, least))

    def near(code: str, pairs: Pairs) -> FoundRows:
        is_other = facts.contents[pairs[0]] != facts.contents[pairs[1]]
        rows, partners = (side[is_other] for side in pairs)

        def message(at: int) -> str:
            text = f"nearly the same {task.noun} as {facts.place(partners[at])}"
            similarity = facts.similarity(rows[at], partners[at])
            return text if similarity is None else f"{text}, similarity {similarity:.2f}"

        return FoundRows(code, rows, message, partners)

    yield near("NEAR_LEAK", groups(thresholds.get("NEAR_LEAK")).across_splits())
    yield near("NEAR_DUPLICATE", groups(thresholds.get("NEAR_DUPLICATE")).within_splits())


def _numbers(facts: ExampleFacts, least: float | None) -> npt.NDArray[np.intp]:
    """Return a number for each example, the same for examples that are alike."""
    numbers = -1 - np.arange(len(facts))  # each example that was not examined is alone
    seen, looks = facts.looks
    if len(seen):
        numbers[seen] = seen[pictures.find_alike(looks, least=least or pictures.LEAST_CORRELATION)]
    rows, signatures = facts.signatures
    if len(rows):
        numbers[rows] = rows[group_texts(signatures, least or LEAST_SIMILARITY)]
    # Only one of several copies in a split is compared: find_repeated reports the others.
    by_content = np.lexsort((facts.splits, facts.contents))
    contents, splits = facts.contents[by_content], facts.splits[by_content]
    is_copy = (contents[1:] == contents[:-1]) & (splits[1:] == splits[:-1])
    copies = by_content[1:][is_copy]
    numbers[copies] = -1 - copies
    return numbers


def group_texts(signatures: minhash.Signatures, least: float) -> Indices:
    """Group texts that are nearly the same.

    Args:
        signatures: signatures of all texts, see :mod:`recordgen.checks.minhash`.
        least: the least similarity of two such texts, 0 to 1. Below 0.5, many pairs are missed.

    Returns:
        int32 [n]: the lowest number of the group of each text; its own if it has none.
    """

    def alike(first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        shared = minhash.similarity(signatures[first], signatures[second])
        return shared >= least

    return group_by_keys(minhash.bands(signatures), len(signatures), alike)
