"""A check of classes whose images have a size of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow.compute as pc

from recordgen.checks.check import Check, CheckedTask, Examined, FoundRows
from recordgen.core.facts import IMAGES

# The fewest images with the label and without it, and the largest share of the latter, in percent.
_FEWEST, _MOST_OTHERS = 10, 1


class LabelledTask(CheckedTask, Protocol):
    """A task with labels."""

    def label_lists(self, annotations: Any) -> Any:
        """Return the labels of each annotation, a list of texts; an empty list for a null."""


class ClassSize(Check):
    """Nearly all images of a class have one size, and hardly any other image has it."""

    code = "CLASS_SIZE"
    threshold = 90
    needs = (IMAGES,)
    remedies = ("add images of other sizes to the class",)

    def findings(self, examined: Examined[LabelledTask]) -> Iterator[FoundRows]:
        """Yield the first image of each class with such a size, in percent of its images."""
        facts = examined.facts
        lists = examined.task.label_lists(facts.columns["annotation"].combine_chunks())
        rows = pc.list_parent_indices(lists).to_numpy()
        names = pc.list_flatten(lists).dictionary_encode()
        width, height = (
            facts.columns[name].fill_null(0).to_numpy().astype(np.int64)
            for name in ("width", "height")
        )
        sizes, size_of = np.unique(width << 32 | height, return_inverse=True)
        labels = names.indices.to_numpy().astype(np.int64)
        pairs, first, counts = np.unique(
            labels * len(sizes) + size_of[rows], return_index=True, return_counts=True
        )
        of_label = np.bincount(labels)[pairs // max(1, len(sizes))]
        of_size = np.bincount(size_of)[pairs % max(1, len(sizes))]
        others = len(facts) - of_label
        odd = np.flatnonzero(
            (width[rows[first]] > 0)
            & (np.minimum(of_label, others) >= _FEWEST)
            & (counts >= examined.thresholds[self.code] / 100 * of_label)
            & (of_size - counts <= _MOST_OTHERS / 100 * others)
        )
        found, chosen = np.unique(rows[first[odd]], return_index=True)

        def message(at: int) -> str:
            place, row = odd[chosen[at]], found[at]
            name = names.dictionary[int(labels[first[place]])].as_py()
            return (
                f"{counts[place]:,} of the {of_label[place]:,} images of {name!r} have "
                f"{width[row]}×{height[row]} pixels, and {of_size[place] - counts[place]:,} of the "
                f"{others[place]:,} others"
            )

        yield FoundRows(found, message)
