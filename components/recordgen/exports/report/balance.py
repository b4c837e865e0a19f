"""The number of examples of each class in each split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from recordgen.core.dataset.manifest import Dataset

_T = TypeVar("_T")

# Up to this number a table shows all classes; above it, the largest and the smallest.
_ALL_SHOWN = 24
_ENDS_SHOWN = 10

# Points of the curve over all classes, which is about 600 pixels wide.
_CURVE_POINTS = 200


@dataclass(frozen=True, slots=True)
class ClassCount:
    """One class; ``counts`` are examples in each split, in the dataset's order of splits."""

    label: str
    number: int
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Examples in all splits."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Balance:
    """All classes that have examples.

    Attributes:
        classes: in the order of their numbers.
        by_size: the same classes, the largest first.
        unlabelled: examples without a label in each split.
        empty: labels of the vocabulary without an example.
    """

    classes: tuple[ClassCount, ...]
    by_size: tuple[ClassCount, ...]
    unlabelled: tuple[int, ...]
    empty: int

    @property
    def is_short(self) -> bool:
        """Whether one table can show all classes."""
        return len(self.classes) <= _ALL_SHOWN

    @property
    def largest(self) -> tuple[ClassCount, ...]:
        """The classes to show first, the largest of all at the top."""
        return self.by_size[:_ENDS_SHOWN]

    @property
    def smallest(self) -> tuple[ClassCount, ...]:
        """The classes to show last, the smallest of all at the end."""
        return self.by_size[-_ENDS_SHOWN:]

    @property
    def most(self) -> int:
        """Examples of the largest class."""
        return self.by_size[0].total

    @property
    def least(self) -> int:
        """Examples of the smallest class."""
        return self.by_size[-1].total

    @property
    def median(self) -> float:
        """Examples of the class in the middle."""
        return median(item.total for item in self.classes)

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Points (share of classes, share of the largest class), from the largest class on."""
        last = len(self.by_size) - 1
        return [
            (place / last, item.total / self.most)
            for place, item in evenly(list(enumerate(self.by_size)), _CURVE_POINTS)
        ]


def class_balance(dataset: Dataset) -> Balance:
    """Count examples by class and split."""
    splits = list(dataset.splits.values())
    counted = [
        ClassCount(label, number, tuple(split.labels.get(label, 0) for split in splits))
        for number, label in enumerate(dataset.labels)
    ]
    classes = tuple(item for item in counted if item.total)
    return Balance(
        classes,
        tuple(sorted(classes, key=lambda item: (-item.total, item.number))),
        tuple(split.unlabelled for split in splits),
        len(counted) - len(classes),
    )


def evenly(items: Sequence[_T], count: int) -> list[_T]:
    """Return up to ``count`` evenly spaced items, including the first and the last.

    ``evenly("abcde", 3)`` → ``["a", "c", "e"]``; a count of 1 gives the first item.
    """
    if len(items) <= count:
        return list(items)
    if count == 1:
        return [items[0]]
    last = len(items) - 1
    return [items[round(place * last / (count - 1))] for place in range(count)]
