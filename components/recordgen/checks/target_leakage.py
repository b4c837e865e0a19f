"""A check of columns that give the target of a table away.

It scores columns as the only input of a model.

A score is the share of the best constant answer's errors that the column corrects: 1 means all of
them, and a random column scores 0. No model is fitted: a value predicts the target of other rows
with the same value, so a column of names that each occur once scores 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordgen.checks.check import Examined
from recordgen.checks.tables import KeptRows, TableCheck, kept_rows
from recordgen.core.facts.kept_rows import floats

_Codes = npt.NDArray[np.intp]
_Floats = npt.NDArray[np.float64]
_Score = Callable[[Any, _Codes], float]

# A value is informative if this number of rows has it.
_ENOUGH = 5

# This part of the rows must have informative values.
_COVERED = 0.9

# The constant answer must be wrong in this number of rows, or a column may be right by chance.
_LEAST_ERRORS = 10


class GiveAway(TableCheck):
    """A column from which the target follows."""

    code = "GIVE_AWAY"
    threshold = 99
    remedies = ("remove the column if it is not known when a model predicts",)

    def findings(self, examined: Examined[Any]) -> Iterator[str]:
        """Yield columns that score at least the threshold."""
        table, kept = examined.task.table, examined.shared(kept_rows)
        if table.target is not None and table.target in kept.varied():
            inputs = kept.varied(table.target, table.weight, table.group)
            yield from _give_away(inputs, table, kept, examined.thresholds[self.code])


def _give_away(inputs: Sequence[str], table: Any, kept: KeptRows, least: float) -> Iterator[str]:
    targets = kept.sample(str(table.target))
    has_target = targets.is_valid()
    score = scoring(targets.filter(has_target), has_labels=table.has_labels)
    if score is None:
        return
    # The score of amounts is a share of squared errors, so its threshold must be stricter.
    needed = least / 100 if table.has_labels else 1 - (1 - least / 100) / 5
    for name in inputs:
        values = kept.sample(name).filter(has_target)
        found = score(values, codes_of(values))
        if found >= needed:
            yield (
                f"column {name!r} alone gives target {table.target!r} away: it scores "
                f"{100 * found:.1f} of 100, where chance scores 0"
            )


def scoring(target: Any, *, has_labels: bool) -> _Score | None:
    """Return the function that scores a column, given its values and their codes.

    It is None if the target, of which no value is missing, varies too little to judge a column.
    """
    if has_labels:
        classes = codes_of(target)
        if len(classes) - np.bincount(classes).max(initial=0) < _LEAST_ERRORS:
            return None
        return lambda values, codes: _score_of_classes(values, codes, classes)
    amounts = floats(target)
    if len(np.unique(amounts)) < _LEAST_ERRORS:
        return None
    return lambda values, codes: _score_of_amounts(values, codes, amounts)


def codes_of(values: Any) -> _Codes:
    """Return an index from 0 for each distinct value; missing values share one."""
    codes: Any = values.dictionary_encode("encode").indices
    return np.asarray(codes).astype(np.intp)


def _score_of_classes(values: Any, codes: _Codes, classes: _Codes) -> float:
    by_value = 0.0
    sizes = np.bincount(codes)
    often = sizes[codes] >= _ENOUGH
    if often.mean() >= _COVERED:
        wrong = len(classes) - np.bincount(classes).max()
        kinds = int(classes.max()) + 1
        _, pairs = np.unique(codes * kinds + classes, return_inverse=True)
        same = np.bincount(pairs)[pairs.reshape(-1)]
        most = np.zeros(len(sizes), np.intp)
        np.maximum.at(most, codes, same)
        # All rows with rare values count as errors.
        missed = (sizes - most)[sizes >= _ENOUGH].sum() + (~often).sum()
        by_value = 1 - missed / wrong
    return max(by_value, _score_in_order(values, classes))


def _score_in_order(values: Any, classes: _Codes) -> float:
    """Score numbers by how rarely the class changes from one number to the next larger one."""
    numbers = _numbers(values)
    if numbers is None:
        return 0.0
    # Rows with equal numbers get an order that depends only on their index.
    ordered = classes[np.lexsort((_shuffled(len(classes)), numbers))]
    changes = int((ordered[1:] != ordered[:-1]).sum())
    shares = np.bincount(classes) / len(classes)
    least = int((shares > 0).sum()) - 1
    by_chance = (len(classes) - 1) * (1 - float((shares**2).sum()))
    return 1 - (changes - least) / max(1.0, by_chance - least)


def _score_of_amounts(values: Any, codes: _Codes, amounts: _Floats) -> float:
    """Score a column by the best fit: each value's mean, or a line of values or of ranks."""
    scores = [0.0]
    sizes = np.bincount(codes)
    if (sizes[codes] >= _ENOUGH).mean() >= _COVERED:
        means = np.bincount(codes, weights=amounts) / np.maximum(sizes, 1)
        rest, total = ((amounts - mean) ** 2 for mean in (means[codes], amounts.mean()))
        scores.append(1 - float(rest.sum() / max(total.sum(), np.finfo(float).tiny)))
    numbers = _numbers(values)
    if numbers is not None and len(sizes) >= _ENOUGH:
        there = np.isfinite(numbers)
        if there.mean() >= _COVERED:
            x, y = numbers[there], amounts[there]
            scores += [_r(x, y) ** 2, _r(_ranks(x), _ranks(y)) ** 2]
    return max(scores)


def _r(x: _Floats, y: _Floats) -> float:
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread else 0.0


def _ranks(numbers: _Floats) -> _Floats:
    """Return the mean rank of each number."""
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places.reshape(-1)]


def _numbers(values: Any) -> _Floats | None:
    """Return numbers, minus infinity for missing ones; None if the values are texts."""
    if str(values.type) == "string":
        return None
    numbers = floats(values)
    return np.where(np.isnan(numbers), -np.inf, numbers)


def _shuffled(count: int) -> npt.NDArray[np.uint64]:
    """Return distinct numbers in shuffled order."""
    return np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
