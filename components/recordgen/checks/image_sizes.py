"""A check of classes whose images have a size of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute as pc

from recordgen.checks.check import EACH, Check, Examined, FoundRows, Tally, added
from recordgen.core.facts import IMAGES

# The fewest images with the label and without it, and the largest share of the latter, in percent.
_FEWEST, _MOST_OTHERS = 10, 1

# A smaller share of a class is not counted as its size, whatever the threshold.
_LEAST_SHARE = 0.01


#: A class and a size, width << 32 | height; None stands for all of them.
_Pair: TypeAlias = tuple[str | None, int | None]


class ClassSize(Check):
    """Nearly all images of a class have one size, and hardly any other image has it."""

    code = "CLASS_SIZE"
    threshold = 90
    scope = EACH
    needs = (IMAGES,)
    remedies = ("add images of other sizes to the class",)

    def part(self, examined: Examined[Any]) -> Mapping[_Pair, Tally]:
        """Count the images of each class, of each size, and of each size in each class."""
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
        known, size = names.dictionary.to_pylist(), sizes.tolist()
        found: dict[_Pair, Tally] = {(None, None): Tally((len(facts),))}
        for name, count in zip(known, np.bincount(labels).tolist(), strict=True):
            found[name, None] = Tally((count,))
        for each, count in zip(size, np.bincount(size_of).tolist(), strict=True):
            found[None, each] = Tally((count,))
        for pair, count, row in zip(
            pairs.tolist(), counts.tolist(), rows[first].tolist(), strict=True
        ):
            name, each = known[pair // len(size)], size[pair % len(size)]
            found[name, each] = Tally((count,), facts.address(row))
        return found

    def total(self, parts: Sequence[Mapping[_Pair, Tally]]) -> Mapping[_Pair, Tally]:
        """Return the same for all images, without sizes that are rare in each class."""
        found = added(parts)
        often: set[_Pair] = {
            (name, size)
            for (name, size), tally in found.items()
            if name is not None and tally.sums[0] >= _LEAST_SHARE * found[name, None].sums[0]
        }
        often |= {(None, size) for _, size in often} | {(None, None)}
        return {pair: tally for pair, tally in found.items() if pair in often}

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield the first image of each class with such a size, in percent of its images."""
        total: Mapping[_Pair, Tally] = examined.total(self)
        found: dict[int, str] = {}
        for (name, size), ((count,), first) in total.items():
            if first is None or size is None:
                continue
            of_label, width, height = total[name, None].sums[0], size >> 32, size & 0xFFFFFFFF
            others, also = total[None, None].sums[0] - of_label, total[None, size].sums[0] - count
            row = examined.facts.row_at(first)
            if (
                row is not None
                and width > 0
                and min(of_label, others) >= _FEWEST
                and count >= examined.thresholds[self.code] / 100 * of_label
                and also <= _MOST_OTHERS / 100 * others
            ):
                text = (
                    f"{count:,} of the {of_label:,} images of {name!r} have {width}×{height} "
                    f"pixels, and {also:,} of the {others:,} others"
                )
                found.setdefault(row, text)
        rows = np.array(sorted(found), np.intp)
        yield FoundRows(rows, lambda at: found[int(rows[at])])
