"""Checks of columns of tables: constant or mixed ones, outliers, skew, and targets given away.

They read the rows that shards have kept: a sample of each split, and rows with rare values
(:mod:`recordgen.core.facts.kept_rows`).

GIVE_AWAY scores columns as the only input of a model. A score is the share of the best constant
answer's errors that the column corrects: 1 means all of them, a random column scores 0. No model
is fitted: a value predicts the target of other rows with the same value, so a column of names that
each occur once scores 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.checks.check import KEPT, Check, Examined, FoundRows
from recordgen.checks.labels import distance_of_samples, most_changed, share
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.facts import ROWS
from recordgen.core.facts.kept_rows import KINDS, RowIndices, Values, fences, fits, fits_one, floats
from recordgen.core.records.numbers import FORMS, NUMBER, is_marker
from recordgen.core.rows.columns import values_of

# Fewer rows are not enough to judge a column.
_LEAST_ROWS = 10

# Outliers are separated by a gap: this many times as far as the value before. Heavy tails, such as
# incomes, thin out without a gap.
_GAP = 5.0

# If more than this share of texts are numbers, the column was probably meant to hold numbers.
_MOST = 0.5

_REMEDY = "write all numbers like 1234.5, and leave fields without one empty"


class KeptRows(NamedTuple):
    """The rows that shards have kept."""

    rows: RowIndices  # each row's example
    columns: Mapping[str, Values]  # values [rows] by column
    sampled: RowIndices  # indices of the rows in the sample
    splits: npt.NDArray[np.str_]  # the split of each row in the sample
    constant: Mapping[str, str]  # columns with one value, and the messages about them

    def sample(self, name: str) -> Values:
        """Return the values of a column in the sample."""
        return self.columns[name].take(pa.array(self.sampled))

    def varied(self, *without: str | None) -> Sequence[str]:
        """Return the columns with several values, without some."""
        return [name for name in self.columns if name not in (*self.constant, *without)]


class TableCheck(Check):
    """A check of the columns of tables."""

    scope = KEPT
    needs = (ROWS,)


class OddColumn(TableCheck):
    """A column of one value, or one whose values suit several types."""

    threshold = 90

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows | str]:
        """Yield a message about each such column, at a row that shows it if there is one.

        Its values may be texts of which nearly all are numbers or dates, numbers among words for
        missing values, or a target that may hold classes or amounts.
        """
        table, kept = examined.task.table, examined.shared(kept_rows)
        yield from (*filter(None, [table.target_kind]), *table.markers, *kept.constant.values())
        for name in kept.varied():
            if pa.types.is_string(kept.columns[name].type):
                yield from _mixed_types(name, kept, examined.thresholds[self.code])


class Outlier(TableCheck):
    """A number that is far from all others of its column."""

    is_default = False
    threshold = 10

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield the row of the farthest number of each column that has any."""
        table, kept = examined.task.table, examined.shared(kept_rows)
        for name in kept.varied(table.target if table.has_labels else None):
            if not pa.types.is_string(kept.columns[name].type):
                yield from _outliers(name, kept, examined.thresholds[self.code])


def kept_rows(examined: Examined[Any]) -> KeptRows:
    """Return the rows that shards have kept; no columns if they are too few to judge."""
    facts = examined.facts
    rows, texts, is_sampled = facts.kept
    if len(rows) < _LEAST_ROWS:
        nothing = np.zeros(0, np.intp)
        return KeptRows(nothing, {}, nothing, np.zeros(0, np.str_), {})
    sampled = np.flatnonzero(is_sampled)
    splits = np.array(facts.names)[facts.splits[rows[sampled]]]
    columns = examined.task.column_values(texts)
    texts_of = {name: _constant(name, values) for name, values in columns.items()}
    constant = {name: text for name, text in texts_of.items() if text}
    return KeptRows(rows, columns, sampled, splits, constant)


def _constant(name: str, values: Values) -> str:
    """Return the message for a column with one value; empty if it has several.

    Each batch has kept a row with another value, if there is one, so this is true of all rows.
    """
    if values.null_count == len(values):
        return f"column {name!r} is empty: no example has it"
    if values.null_count or len(pc.unique(values)) > 1:
        return ""
    return f"column {name!r} has the value {shown(values[0].as_py())} in all rows"


