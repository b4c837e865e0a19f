"""Checks of columns of tables: constant, mixed or skewed ones, outliers, and target leaks.

They read the rows that shards have kept: a sample of each split, and rows with rare values
(:mod:`recordgen.checks.columns`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.checks.class_shares import distance_of_samples, most_changed, share
from recordgen.checks.columns import KINDS, Values, fences, fits, fits_one, floats
from recordgen.checks.contents import LintedTask
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.findings import AboutAll, FoundRows, RowIndices
from recordgen.checks.target_leakage import codes_of, scoring
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.records.number_texts import FORMS, NUMBER, is_marker
from recordgen.core.rows.columns import values_of

# Fewer rows are not enough to judge a column.
_LEAST_ROWS = 10

# Splits with fewer rows in the sample are not compared: chance alone makes them differ.
_LEAST_OF_SPLIT = 100

# Numbers are binned by tenths of train, texts by their most frequent values.
_BINS = 10
_MOST_FREQUENT = 20

# Outliers are separated by a gap: this many times as far as the value before. Heavy tails, such as
# incomes, thin out without a gap.
_GAP = 5.0

# If more than this share of texts are numbers, the column was probably meant to hold numbers.
_MOST = 0.5

_REMEDY = "write all numbers like 1234.5, and leave fields without one empty"

_OTHERS, _MISSING = "other values", "no value"


class _Roles(Protocol):
    """The roles of columns, see :class:`recordgen.tables.columns.Table`."""

    target: str | None
    weight: str | None
    group: str | None
    target_kind: str
    markers: tuple[str, ...]

    @property
    def has_labels(self) -> bool:
        """Whether the target holds classes."""


class TableTask(LintedTask, Protocol):
    """A task of tables."""

    @property
    def table(self) -> _Roles:
        """Its columns."""

    def column_values(self, annotations: Any) -> Mapping[str, Values]:
        """Return the values of each column that becomes a feature, null if one is missing."""


class _Kept(NamedTuple):
    """The rows that shards have kept.

    Attributes:
        rows: each row's example.
        columns: values [rows] by column.
        sampled: indices of the rows in the sample.
        splits: the split of each row in the sample.
    """

    rows: RowIndices
    columns: Mapping[str, Values]
    sampled: RowIndices
    splits: npt.NDArray[np.str_]

    def sample(self, name: str) -> Values:
        """Return the values of a column in the sample."""
        return self.columns[name].take(pa.array(self.sampled))


def find_odd_columns(
    facts: ExampleFacts, task: TableTask, thresholds: Mapping[str, float]
) -> Iterator[FoundRows | AboutAll]:
    """Yield odd columns, and rows with odd values."""
    table = task.table
    if table.target_kind:
        yield AboutAll("TARGET_KIND", table.target_kind)
    for message in table.markers:
        yield AboutAll("MARKERS", message)
    rows, texts, is_sampled = facts.kept
    if len(rows) < _LEAST_ROWS:
        return
    sampled = np.flatnonzero(is_sampled)
    splits = np.array(facts.names)[facts.splits[rows[sampled]]]
    kept = _Kept(rows, task.column_values(texts), sampled, splits)
    constant = set()
    for name, values in kept.columns.items():
        if text := _constant(name, values):
            constant.add(name)
            yield AboutAll("CONSTANT", text)
        elif pa.types.is_string(values.type):
            yield from _mixed_types(name, kept, thresholds["MIXED_TYPES"])
        elif not (name == table.target and table.has_labels):
            yield from _outliers(name, kept, thresholds["OUTLIER"])
    varied = [name for name in kept.columns if name not in constant and name != table.target]
    for name in varied:
        yield from _skew(name, kept, thresholds["SKEW"])
    if table.target is not None and table.target not in constant:
        inputs = [name for name in varied if name not in (table.weight, table.group)]
        yield from _give_away(inputs, table, kept, thresholds["GIVE_AWAY"])


def _constant(name: str, values: Values) -> str:
    """Return the message for a column with one value; empty if it has several.

    Each batch has kept a row with another value, if there is one, so this is true of all rows.
    """
    if values.null_count == len(values):
        return f"column {name!r} is empty: no example has it"
    if values.null_count or len(pc.unique(values)) > 1:
        return ""
    return f"column {name!r} has the value {_shown(values[0].as_py())} in all rows"


def _mixed_types(name: str, kept: _Kept, least: float) -> Iterator[FoundRows]:
    values = kept.columns[name]
    sample = kept.sample(name).drop_null()
    for kind, pattern in KINDS.items():
        misfits = np.flatnonzero(~fits(values, pattern))
        part = 100 * float(np.mean(fits(sample, pattern))) if len(sample) else 0.0
        if not len(misfits):
            continue
        shown = _most_frequent(values.take(pa.array(misfits)))
        # Some values are not of this kind, so the message must not show 100 %.
        share_of_kind = f"{min(part, 99.9):.1f} % of its values are {kind}"
        if kind == "dates" and part >= least:
            message = f"column {name!r} holds {shown}, though {share_of_kind}"
        elif kind == "numbers" and part >= least:
            message = (
                f"column {name!r} is text because of values such as {shown}, though "
                f"{share_of_kind}; {_REMEDY}"
            )
        elif kind == "numbers" and (forms := _forms(values, sample)) is not None:
            also = f", also with {' and '.join(forms)}" if forms else ""
            message = (
                f"column {name!r} is text because of values such as {shown}, but most of its "
                f"values are numbers{also}; {_REMEDY}"
            )
        else:
            continue
        yield FoundRows("MIXED_TYPES", kept.rows[misfits[:1]], _always(message))
        return


def _most_frequent(texts: Values, count: int = 4) -> str:
    words = Counter(str(text) for text in texts.to_pylist())
    [first, *others] = sorted(words, key=lambda word: (-words[word], word))[:count]
    return _shown(first) + (f" and {', '.join(map(_shown, others))}" if others else "")


def _forms(values: Values, sample: Values) -> list[str] | None:
    """Return the forms in which people wrote numbers, or None if texts are meant as texts.

    Most are meant as numbers if all others are one text, besides markers of missing numbers.
    """
    found = {form: fits_one(values, pattern) for form, pattern in FORMS.items()}
    is_number = np.any([fits(values, NUMBER), *found.values()], axis=0)
    written = [fits_one(sample, pattern) for pattern in (NUMBER, *FORMS.values())]
    if not len(sample) or np.mean(np.any(written, axis=0)) <= _MOST:
        return None
    others = pc.utf8_trim_whitespace(values.filter(pa.array(~is_number))).unique().to_pylist()
    if sum(not is_marker(text) for text in others) > 1:
        return None
    return [form for form, is_form in found.items() if is_form.any()]


def _outliers(name: str, kept: _Kept, ranges: float) -> Iterator[FoundRows]:
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
    value = _shown(kept.columns[name][int(most)].as_py())
    count = f"{len(far):,} such values were found" if len(far) > 1 else "no other value is so far"
    message = (
        f"column {name!r} has {value}, which is far from its other values: half of them are "
        f"from {_quartile(sample, 0.25)} to {_quartile(sample, 0.75)}; {count}"
    )
    yield FoundRows("OUTLIER", kept.rows[[most]], _always(message))


def _beyond_gap(distances: npt.NDArray[np.float64], is_far: npt.NDArray[np.bool_]) -> RowIndices:
    """Return the far values from the first gap on, the most distant last."""
    order = np.argsort(np.nan_to_num(distances, nan=-1.0), kind="stable")
    ordered = distances[order]
    is_gap = np.zeros(len(order), np.bool_)
    is_gap[1:] = is_far[order][1:] & (ordered[1:] >= _GAP * ordered[:-1])
    return order[np.argmax(is_gap) :] if is_gap.any() else order[:0]


def _quartile(sample: npt.NDArray[np.float64], place: float) -> str:
    return f"{np.quantile(sample, place):.6g}"


def _skew(name: str, kept: _Kept, least: float) -> Iterator[AboutAll]:
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
        yield AboutAll(
            "SKEW",
            f"column {name!r} is distributed differently in split {split} than in train: "
            f"{apart:.0%} of its values there would have to change (by chance: about "
            f"{by_chance:.0%}); {key}: {share(expected, key):.1%} of train, "
            f"{share(found, key):.1%} of {split}",
        )


def _bins(sample: Values, is_train: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return the name of each value's bin."""
    if pa.types.is_string(sample.type):
        texts = values_of(sample)
        counts = Counter(text for text in texts if text is not None)
        frequent = sorted(counts, key=lambda text: (-counts[text], text))[:_MOST_FREQUENT]
        names = {text: _shown(text) for text in frequent} | {None: _MISSING}
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


def _give_away(inputs: list[str], table: _Roles, kept: _Kept, least: float) -> Iterator[AboutAll]:
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
            yield AboutAll(
                "GIVE_AWAY",
                f"column {name!r} alone gives target {table.target!r} away: it scores "
                f"{100 * found:.1f} of 100, where chance scores 0",
            )


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    return f"{value!r:.80}"


def _always(text: str) -> Callable[[int], str]:
    return lambda at: text
