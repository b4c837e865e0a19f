"""Matches the rows of NEW and OLD, and finds payloads that leaked between splits."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.comparing.rows import Places, Rows
from recordgen.dataset.splits import TRAIN, split_named
from recordgen.lint.minhash import mixed

#: Kinds of differences between matched rows, and the columns that show them.
KINDS = {
    "label": "label",
    "annotation": "annotation",
    "bytes": "payload",
    "features": "rest",
    "split": "split",
}

# Rows with the same key are matched in three passes: equal rows, rows that differ only in label or
# split, and the others in their order. So among several rows with the same key, only rows that did
# change count as changed.
_PASSES = (("key", *KINDS.values()), ("key", "payload", "annotation", "rest"), ("key",))

_ODD = np.uint64(0x9E3779B97F4A7C15)


class Matches(NamedTuple):
    """Matched and unmatched rows of both datasets.

    Attributes:
        old: indices of matched rows in OLD, in the order of ``new``.
        new: indices of matched rows in NEW, ascending.
        removed: indices of rows that only OLD has, ascending.
        added: indices of rows that only NEW has, ascending.
    """

    old: Places
    new: Places
    removed: Places
    added: Places


#: Rows of OLD and of NEW, in pairs.
Pairs: TypeAlias = tuple[Places, Places]


def match(old: Rows, new: Rows) -> Matches:
    """Match rows by key; rows with equal keys one to one."""
    old_columns, new_columns = _columns(old, new)
    left_old, left_new = np.arange(len(old)), np.arange(len(new))
    pairs: list[Pairs] = []
    for columns in _PASSES:
        first = _distinct(_hashed([old_columns[name][left_old] for name in columns]))
        second = _distinct(_hashed([new_columns[name][left_new] for name in columns]))
        _, at_old, at_new = np.intersect1d(first, second, assume_unique=True, return_indices=True)
        pairs.append((left_old[at_old], left_new[at_new]))
        left_old, left_new = np.delete(left_old, at_old), np.delete(left_new, at_new)
    found_old, found_new = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = np.argsort(found_new)
    return Matches(found_old[order], found_new[order], left_old, left_new)


def differing(old: Rows, new: Rows, matches: Matches) -> dict[str, npt.NDArray[np.bool_]]:
    """Return whether each pair differs, by kind in :data:`KINDS`."""
    columns, others = _columns(old, new)
    return {
        kind: columns[name][matches.old] != others[name][matches.new]
        for kind, name in KINDS.items()
    }


def leaks(old: Rows, new: Rows) -> dict[str, Pairs]:
    """Return the rows of NEW whose payload leaked, under any name, in their order.

    Returns:
        ``train_to_evaluation``: rows of OLD's train, and rows of NEW outside of train with the same
        payload; ``evaluation_to_train``: the opposite.
    """
    # Other tools may have another name for ``train``.
    old_train, new_train = (
        rows.in_splits([name for name in rows.splits if split_named(name) == TRAIN])
        for rows in (old, new)
    )
    return {
        "train_to_evaluation": _shared(old, old_train, new, ~new_train),
        "evaluation_to_train": _shared(old, ~old_train, new, new_train),
    }


def _shared(
    old: Rows, from_old: npt.NDArray[np.bool_], new: Rows, from_new: npt.NDArray[np.bool_]
) -> Pairs:
    sources, targets = np.flatnonzero(from_old), np.flatnonzero(from_new)
    payloads = old.numbers["payload"][sources]
    order = np.argsort(payloads, kind="stable")
    ordered = payloads[order]
    wanted = new.numbers["payload"][targets]
    at = np.searchsorted(ordered, wanted)
    is_there = at < len(ordered)
    is_there[is_there] = ordered[at[is_there]] == wanted[is_there]
    return sources[order[at[is_there]]], targets[is_there]


def _columns(*sides: Rows) -> list[dict[str, npt.NDArray[Any]]]:
    """Return the columns to match; splits are numbered alike on all sides."""
    names = list(dict.fromkeys(name for rows in sides for name in rows.splits))
    return [
        {
            **rows.numbers,
            "split": np.array([names.index(name) for name in rows.splits], np.uint64)[
                rows.numbers["split"]
            ],
        }
        for rows in sides
    ]


def _hashed(columns: list[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
    """Return one hash of 64 bits for each row of several columns."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = mixed(hashes + _ODD + column.astype(np.uint64))
    return hashes


def _distinct(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Replace repeats of a value, the second, third and so on, by distinct values.

    Two arrays that contain a value n and m times share min(n, m) of its results.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    is_first = np.ones(len(values), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(values)), 0))
    rank = np.empty(len(values), np.uint64)
    rank[order] = np.arange(len(values)) - starts
    return np.where(rank == 0, values, mixed(values + rank * _ODD))
