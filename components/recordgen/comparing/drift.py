"""Distances between the labels and sizes of two datasets, split by split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recordgen.comparing.rows import Rows
from recordgen.dataset.splits import split_order
from recordgen.lint.shares import changes

#: The name of all splits together.
ALL = "all"


@dataclass(frozen=True, slots=True)
class LabelDrift:
    """The labels of one split.

    Attributes:
        split: its name; ``all`` for all splits together.
        distance: total variation between the shares of the labels, 0 (the same) to 1 (no label in
            common); None if one of the datasets has no labels in the split.
        counts: examples with each label in OLD and in NEW, the largest change of share first.
        unlabelled: examples without a label in OLD and in NEW.
    """

    split: str
    distance: float | None
    counts: Mapping[str, tuple[int, int]]
    unlabelled: tuple[int, int]


@dataclass(frozen=True, slots=True)
class SizeStats:
    """The sizes of the images or texts of one split.

    Attributes:
        examples: number of examples.
        width: least, median and largest width in pixels, or bytes of texts; None if unknown.
        height: least, median and largest height in pixels; None for texts, or if unknown.
    """

    examples: int
    width: tuple[int, int, int] | None
    height: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class SizeDrift:
    """The sizes of one split.

    Attributes:
        split: its name; ``all`` for all splits together.
        distance: between the sizes of images (pixels) or texts (bytes): the largest difference of
            the shares up to any size (Kolmogorov–Smirnov), 0 to 1; None if unknown.
        old: sizes in OLD.
        new: sizes in NEW.
    """

    split: str
    distance: float | None
    old: SizeStats
    new: SizeStats


def label_drift(old: Rows, new: Rows) -> list[LabelDrift]:
    """Compare the labels of all splits together, and of each split."""
    return [
        _label_drift(split, _labels_of(old, split), _labels_of(new, split))
        for split in _splits(old, new)
    ]


def size_drift(old: Rows, new: Rows) -> list[SizeDrift]:
    """Compare the sizes of images or texts in all splits together, and in each split."""
    found = []
    for split in _splits(old, new):
        sides = [_sizes_of(rows, split) for rows in (old, new)]
        areas = [widths.astype(np.uint64) * np.maximum(heights, 1) for widths, heights in sides]
        stats = [SizeStats(len(w), _quantiles(w), _quantiles(h)) for w, h in sides]
        found.append(SizeDrift(split, _kolmogorov_smirnov(areas[0], areas[1]), stats[0], stats[1]))
    return found


def total_variation(old: Mapping[str, int], new: Mapping[str, int]) -> float | None:
    """Return half of the sum of all differences of shares; None if one side has no counts.

    ``{"cat": 1, "dog": 1}``, ``{"cat": 3, "dog": 1}`` → 0.25
    """
    return sum(changes(old, new).values()) / 2 if any(old.values()) and any(new.values()) else None


def _splits(old: Rows, new: Rows) -> Sequence[str]:
    splits = sorted({*old.splits, *new.splits}, key=split_order)
    return splits if len(splits) == 1 else [ALL, *(name for name in splits if name != ALL)]


def _labels_of(rows: Rows, split: str) -> tuple[Mapping[str, int], int]:
    if split != ALL:
        return rows.label_counts.get(split, {}), rows.unlabelled.get(split, 0)
    total: Counter[str] = Counter()
    for counts in rows.label_counts.values():
        total.update(counts)
    return total, sum(rows.unlabelled.values())


def _label_drift(
    split: str, old: tuple[Mapping[str, int], int], new: tuple[Mapping[str, int], int]
) -> LabelDrift:
    changed = changes(old[0], new[0])
    order = sorted(changed, key=lambda label: (-changed[label], label))
    counts = {label: (old[0].get(label, 0), new[0].get(label, 0)) for label in order}
    return LabelDrift(split, total_variation(old[0], new[0]), counts, (old[1], new[1]))


def _sizes_of(rows: Rows, split: str) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    wanted = slice(None) if split == ALL else rows.in_splits([split])
    return rows.numbers["width"][wanted], rows.numbers["height"][wanted]


def _quantiles(values: npt.NDArray[np.uint32]) -> tuple[int, int, int] | None:
    known = values[values > 0]
    if not len(known):
        return None
    return int(known.min()), int(np.median(known)), int(known.max())


def _kolmogorov_smirnov(old: npt.NDArray[np.uint64], new: npt.NDArray[np.uint64]) -> float | None:
    old, new = np.sort(old[old > 0]), np.sort(new[new > 0])
    if not len(old) or not len(new):
        return None
    values = np.concatenate((old, new))
    shares = [np.searchsorted(side, values, side="right") / len(side) for side in (old, new)]
    return float(np.abs(shares[0] - shares[1]).max())
