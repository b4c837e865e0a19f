"""Checks of texts: long texts, wrongly decoded texts, and labels in their own texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow.compute as pc

from recordgen.checks.check import Check, CheckedTask, Examined, FoundRows
from recordgen.core.facts import MEASURES, TEXTS
from recordgen.core.facts.text_samples import REPLACEMENT

# LABEL_IN_TEXT: the fewest texts with the label, and the largest share of the others, in percent.
_FEWEST, _MOST_OTHERS = 10, 1


class TextTask(CheckedTask, Protocol):
    """A task of texts."""

    def labels(self, annotation: str) -> Sequence[str]:
        """Return the labels of an example, each once."""


class _TextCheck(Check):
    needs = (TEXTS, MEASURES)


class LongText(_TextCheck):
    """A text that is far longer than the others."""

    code = "LONG_TEXT"
    threshold = 20

    def findings(self, examined: Examined[TextTask]) -> Iterator[FoundRows]:
        """Yield texts that are more than this many times as long as the median."""
        characters = examined.facts.columns["characters"].fill_null(0).to_numpy()
        median = float(np.median(characters)) if len(characters) else 0.0
        if not median:
            return
        rows = np.flatnonzero(characters > examined.thresholds[self.code] * median)

        def message(at: int) -> str:
            length = characters[rows[at]]
            return (
                f"the text has {length:,} characters, {length / median:,.0f} times as many as the "
                f"median of all texts ({median:,.0f})"
            )

        yield FoundRows(rows, message)


class Mojibake(_TextCheck):
    """A text that was decoded wrongly."""

    code = "MOJIBAKE"

    def findings(self, examined: Examined[TextTask]) -> Iterator[FoundRows]:
        garbled = examined.facts.columns["garbled"].combine_chunks()
        rows = np.flatnonzero(garbled.is_valid().to_numpy(zero_copy_only=False))

        def message(at: int) -> str:
            part = garbled[int(rows[at])].as_py()
            if REPLACEMENT in part:
                return f"a character of the text was lost when it was decoded: {part!r}"
            return f"the text is UTF-8 that was decoded as something else: {part!r}"

        yield FoundRows(rows, message)


class LabelInText(_TextCheck):
    """A label that is in nearly all of its texts, and in hardly any other."""

    code = "LABEL_IN_TEXT"
    threshold = 90

    def findings(self, examined: Examined[TextTask]) -> Iterator[FoundRows]:
        """Yield the first text of each class whose texts name it."""
        facts, threshold = examined.facts, examined.thresholds[self.code] / 100
        annotations = facts.columns["annotation"].combine_chunks().dictionary_encode()
        numbers = facts.annotations
        labels_of = [
            frozenset(examined.task.labels(text)) for text in annotations.dictionary.to_pylist()
        ]
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
                and with_name >= threshold * mine
                and others_with_name <= _MOST_OTHERS / 100 * others
            ):
                rows.append(int(where[is_mine].min()))
                messages.append(
                    f"the label {name!r} appears in {with_name:,} of the {mine:,} texts that have "
                    f"it, and in {others_with_name:,} of the {others:,} others"
                )
        order = np.argsort(np.array(rows, np.intp), kind="stable")
        yield FoundRows(np.array(rows, np.intp)[order], lambda at: messages[order[at]])
