"""A few of many, evenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")


def evenly(items: Sequence[_T], count: int) -> list[_T]:
    """Return up to ``count`` items in their order, the first and the last among them.

    ``evenly("abcde", 3)`` → ``["a", "c", "e"]``; one item is the first.
    """
    if len(items) <= count:
        return list(items)
    if count == 1:
        return [items[0]]
    last = len(items) - 1
    return [items[round(place * last / (count - 1))] for place in range(count)]
