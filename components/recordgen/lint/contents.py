"""Payloads that are there several times: in two splits, with other labels, in one split.

Two examples have one payload if 64 bits of its digest agree: among a million different ones, the
odds of a false pair are 1 in 37 million.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from recordgen.lint.facts import Facts
from recordgen.lint.findings import Hits, Rows


class LintedTask(Protocol):
    """What checks ask a task, see :class:`recordgen.tasks.task.Task`."""

    noun: ClassVar[str]
    by_address: ClassVar[bool]

    def shown(self, annotation: str) -> str:
        """Return an annotation as messages show it."""


def find_repeated(facts: Facts, task: LintedTask) -> Iterator[Hits]:
    """Yield leaks, contradictions and duplicates."""
    contents = facts.contents
    # Of one payload: split by split, train first, and there by import file and line.
    order = np.lexsort((facts.splits, contents))
    order = order[_is_repeated(contents[order])]
    payload = _first_of_run(contents[order])
    splits = facts.splits[order]
    yield _pairs("LEAK", facts, task, order, payload, splits != splits[payload])
    if task.by_address:
        return  # rows are parts of one payload, which may well say different things
    said = facts.annotations[order]
    speaker = _first_of_run(payload, where=said >= 0)
    is_other = (said >= 0) & (said != said[speaker])
    yield _pairs("CONFLICT", facts, task, order, speaker, is_other)
    same_split = _first_of_run(payload * len(facts.names) + splits)
    is_again = same_split != np.arange(len(order))
    yield _pairs("DUPLICATE", facts, task, order, same_split, is_again)


def _pairs(
    code: str,
    facts: Facts,
    task: LintedTask,
    order: Rows,
    partner: Rows,
    is_found: npt.NDArray[np.bool_],
) -> Hits:
    """Return the examples that were found, each with another one of its payload.

    Args:
        code: of the check.
        facts: of all examples.
        task: says how annotations are shown.
        order: the examples that were looked at.
        partner: the place of the other one, for each of them.
        is_found: whether a pair is a finding.
    """
    rows, partners = order[is_found], order[partner[is_found]]
    by_place = np.argsort(rows)
    rows, partners = rows[by_place], partners[by_place]

    def message(at: int) -> str:
        where = facts.place(partners[at])
        if code != "CONFLICT":
            return f"the same {task.noun} as {where}"
        mine, other = (task.shown(facts.annotation(row) or "") for row in (rows[at], partners[at]))
        return f"{mine} here, but {other} for the same {task.noun} in {where}"

    return Hits(code, rows, message)


def _is_repeated(ordered: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
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
