"""Checks of texts: long texts, wrongly decoded texts, and labels in their own texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from recordgen.checks.check import EACH, Check, Examined, FoundRows, Tally, added
from recordgen.core.facts import MEASURES, TEXTS
from recordgen.measures.texts import REPLACEMENT

# LABEL_IN_TEXT: the fewest texts with the label, and the largest share of the others, in percent.
_FEWEST, _MOST_OTHERS = 10, 1


_Lengths: TypeAlias = "tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]"


def _characters(examined: Examined[Any]) -> npt.NDArray[np.int32]:
    return examined.facts.columns["characters"].fill_null(0).to_numpy()


class _TextCheck(Check):
    scope = EACH
    needs = (TEXTS, MEASURES)


class LongText(_TextCheck):
    """A text that is far longer than the others."""

    code = "LONG_TEXT"
    threshold = 20

    def part(self, examined: Examined[Any]) -> _Lengths:
        """Return the lengths, ascending, and the number of texts with each."""
        return np.unique(_characters(examined), return_counts=True)

    def total(self, parts: Sequence[_Lengths]) -> float:
        """Return the median length of all texts; 0 without texts."""
        lengths, places = np.unique(
            np.concatenate([lengths for lengths, _ in parts]), return_inverse=True
        )
        counts = np.bincount(places, np.concatenate([counts for _, counts in parts]))
        ends = np.cumsum(counts)
        if not len(ends):
            return 0.0
        middle = [(ends[-1] - 1) // 2, ends[-1] // 2]
        return float(lengths[np.searchsorted(ends, middle, side="right")].mean())

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield texts that are more than this many times as long as the median."""
        characters, median = _characters(examined), examined.total(self)
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

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
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

    def part(self, examined: Examined[Any]) -> Mapping[str, Tally]:
        """Count by label the texts that have it, those of them that name it, and others that do.

        The empty text counts all texts.
        """
        facts = examined.facts
        annotations = facts.columns["annotation"].combine_chunks().dictionary_encode()
        numbers = facts.annotations
        labels_of = [
            frozenset(examined.task.labels(text)) for text in annotations.dictionary.to_pylist()
        ]
        examples = np.bincount(numbers[numbers >= 0], minlength=len(labels_of))
        with_label: Counter[str] = Counter()
        for labels, count in zip(labels_of, examples.tolist(), strict=True):
            with_label.update(dict.fromkeys(labels, count))
        named = facts.columns["named_labels"].combine_chunks()
        parents = pc.list_parent_indices(named).to_numpy()
        names = pc.list_flatten(named).dictionary_encode()
        of_names = names.indices.to_numpy()
        found = {"": Tally((len(facts), 0, 0))}
        for number, name in enumerate(names.dictionary.to_pylist()):
            has_label = np.array([name in labels for labels in labels_of], np.bool_)
            where = parents[of_names == number]
            is_mine = np.append(has_label, False)[numbers[where]]  # -1: a text without a label
            first = facts.address(int(where[is_mine].min())) if is_mine.any() else None
            found[name] = Tally((0, int(is_mine.sum()), int((~is_mine).sum())), first)
        return added([found, {label: Tally((n, 0, 0)) for label, n in with_label.items()}])

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield the first text of each class whose texts name it."""
        facts, threshold = examined.facts, examined.thresholds[self.code] / 100
        total: Mapping[str, Tally] = examined.total(self)
        rows, messages = [], []
        for name, ((mine, with_name, others_with_name), first) in total.items():
            others = total[""].sums[0] - mine
            row = None if first is None else facts.row_at(first)
            if row is not None and (
                min(with_name, others) >= _FEWEST
                and with_name >= threshold * mine
                and others_with_name <= _MOST_OTHERS / 100 * others
            ):
                rows.append(row)
                messages.append(
                    f"the label {name!r} appears in {with_name:,} of the {mine:,} texts that have "
                    f"it, and in {others_with_name:,} of the {others:,} others"
                )
        order = np.argsort(np.array(rows, np.intp), kind="stable")
        yield FoundRows(np.array(rows, np.intp)[order], lambda at: messages[order[at]])
