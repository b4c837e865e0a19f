"""Checks of classes and splits, of how examples are distributed over them, and of odd lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

from recordgen.checks.check import NONE, Check, CheckedTask, Examined
from recordgen.core.dataset.splits import EVAL, NO_EVAL, TEST, TRAIN, without_eval
from recordgen.core.dataset.vocabulary import look_alikes
from recordgen.messages import listed

#: What is counted.
_Key = TypeVar("_Key")

# Nobody reads a longer list.
_LOOK_ALIKES_SHOWN = 5


def _counts(examined: Examined[CheckedTask]) -> Counter[str]:
    """Return the number of examples of each label."""
    counts: Counter[str] = Counter()
    for split in examined.splits.values():
        counts.update(split.labels)
    return counts


class LabelCheck(Check):
    """A check of the counts of labels by split."""

    scope = NONE


class NotTrained(LabelCheck):
    """Labels that train lacks."""

    code = "NOT_TRAINED"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        train = examined.splits.get(TRAIN)
        if train is None:
            return
        labels = sorted(examined.shared(_counts))
        untrained = [label for label in labels if not train.labels.get(label)]
        if untrained:
            yield (
                f"{len(untrained)} labels have no {examined.task.noun} in split train, so no model "
                f"learns them: {listed(untrained)}"
            )


class NotEvaluated(LabelCheck):
    """Labels that eval lacks; labels with few examples already have a finding."""

    code = "NOT_EVALUATED"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        evaluated, counts = examined.splits.get(EVAL), examined.shared(_counts)
        if examined.splits.get(TRAIN) is None or evaluated is None:
            return
        enough = examined.thresholds[FewExamples.code]
        unmeasured = [
            label
            for label in sorted(counts)
            if counts[label] >= enough and not evaluated.labels.get(label)
        ]
        if unmeasured:
            yield (
                f"{len(unmeasured)} labels have no {examined.task.noun} in split eval, so no "
                f"measure counts them: {listed(unmeasured)}"
            )


class FewExamples(LabelCheck):
    """Labels with few examples."""

    code = "FEW_EXAMPLES"
    threshold = 10

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        """Yield one message about all labels with fewer examples than the threshold."""
        counts, enough = examined.shared(_counts), examined.thresholds[self.code]
        few = [label for label in sorted(counts) if counts[label] < enough]
        if few:
            yield (
                f"{len(few)} labels have fewer than {enough:g} {examined.task.noun}s: {listed(few)}"
            )


class LostClass(LabelCheck):
    """Labels without an example."""

    code = "LOST_CLASS"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        counts = examined.shared(_counts)
        without = [label for label in examined.vocabulary.names if not counts[label]]
        if examined.vocabulary.kind == "text" and without:
            yield f"{len(without)} labels have no {examined.task.noun}s: {listed(without)}"


class UnusedNumber(LabelCheck):
    """Numbers below the largest label that no example has."""

    code = "UNUSED_NUMBER"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        """Yield one message about all of them, unless an option gives the numbers."""
        names, counts = examined.vocabulary.names, examined.shared(_counts)
        unused = [name for name in names if name not in counts]
        if examined.vocabulary.kind == "text" or examined.are_numbers_given or not unused:
            return
        used = len(names) - len(unused)
        yield (
            f"the {used} labels are whole numbers up to {names[-1]}, and stay the numbers of "
            f"classes: a model has {len(names)} outputs, {len(unused)} of them without an example "
            f"({listed(unused)}); use labels=text to number the labels from 0 to {used - 1}, or "
            f"labels=integer to confirm their numbers"
        )


class Imbalance(LabelCheck):
    """Very unequal classes."""

    code = "IMBALANCE"
    threshold = 100

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        """Yield a message if the largest class is more than this many times the smallest."""
        train = examined.splits.get(TRAIN)
        if train is None or len(train.labels) < 2:
            return
        (largest, most), *_, (smallest, fewest) = Counter(train.labels).most_common()
        if most > examined.thresholds[self.code] * fewest:
            yield (
                f"label {largest!r} has {most:,} {examined.task.noun}s in train, "
                f"{most / fewest:,.0f} times as many as {smallest!r} ({fewest:,})"
            )


class LabelDrift(LabelCheck):
    """Classes have other shares in a split than in train."""

    code = "LABEL_DRIFT"
    threshold = 0.2
    remedies = (
        "--stratify label gives each split its share of each label if rows name no splits and "
        "have one label",
        "move rows between the splits, or add examples",
    )

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        """Yield splits that are farther from train than chance and the threshold explain."""
        train = examined.splits.get(TRAIN)
        if train is None or len(train.labels) < 2:
            return
        for name, split in examined.splits.items():
            apart, by_chance = distance(train.labels, split.labels)
            if apart - by_chance > examined.thresholds[self.code]:
                label = most_changed(train.labels, split.labels)
                yield (
                    f"{apart:.0%} of the labels in split {name} would have to change to give the "
                    f"shares of train (by chance: about {by_chance:.0%}); label {label!r} has "
                    f"{share(train.labels, label):.1%} of train and "
                    f"{share(split.labels, label):.1%} of {name}"
                )


class LookAlikes(LabelCheck):
    """Labels that differ only by capitals, blanks or Unicode form."""

    code = "LOOK_ALIKES"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        counts = examined.shared(_counts)
        for group in look_alikes(sorted(counts))[:_LOOK_ALIKES_SHOWN]:
            shown = listed(group, lambda label: f"{label!r} ({counts[label]})", between=" and ")
            yield (
                f"the labels {shown} are different classes, but differ only by capitals, blanks or "
                f"Unicode form; write them alike if they mean the same class"
            )


class Unlabelled(LabelCheck):
    """Examples without a label."""

    code = "UNLABELLED"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        unlabelled = sum(split.unlabelled for split in examined.splits.values())
        if unlabelled:
            yield f"{unlabelled} examples have no label"


class NoEval(LabelCheck):
    """There is train, but no eval."""

    code = NO_EVAL

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        if TRAIN in examined.splits and EVAL not in examined.splits:
            yield without_eval(examined.eval_from)


class MixedSplits(LabelCheck):
    """A split with named and with assigned examples."""

    code = "MIXED_SPLITS"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        for name in (EVAL, TEST):
            split = examined.splits.get(name)
            if split is not None and 0 < split.assigned < split.examples:
                yield (
                    f"{split.assigned:,} of {split.examples:,} examples in split {name} come from "
                    f"rows that name no split, though other rows name {name}; split=100 keeps such "
                    f"rows in train"
                )


class LineCheck(Check):
    """A check of a reader, which finds nothing here."""

    scope = NONE


class RepeatedHeader(LineCheck):
    """A row repeats the header of its file."""

    code = "REPEATED_HEADER"


class ByteOrderMark(LineCheck):
    """A byte order mark inside of a file."""

    code = "BYTE_ORDER_MARK"


class Skipped(LineCheck):
    """Lines or files that hold no row."""

    code = "SKIPPED"


class SeveralSplits(LineCheck):
    """Rows of one payload name several splits."""

    code = "SEVERAL_SPLITS"
    remedies = ("write the same split into all rows of the image or text",)


def distance(expected: Mapping[_Key, int], found: Mapping[_Key, int]) -> tuple[float, float]:
    """Return the total variation distance of two counts, and the distance by chance alone.

    The second is the mean distance if ``found`` were a sample of ``expected``, in the normal
    approximation: a count's mean absolute deviation is √(2/π) of its standard deviation.
    """
    total, sampled = sum(expected.values()), sum(found.values())
    if not total or not sampled:
        return 0.0, 0.0
    shares = [count / total for count in expected.values()]
    by_chance = sum(math.sqrt(part * (1 - part) / (2 * math.pi * sampled)) for part in shares)
    return sum(changes(expected, found).values()) / 2, by_chance


def distance_of_samples(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> tuple[float, float]:
    """Return the same as :func:`distance`, for two samples of one population."""
    apart, by_chance = distance(one, other)
    return apart, math.hypot(by_chance, distance(other, one)[1])


def changes(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> dict[_Key, float]:
    """Return the absolute difference of each key's shares."""
    totals = max(1, sum(one.values())), max(1, sum(other.values()))
    return {
        key: abs(one.get(key, 0) / totals[0] - other.get(key, 0) / totals[1])
        for key in {**one, **other}
    }


def share(counts: Mapping[_Key, int], key: _Key) -> float:
    """Return a key's part of all counts."""
    return counts.get(key, 0) / max(1, sum(counts.values()))


def most_changed(expected: Mapping[_Key, int], found: Mapping[_Key, int]) -> _Key:
    """Return the key whose share differs most; the last in order if several do."""
    changed = changes(expected, found)
    return max(changed, key=lambda key: (changed[key], key))
