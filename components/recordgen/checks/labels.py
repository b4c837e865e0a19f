"""Checks of classes and splits, of how examples are distributed over them, and of odd lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from recordgen.checks.check import NONE, Check, CheckedTask, Examined
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN, without_eval
from recordgen.core.dataset.vocabulary import look_alikes
from recordgen.messages import counted, listed

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


class MissingClass(LabelCheck):
    """Labels without an example in train, in eval, or in any split."""

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        """Yield a message about the labels that train lacks, that eval lacks, and about lost ones.

        By chance, eval may lack a label with few examples, which has another finding.
        """
        noun, counts = examined.task.noun, examined.shared(_counts)
        train, evaluated = examined.splits.get(TRAIN), examined.splits.get(EVAL)
        if train is not None:
            untrained = f"split train, from which models learn, has no {noun}"
            yield from _missing(sorted(counts), train.labels, untrained)
            if evaluated is not None:
                enough = examined.thresholds[FewExamples.code]
                frequent = [label for label in sorted(counts) if counts[label] >= enough]
                unmeasured = f"split eval, with which models are measured, has no {noun}"
                yield from _missing(frequent, evaluated.labels, unmeasured)
        if examined.vocabulary.kind == "text":
            yield from _missing(examined.vocabulary.names, counts, f"the dataset has no {noun}")
        elif not examined.are_numbers_given:
            yield from _unused_numbers(examined.vocabulary.names, counts)


def _missing(labels: Sequence[str], counts: Mapping[str, int], what: str) -> Iterator[str]:
    missing = [label for label in labels if not counts.get(label)]
    if missing:
        yield f"{what} for {counted(len(missing), 'label')}: {listed(missing)}"


def _unused_numbers(names: Sequence[str], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a message about the numbers below the largest label that no example has."""
    unused = [name for name in names if name not in counts]
    if unused:
        used = len(names) - len(unused)
        yield (
            f"the {used} labels are whole numbers up to {names[-1]}, and stay the numbers of "
            f"classes: a model has {len(names)} outputs, {len(unused)} of them without an example "
            f"({listed(unused)}); use labels=text to number the labels from 0 to {used - 1}, or "
            f"labels=integer to confirm their numbers"
        )


class FewExamples(LabelCheck):
    """Labels with few examples."""

    threshold = 10

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        """Yield one message about all labels with fewer examples than the threshold."""
        counts, enough = examined.shared(_counts), examined.thresholds[self.code]
        few = [label for label in sorted(counts) if counts[label] < enough]
        if few:
            what = f"fewer than {enough:g} {examined.task.noun}s"
            yield f"{counted(len(few), 'label')} with {what}: {listed(few)}"


class Imbalance(LabelCheck):
    """Very unequal classes."""

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

    is_default = False
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

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        unlabelled = sum(split.unlabelled for split in examined.splits.values())
        if unlabelled:
            yield f"{unlabelled} examples have no label"


class NoEval(LabelCheck):
    """There is train, but no eval."""

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[str]:
        if TRAIN in examined.splits and EVAL not in examined.splits:
            yield without_eval(examined.eval_from)


class MixedSplits(LabelCheck):
    """A split with named and with assigned examples, or rows of one payload in several splits.

    The plan of a run finds such rows.
    """

    remedies = ("name a split in all rows, the same one in all rows of an image or text",)

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


class JoinedFiles(LineCheck):
    """A header or a byte order mark among the rows of a file."""


class Skipped(LineCheck):
    """Lines or files that hold no row."""


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