def _mixed_types(name: str, kept: KeptRows, least: float) -> Iterator[FoundRows]:
    values = kept.columns[name]
    sample = kept.sample(name).drop_null()
    for kind, pattern in KINDS.items():
        misfits = np.flatnonzero(~fits(values, pattern))
        part = 100 * float(np.mean(fits(sample, pattern))) if len(sample) else 0.0
        if not len(misfits):
            continue
        is_kind = part >= least
        forms = _forms(values, sample) if kind == "numbers" and not is_kind else None
        if not is_kind and forms is None:
            continue
        shown = _most_frequent(values.take(pa.array(misfits)))
        # Some values are not of this kind, so the message must not show 100 %.
        share_of_kind = f"{min(part, 99.9):.1f} % of its values are {kind}"
        if kind == "dates":
            message = f"column {name!r} holds {shown}, though {share_of_kind}"
        elif is_kind:
            message = (
                f"column {name!r} is text because of values such as {shown}, though "
                f"{share_of_kind}; {_REMEDY}"
            )
        else:
            also = f", also with {' and '.join(forms)}" if forms else ""
            message = (
                f"column {name!r} is text because of values such as {shown}, but most of its "
                f"values are numbers{also}; {_REMEDY}"
            )
        yield FoundRows(kept.rows[misfits[:1]], _always(message))
        return


def _most_frequent(texts: Values, count: int = 4) -> str:
    words = Counter(str(text) for text in texts.to_pylist())
    [first, *others] = sorted(words, key=lambda word: (-words[word], word))[:count]
    return shown(first) + (f" and {', '.join(map(shown, others))}" if others else "")


def _forms(values: Values, sample: Values) -> list[str] | None:
    """Return the forms in which people wrote numbers, or None if texts are meant as texts.

    Most are meant as numbers if all others are one text, besides markers of missing numbers.
    """
    written = [fits_one(sample, pattern) for pattern in (NUMBER, *FORMS.values())]
    if not len(sample) or np.mean(np.any(written, axis=0)) <= _MOST:
        return None
    found = {form: fits_one(values, pattern) for form, pattern in FORMS.items()}
    is_number = np.any([fits(values, NUMBER), *found.values()], axis=0)
    others = pc.utf8_trim_whitespace(values.filter(pa.array(~is_number))).unique().to_pylist()
    if sum(not is_marker(text) for text in others) > 1:
        return None
    return [form for form, is_form in found.items() if is_form.any()]


def _outliers(name: str, kept: KeptRows, ranges: float) -> Iterator[FoundRows]:
    numbers, sample = floats(kept.columns[name]), floats(kept.sample(name))
    sample = sample[~np.isnan(sample)]
    low, high = fences(sample, ranges)
    if low == high:
        return
    is_far = (numbers < low) | (numbers > high)
    middle = float(np.median(sample))
    if middle > 0 and sample.min() >= 0:
        # Amounts vary by factors rather than by sums: outliers must stand out on both scales.
        lowest, highest = fences(np.log1p(sample / middle), ranges / 2)
        with np.errstate(invalid="ignore"):
            logs = np.log1p(np.maximum(numbers, 0) / middle)
        is_far &= (logs < lowest) | (logs > highest) | (numbers < 0)
    far = _beyond_gap(np.abs(numbers - middle), is_far)
    if not len(far):
        return
    most = far[-1]
    value = shown(kept.columns[name][int(most)].as_py())
    count = f"{len(far):,} such values were found" if len(far) > 1 else "no other value is so far"
    message = (
        f"column {name!r} has {value}, which is far from its other values: half of them are "
        f"from {_quartile(sample, 0.25)} to {_quartile(sample, 0.75)}; {count}"
    )
    yield FoundRows(kept.rows[[most]], _always(message))


def _beyond_gap(distances: npt.NDArray[np.float64], is_far: npt.NDArray[np.bool_]) -> RowIndices:
    """Return the far values from the first gap on, the most distant last."""
    order = np.argsort(np.nan_to_num(distances, nan=-1.0), kind="stable")
    ordered = distances[order]
    is_gap = np.zeros(len(order), np.bool_)
    is_gap[1:] = is_far[order][1:] & (ordered[1:] >= _GAP * ordered[:-1])
    return order[np.argmax(is_gap) :] if is_gap.any() else order[:0]


