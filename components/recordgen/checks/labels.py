"""Checks of classes and splits, and of how examples are distributed over them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from recordgen.checks.class_shares import distance, most_changed, share
from recordgen.core.dataset.manifest import Split
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.core.dataset.vocabulary import Vocabulary, look_alikes
from recordgen.quoting import listed

# Vertex AI "Prepare image training data": labels of letters, digits and underscore. Its own
# sample has "Baked goods", so this is only advice.
_ADVISED_LABEL = re.compile(r"[A-Za-z0-9_]+")

# Nobody reads a longer list.
_LOOK_ALIKES_SHOWN = 5


def find_odd_classes(
    vocabulary: Vocabulary,
    splits: Mapping[str, Split],
    noun: str,
    eval_from: str,
    thresholds: Mapping[str, float],
    *,
    are_numbers_given: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yield a code and a message for each finding.

    Args:
        vocabulary: all labels.
        splits: the splits with examples, by name.
        noun: the task's word for an example.
        eval_from: the option of this name.
        thresholds: by code, see :class:`recordgen.checks.selection.Selection`.
        are_numbers_given: an option says that whole-number labels are the numbers of classes.
    """
    counts: Counter[str] = Counter()
    for split in splits.values():
        counts.update(split.labels)
    odd = [label for label in vocabulary.names if not _ADVISED_LABEL.fullmatch(label)]
    if odd:
        yield (
            "LABEL_FORM",
            f"{len(odd)} labels contain more than letters, digits and underscores: {listed(odd)}",
        )
    for group in look_alikes(sorted(counts))[:_LOOK_ALIKES_SHOWN]:
        shown = listed(group, lambda label: f"{label!r} ({counts[label]})", between=" and ")
        yield (
            "LOOK_ALIKES",
            f"the labels {shown} are different classes, but differ only by capitals, blanks or "
            f"Unicode form; write them alike if they mean the same class",
        )
    enough = thresholds["FEW_EXAMPLES"]
    few = [label for label in sorted(counts) if counts[label] < enough]
    if few:
        yield "FEW_EXAMPLES", f"{len(few)} labels have fewer than {enough:g} {noun}s: {listed(few)}"
    if vocabulary.kind == "text":
        without = [label for label in vocabulary.names if not counts[label]]
        if without:
            yield "LOST_CLASS", f"{len(without)} labels have no {noun}s: {listed(without)}"
    elif not are_numbers_given and (text := _unused_numbers(vocabulary.names, counts)):
        yield "UNUSED_NUMBER", text
    unlabelled = sum(split.unlabelled for split in splits.values())
    if unlabelled:
        yield "UNLABELLED", f"{unlabelled} examples have no label"
    yield from _about_splits(counts, splits, noun, eval_from, enough)
    yield from _about_shares(splits, noun, thresholds)


def _unused_numbers(names: Sequence[str], counts: Mapping[str, int]) -> str:
    """Return the message for numbers below the largest label that no example has, or ""."""
    used = sum(name in counts for name in names)
    if used == len(names):
        return ""
    unused = [name for name in names if name not in counts]
    return (
        f"the {used} labels are whole numbers up to {names[-1]}, and stay the numbers of classes: "
        f"a model has {len(names)} outputs, of which {len(unused)} have no example "
        f"({listed(unused)}); use labels=text to number the labels from 0 to {used - 1}, or "
        f"labels=integer to confirm their numbers"
    )


def _about_splits(
    counts: Mapping[str, int],
    splits: Mapping[str, Split],
    noun: str,
    eval_from: str,
    enough: float,
) -> Iterator[tuple[str, str]]:
    """Yield findings about examples and labels per split."""
    train, evaluated = splits.get(TRAIN), splits.get(EVAL)
    if train is not None:
        untrained = [label for label in sorted(counts) if not train.labels.get(label)]
        if untrained:
            yield (
                "NOT_TRAINED",
                f"{len(untrained)} labels have no {noun} in split train, so no model learns them: "
                f"{listed(untrained)}",
            )
    if train is not None and evaluated is not None:
        # Labels with few examples already have a finding.
        unmeasured = [
            label
            for label in sorted(counts)
            if counts[label] >= enough and not evaluated.labels.get(label)
        ]
        if unmeasured:
            yield (
                "NOT_EVALUATED",
                f"{len(unmeasured)} labels have no {noun} in split eval, so no measure counts "
                f"them: {listed(unmeasured)}",
            )
    if train is not None and evaluated is None:
        more = (
            f": eval_from={eval_from} moved none; give it a larger share"
            if eval_from
            else ", which TFX's Trainer and Evaluator need; eval_from=train:10 moves 10 % of train "
            "there"
        )
        yield "NO_EVAL", f"no example is in split eval{more}"
    for name in (EVAL, TEST):
        split = splits.get(name)
        if split is not None and 0 < split.assigned < split.examples:
            yield (
                "MIXED_SPLITS",
                f"{split.assigned:,} of {split.examples:,} examples in split {name} come from rows "
                f"that name no split, though other rows name {name}; split=100 keeps "
                f"such rows in train",
            )


def _about_shares(
    splits: Mapping[str, Split], noun: str, thresholds: Mapping[str, float]
) -> Iterator[tuple[str, str]]:
    """Yield findings about the shares of classes."""
    train = splits.get(TRAIN)
    if train is None or len(train.labels) < 2:
        return
    (largest, most), *_, (smallest, fewest) = Counter(train.labels).most_common()
    if most > thresholds["IMBALANCE"] * fewest:
        yield (
            "IMBALANCE",
            f"label {largest!r} has {most:,} {noun}s in train, {most / fewest:,.0f} times as many "
            f"as {smallest!r} ({fewest:,})",
        )
    for name, split in splits.items():
        apart, by_chance = distance(train.labels, split.labels)
        if apart - by_chance > thresholds["LABEL_DRIFT"]:
            label = most_changed(train.labels, split.labels)
            yield (
                "LABEL_DRIFT",
                f"{apart:.0%} of the labels in split {name} would have to change to give the "
                f"shares of train (by chance: about {by_chance:.0%}); label {label!r} has "
                f"{share(train.labels, label):.1%} of train and {share(split.labels, label):.1%} "
                f"of {name}",
            )
