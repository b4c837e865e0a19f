"""Checks of columns of tables: constant or mixed ones, and outliers.

They read the rows that shards have kept: a sample of each split, and rows with rare values
(:mod:`recordgen.core.facts.kept_rows`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.checks.check import KEPT, NONE, Check, Examined, FoundRows
from recordgen.core.facts import ROWS
from recordgen.core.facts.kept_rows import KINDS, RowIndices, Values, fences, fits, fits_one, floats
from recordgen.core.records.numbers import FORMS, NUMBER, is_marker

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


class TargetKind(TableCheck):
    """The kind of the target was inferred from few values."""

    code = "TARGET_KIND"
    scope = NONE

    def findings(self, examined: Examined[Any]) -> Iterator[str]:
        if examined.task.table.target_kind:
            yield examined.task.table.target_kind


class Markers(TableCheck):
    """Words for missing values in columns of numbers."""

    code = "MARKERS"
    scope = NONE

    def findings(self, examined: Examined[Any]) -> Iterator[str]:
        yield from examined.task.table.markers


class Constant(TableCheck):
    """A column with one value."""

    code = "CONSTANT"

    def findings(self, examined: Examined[Any]) -> Iterator[str]:
        yield from examined.shared(kept_rows).constant.values()


class MixedTypes(TableCheck):
    """A column of texts that are nearly all numbers or dates."""

    code = "MIXED_TYPES"
    threshold = 90

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield the first row of each such column whose value is something else."""
        kept = examined.shared(kept_rows)
        for name in kept.varied():
            if pa.types.is_string(kept.columns[name].type):
                yield from _mixed_types(name, kept, examined.thresholds[self.code])


class Outlier(TableCheck):
    """A number that is far from all others of its column."""

    code = "OUTLIER"
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