def _quartile(sample: npt.NDArray[np.float64], place: float) -> str:
    return f"{np.quantile(sample, place):.6g}"


def shown(value: object) -> str:
    """Return a value as messages show it."""
    if isinstance(value, float):
        return f"{value:.7g}"
    return f"{value!r:.80}"


def _always(text: str) -> Callable[[int], str]:
    return lambda at: text


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

    threshold = 99
    remedies = ("remove the column if it is not known when a model predicts",)

    def findings(self, examined: Examined[Any]) -> Iterator[str]:
        """Yield columns that score at least the threshold."""
        table, kept = examined.task.table, examined.shared(kept_rows)
        if table.target is None or table.target not in kept.varied():
            return
        targets = kept.sample(table.target)
        has_target = targets.is_valid()
        score = scoring(targets.filter(has_target), has_labels=table.has_labels)
        if score is None:
            return
        # The score of amounts is a share of squared errors, so its threshold must be stricter.
        least = examined.thresholds[self.code] / 100
        needed = least if table.has_labels else 1 - (1 - least) / 5
        for name in kept.varied(table.target, table.weight, table.group):
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


# Splits with fewer rows in the sample are not compared: chance alone makes them differ.
_LEAST_OF_SPLIT = 100

# Numbers are binned by tenths of train, texts by their most frequent values.
_BINS = 10
_MOST_FREQUENT = 20

_OTHERS, _MISSING = "other values", "no value"


class Skew(TableCheck):
    """A column is distributed differently in another split than in train."""

    is_default = False
    threshold = 0.1

    def findings(self, examined: Examined[Any]) -> Iterator[str]:
        """Yield columns and splits that are farther apart than chance and the threshold explain."""
        kept = examined.shared(kept_rows)
        for name in kept.varied(examined.task.table.target):
            yield from _skew(name, kept, examined.thresholds[self.code])


def _skew(name: str, kept: KeptRows, least: float) -> Iterator[str]:
    sample = kept.sample(name)
    is_train = kept.splits == TRAIN
    if is_train.sum() < _LEAST_OF_SPLIT:
        return
    bins = _bins(sample, is_train)
    expected = Counter(bins[is_train].tolist())
    for split in sorted(set(kept.splits.tolist()) - {TRAIN}):
        found = Counter(bins[kept.splits == split].tolist())
        apart, by_chance = distance_of_samples(expected, found)
        if found.total() < _LEAST_OF_SPLIT or apart - by_chance <= least:
            continue
        key = most_changed(expected, found)
        yield (
            f"column {name!r} is distributed differently in split {split} than in train: "
            f"{apart:.0%} of its values there would have to change (by chance: about "
            f"{by_chance:.0%}); {key}: {share(expected, key):.1%} of train, "
            f"{share(found, key):.1%} of {split}"
        )


def _bins(sample: Values, is_train: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return the name of each value's bin."""
    if pa.types.is_string(sample.type):
        texts = values_of(sample)
        counts = Counter(text for text in texts if text is not None)
        frequent = sorted(counts, key=lambda text: (-counts[text], text))[:_MOST_FREQUENT]
        names = {text: shown(text) for text in frequent} | {None: _MISSING}
        return np.array([names.get(text, _OTHERS) for text in texts], object)
    numbers = floats(sample)
    train = sample.filter(pa.array(is_train)).drop_null()
    if not len(train):
        return np.where(np.isnan(numbers), _MISSING, _OTHERS).astype(object)
    ordered = np.sort(floats(train))
    edges = np.unique(ordered[np.arange(1, _BINS) * len(ordered) // _BINS])
    limits = [f"{edge:.6g}" for edge in edges]
    between = pairwise(limits)
    tenths = [
        f"below {limits[0]}",
        *(f"from {low} to below {high}" for low, high in between),
        f"from {limits[-1]}",
        _MISSING,
    ]
    places = np.where(
        np.isnan(numbers), len(tenths) - 1, np.searchsorted(edges, numbers, side="right")
    )
    return np.array(tenths, object)[places]
