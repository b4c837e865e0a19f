"""Divide the records of shard files among workers: pure index arithmetic.

All workers compute the same plan from the same counts, without communication. Their shares are
disjoint, hold every record, and differ by one record at most.

    counts (5, 5, 5), 2 workers → worker 0: file 0, records 0–1 of file 1
                                  worker 1: records 2–4 of file 1, file 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive records of one file.

    Attributes:
        file: the file's index in the list of files.
        start: the index of the first record.
        count: the number of records.
    """

    file: int
    start: int
    count: int


def consecutive_share(counts: Sequence[int], index: int, workers: int) -> list[Piece]:
    """Return a worker's share of few files: whole files, and at most two in part.

    The files are divided as if they were one, so all workers together open at most
    ``len(counts) + workers - 1`` files.
    """
    total = sum(counts)
    first, end = index * total // workers, (index + 1) * total // workers
    pieces = []
    before = 0
    for file, count in enumerate(counts):
        start, stop = max(first - before, 0), min(end - before, count)
        if start < stop:
            pieces.append(Piece(file, start, stop - start))
        before += count
    return pieces


def even_share(counts: Sequence[int], index: int, workers: int) -> list[Piece]:
    """Return a share of every file, for files with one class each.

    The workers' parts of a file differ by one record at most. The workers take the remaining
    records in turn, so that the whole shares also differ by one record at most.
    """
    pieces = []
    before = 0
    for file, count in enumerate(counts):
        place = (index - before) % workers
        size, odd = divmod(count, workers)
        mine = size + (place < odd)
        if mine:
            pieces.append(Piece(file, place * size + min(place, odd), mine))
        before += count
    return pieces
