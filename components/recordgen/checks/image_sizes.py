"""A check of classes whose images have a size of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from recordgen.checks.check import EACH, Check, Examined, FoundRows
from recordgen.checks.facts import Address
from recordgen.core.facts import IMAGES

# The fewest images with the label and without it, and the largest share of the latter, in percent.
_FEWEST, _MOST_OTHERS = 10, 1

# A smaller share of a class is not counted as its size, whatever the threshold.
_LEAST_SHARE = 0.01


class _Sizes(NamedTuple):
    """All images, those of each class, of each size, and of a size in a class with the first."""

    images: int
    of_label: Counter[str]
    of_size: Counter[int]
    pairs: Mapping[tuple[str, int], tuple[int, Address]]


class ClassSize(Check):
    """Nearly all images of a class have one size, and hardly any other image has it."""

    code = "CLASS_SIZE"
    threshold = 90
    scope = EACH
    needs = (IMAGES,)
    remedies = ("add images of other sizes to the class",)

    def part(self, examined: Examined[Any]) -> _Sizes:
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
        known: Sequence[str] = names.dictionary.to_pylist()
        size = sizes.tolist()
        return _Sizes(
            len(facts),
            Counter(dict(zip(known, np.bincount(labels).tolist(), strict=True))),
            Counter(dict(zip(size, np.bincount(size_of).tolist(), strict=True))),
            {
                (known[pair // len(size)], size[pair % len(size)]): (count, facts.address(row))
                for pair, count, row in zip(
                    pairs.tolist(), counts.tolist(), rows[first].tolist(), strict=True
                )
            },
        )

    def total(self, parts: Sequence[_Sizes]) -> _Sizes:
        """Return the same for all images."""
        of_label: Counter[str] = Counter()
        of_size: Counter[int] = Counter()
        pairs: dict[tuple[str, int], tuple[int, Address]] = {}
        for part in parts:
            of_label.update(part.of_label)
            of_size.update(part.of_size)
            for pair, (count, first) in part.pairs.items():
                more, earlier = pairs.get(pair, (0, first))
                pairs[pair] = count + more, min(first, earlier)
        images = sum(part.images for part in parts)
        often = {
            pair: found
            for pair, found in pairs.items()
            if found[0] >= _LEAST_SHARE * of_label[pair[0]]
        }
        sizes = {size for _, size in often}
        return _Sizes(images, of_label, Counter({size: of_size[size] for size in sizes}), often)

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield the first image of each class with such a size, in percent of its images."""
        total: _Sizes = examined.total(self)
        found: dict[int, str] = {}
        for (name, size), (count, first) in total.pairs.items():
            of_label, width, height = total.of_label[name], size >> 32, size & 0xFFFFFFFF
            others, also = total.images - of_label, total.of_size[size] - count
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
