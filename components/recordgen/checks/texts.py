"""Checks of texts: long texts, wrongly decoded texts, and labels in their own texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow.compute as pc

from recordgen.checks.contents import LintedTask
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.findings import FoundRows
from recordgen.checks.text_samples import REPLACEMENT

# LABEL_IN_TEXT: the fewest texts with the label, and the largest share of the others, in percent.
_FEWEST, _MOST_OTHERS = 10, 1


class TextTask(LintedTask, Protocol):
    """A task of texts."""

    def labels(self, annotation: str) -> Sequence[str]:
        """Return the labels of an example, each once."""


def find_odd_texts(
    facts: ExampleFacts, task: TextTask, thresholds: Mapping[str, float]
) -> Iterator[FoundRows]:
    """Yield long and garbled texts, and the first text of each class whose texts name it."""
    yield _long(facts, thresholds["LONG_TEXT"])
    yield _garbled(facts)
    yield _labels_in_texts(facts, task, thresholds["LABEL_IN_TEXT"])


def _long(facts: ExampleFacts, threshold: float) -> FoundRows:
    characters = facts.columns["characters"].fill_null(0).to_numpy()
    median = float(np.median(characters)) if len(characters) else 0.0
    rows = np.flatnonzero(characters > threshold * median) if median else np.empty(0, np.intp)

    def message(at: int) -> str:
        length = characters[rows[at]]
        return (
            f"the text has {length:,} characters, {length / median:,.0f} times as many as the "
            f"median of all texts ({median:,.0f})"
        )

    return FoundRows("LONG_TEXT", rows, message)


def _garbled(facts: ExampleFacts) -> FoundRows:
    garbled = facts.columns["garbled"].combine_chunks()
    rows = np.flatnonzero(garbled.is_valid().to_numpy(zero_copy_only=False))

    def message(at: int) -> str:
        part = garbled[int(rows[at])].as_py()
        if REPLACEMENT in part:
            return f"a character of the text was lost when it was decoded: {part!r}"
        return f"the text is UTF-8 that was decoded as something else: {part!r}"

    return FoundRows("MOJIBAKE", rows, message)


def _labels_in_texts(facts: ExampleFacts, task: TextTask, threshold: float) -> FoundRows:
    """Return the first text of each class whose label is in nearly all of its texts, no others."""
    annotations = facts.columns["annotation"].combine_chunks().dictionary_encode()
    numbers = facts.annotations
    labels_of = [frozenset(task.labels(text)) for text in annotations.dictionary.to_pylist()]
    examples = np.bincount(numbers[numbers >= 0], minlength=len(labels_of))
    named = facts.columns["named_labels"].combine_chunks()
    parents = pc.list_parent_indices(named).to_numpy()
    names = pc.list_flatten(named).dictionary_encode()
    texts: Sequence[str] = names.dictionary.to_pylist()
    of_names = names.indices.to_numpy()
    rows, messages = [], []
    for number, name in enumerate(texts):
        has_label = np.array([name in labels for labels in labels_of], np.bool_)
        mine = int(examples[has_label].sum())
        others = len(facts) - mine
        where = parents[of_names == number]
        is_mine = np.append(has_label, False)[numbers[where]]  # -1: a text without a label
        with_name, others_with_name = int(is_mine.sum()), int((~is_mine).sum())
        if (
            min(with_name, others) >= _FEWEST
            and with_name >= threshold / 100 * mine
            and others_with_name <= _MOST_OTHERS / 100 * others
        ):
            rows.append(int(where[is_mine].min()))
            messages.append(
                f"the label {name!r} appears in {with_name:,} of the {mine:,} texts that have it, "
                f"and in {others_with_name:,} of the {others:,} others"
            )
    order = np.argsort(np.array(rows, np.intp), kind="stable")
    return FoundRows(
        "LABEL_IN_TEXT", np.array(rows, np.intp)[order], lambda at: messages[order[at]]
    )
