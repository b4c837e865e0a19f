"""Batches of a sequence, made by threads: the order is a function of the seed and the number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen.errors import UsageError
from recordgen.ordered import default_threads, map_in_order

if TYPE_CHECKING:
    import numpy.typing as npt


def order(count: int, *, seed: int | None, shard: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return the indexes that a worker reads in one pass, in their order.

    ``order(5, seed=None, shard=(1, 2))`` → ``[1, 3]``. All workers together read each index once.
    """
    found = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
    index, shards = shard
    return found[index::shards]


def batches(
    items: Any,
    batch_size: int,
    *,
    seed: int | None = None,
    shard: tuple[int, int] = (0, 1),
    start: int = 0,
    drop_remainder: bool = False,
    threads: int | None = None,
) -> Iterator[Any]:
    """Yield the batches of one pass over ``items``, made by threads ahead of time.

    Args:
        items: a :class:`recordgen.access.Source` or :class:`recordgen.access.Images`.
        batch_size: items per batch.
        seed: shuffles the items, the same way on every machine; None: in order. Another epoch needs
            another seed.
        shard: (index, count): read only this worker's share.
        start: the number of batches to skip, without reading them: an epoch that stopped after
            ``k`` batches goes on with ``start=k``.
        drop_remainder: skip a short last batch, so that all workers have equally many.
        threads: threads that read and decode; None: one per core.

    Raises:
        UsageError: an argument is wrong.
    """
    index, shards = shard
    if batch_size < 1 or start < 0 or not 0 <= index < shards:
        raise UsageError(
            f"batch_size must be at least 1, start at least 0, and shard (index, count) with "
            f"0 ≤ index < count (got {batch_size}, {start}, {shard})"
        )
    mine = order(len(items), seed=seed, shard=shard)
    least = len(items) // shards if drop_remainder else len(mine)
    stop = least - least % batch_size if drop_remainder else least
    parts = (
        mine[at : min(at + batch_size, stop)] for at in range(start * batch_size, stop, batch_size)
    )
    return map_in_order(items.batch, parts, threads=threads or default_threads())


def stacked(values: Sequence[Any]) -> Any:
    """Return values of several examples as one: arrays of equal shape as an array, else a list."""
    if all(isinstance(each, dict) for each in values):
        return {name: stacked([each[name] for each in values]) for name in values[0]}
    shapes = {np.shape(each) for each in values}
    if isinstance(values[0], np.ndarray | np.generic) and len(shapes) == 1:
        return np.stack(values)
    return list(values)
