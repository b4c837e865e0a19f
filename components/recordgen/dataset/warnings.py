"""What the user should know about data that was accepted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from recordgen.dataset.manifest import Split
from recordgen.dataset.splits import EVAL, TEST, TRAIN
from recordgen.dataset.vocabulary import Vocabulary, look_alikes

# Vertex AI "Prepare image training data": labels of letters, digits and underscore. Its own
# sample holds "Baked goods", so this is advice.
_ADVISED_LABEL = re.compile(r"[A-Za-z0-9_]+")

# Nobody reads a longer list.
_LOOK_ALIKES_SHOWN = 5

# AutoML's quotas: at least ten images, or texts, per label.
_ADVISED_EXAMPLES = 10


def advice(
    vocabulary: Vocabulary, splits: Mapping[str, Split], noun: str, eval_from: str
) -> tuple[str, ...]:
    """Return one sentence for each thing worth a second look.

    Args:
        vocabulary: all labels, and what was found out about them.
        splits: the splits with examples, by name.
        noun: what an example is called.
        eval_from: the option of that name.
    """
    found = list(vocabulary.warnings)
    counts: Counter[str] = Counter()
    for split in splits.values():
        counts.update(split.labels)
    odd = [label for label in vocabulary.names if not _ADVISED_LABEL.fullmatch(label)]
    if odd:
        found.append(
            f"{len(odd)} labels hold more than letters, digits and underscores: {_some(odd)}"
        )
    for group in look_alikes(sorted(counts))[:_LOOK_ALIKES_SHOWN]:
        shown = " and ".join(f"{label!r} ({counts[label]})" for label in group)
        found.append(
            f"the labels {shown} are different classes, and differ only by capitals, blanks or "
            f"Unicode form; write them alike if they mean one"
        )
    few = [label for label in sorted(counts) if counts[label] < _ADVISED_EXAMPLES]
    if few:
        found.append(f"{len(few)} labels have fewer than {_ADVISED_EXAMPLES} {noun}s: {_some(few)}")
    if vocabulary.kind == "text":
        without = [label for label in vocabulary.names if not counts[label]]
        if without:
            found.append(f"{len(without)} labels lost all their {noun}s: {_some(without)}")
    unlabelled = sum(split.unlabelled for split in splits.values())
    if unlabelled:
        found.append(f"{unlabelled} examples have no label")
    return (*found, *_about_splits(counts, splits, noun, eval_from))


def _about_splits(
    counts: Mapping[str, int], splits: Mapping[str, Split], noun: str, eval_from: str
) -> Iterator[str]:
    """Yield what is odd about how examples and labels are spread over splits."""
    train, evaluated = splits.get(TRAIN), splits.get(EVAL)
    if train is not None:
        untrained = [label for label in sorted(counts) if not train.labels.get(label)]
        if untrained:
            yield (
                f"{len(untrained)} labels have no {noun} in split train, so no model learns them: "
                f"{_some(untrained)}"
            )
    if train is not None and evaluated is not None:
        # Labels with few examples have a warning already.
        unmeasured = [
            label
            for label in sorted(counts)
            if counts[label] >= _ADVISED_EXAMPLES and not evaluated.labels.get(label)
        ]
        if unmeasured:
            yield (
                f"{len(unmeasured)} labels have no {noun} in split eval, so no measure counts "
                f"them: {_some(unmeasured)}"
            )
    if train is not None and evaluated is None:
        if eval_from:
            yield (
                f"no example is in split eval: eval_from={eval_from} moved none; give it a larger "
                f"share"
            )
        else:
            yield (
                "no example is in split eval, which TFX's Trainer and Evaluator need; "
                "eval_from=train:10 moves 10 % of train there"
            )
    for name in (EVAL, TEST):
        split = splits.get(name)
        if split is not None and 0 < split.assigned < split.examples:
            yield (
                f"{split.assigned:,} of {split.examples:,} examples in split {name} come from rows "
                f"that name no split, though other rows name {name}; split_fractions=100 keeps "
                f"such rows in train"
            )


def _some(labels: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(map(repr, labels[:limit]))
    return shown if len(labels) <= limit else f"{shown}, …"
