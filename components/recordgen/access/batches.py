"""Batches of a sequence, made by threads: the order is a function of the seed and the number."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

import numpy as np

from recordgen.core.ordered import map_in_order
from recordgen.errors import UsageError, check_at_least, names_checked

if TYPE_CHECKING:
    import numpy.typing as npt


Item = TypeVar("Item", covariant=True)


def order(count: int, *, seed: int | None, shard: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return the indexes that a worker reads in one pass, in their order.

    ``order(5, seed=None, shard=(1, 2))`` → ``[1, 3]``. All workers together read each index once.
    """
    found = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
    index, shards = shard
    return found[index::shards]


class BatchedSequence(Sequence[Item]):
    """A sequence whose items are also read in batches.

    Attributes:
        threads: threads that pay off for batches.
    """

    threads: int

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, index: slice | Iterable[SupportsIndex]) -> list[Item]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return an item; or a list of items, of a slice or a list of indexes.

        Raises: IndexError: there is no such record; RecordError: a record or an image is damaged.
        """
        return self.read(index)

    @abstractmethod
    def read(self, index: Any) -> Any:
        """Return what ``[index]`` does."""

    def collate(self, items: Sequence[Any]) -> Any:
        """Return items as one batch: numbers and arrays of one shape are stacked."""
        return together(items)

    def __getitems__(self, indexes: Iterable[int]) -> list[Item]:
        """Return the items of a batch of PyTorch, whose default collation calls :attr:`collate`.

        Alone, it stacks values of one shape, and takes the names in the first dict for all.
        """
        items: list[Any] = self[list(indexes)]
        parts = items[:1] if items and not isinstance(items[0], tuple) else [*chain(*items[:1])]
        known = _collations() if any(isinstance(part, dict) for part in parts) else None
        if known is None:
            return items
        known.update(dict.fromkeys((_TupleItem, _DictItem), _collated))
        for at, item in enumerate(items):
            items[at] = _TupleItem(item) if isinstance(item, tuple) else _DictItem(item)
            items[at].collate = self.collate
        return items

    def batch(self, indexes: Iterable[int]) -> Any:
        """Return the items with these indexes as one batch. Raises: as ``[index]``."""
        return self.collate(self[list(indexes)])

    @names_checked
    def batches(
        self,
        batch_size: int,
        *,
        seed: int | None = None,
        shard: tuple[int, int] = (0, 1),
        start: int = 0,
        drop_remainder: bool = False,
        threads: int | None = None,
    ) -> Iterator[Any]:
        """Yield the batches of one pass, made by threads ahead of time.

        Args:
            batch_size: items per batch.
            seed: shuffles the items, the same way on every machine; None: in order. Another epoch
                needs another seed.
            shard: (index, count): read only this worker's share.
            start: the number of batches to skip, without reading them: an epoch that stopped after
                ``k`` batches goes on with ``start=k``.
            drop_remainder: skip a short last batch, so that all workers have equally many.
            threads: threads that read and decode; None: :attr:`threads`.

        Raises: UsageError: an argument is wrong.
        """
        index, shards = shard
        used = threads or self.threads
        check_at_least(1, batch_size=batch_size, threads=used)
        check_at_least(0, start=start)
        if not 0 <= index < shards:
            raise UsageError(f"shard must be (index, count) with 0 ≤ index < count (got {shard})")
        if not isinstance(seed, Integral | None) or (seed or 0) < 0:
            raise UsageError(f"seed must be a whole number from 0, or None (got {seed!r})")
        mine = order(len(self), seed=seed, shard=shard)
        least = len(self) // shards if drop_remainder else len(mine)
        stop = least - least % batch_size if drop_remainder else least
        parts = (
            mine[at : min(at + batch_size, stop)]
            for at in range(start * batch_size, stop, batch_size)
        )
        return map_in_order(self.batch, parts, threads=used)


def together(
    values: Sequence[Any],
    padding: int | None = None,
    least: int = 0,
    several: Collection[str] = (),
    name: str = "",
) -> Any:
    """Return values of several items as one; tuples and dicts are joined part by part.

    Numbers, arrays and tensors of one shape are stacked; other values are a list. A part that an
    item lacks is an empty array.

    Args:
        values: at least one.
        padding: pads arrays of different lengths, if given; text is padded with "", bool with
            False, and uint8 with 0.
        least: the least length of padded arrays.
        several: names of parts with a value for each object, of any shape; other parts with three
            dimensions are images.
        name: of the part.

    Raises: UsageError: there are no values, or images to be padded have different sizes.
    """
    if not values:
        raise UsageError("a batch needs at least one item (got none)")
    first = values[0]
    if isinstance(first, tuple):
        parts = zip(*values, strict=True)
        return tuple(together(part, padding, least, several) for part in parts)
    if isinstance(first, dict):
        names = dict.fromkeys(chain.from_iterable(values))
        return {
            name: together(_parts(values, name), padding, least, several, name) for name in names
        }
    if all(isinstance(value, bool | int | float) for value in values):
        return np.array(values)
    if not isinstance(first, np.ndarray | np.generic):
        torch = sys.modules.get("torch")
        are_tensors = torch is not None and all(isinstance(it, torch.Tensor) for it in values)
        is_one_shape = are_tensors and len({value.shape for value in values}) == 1
        return torch.stack(list(values)) if torch and is_one_shape else list(values)
    is_one_shape = len({np.shape(each) for each in values}) == 1
    if is_one_shape and (not first.ndim or first.shape[0] >= least):
        return np.stack(values)
    if padding is None:
        return list(values)
    if first.ndim > 2 and name not in several:
        raise UsageError("a batch needs images of one size: give images(…) a size")
    blank = {"O": "", "b": False, "u": 0}.get(first.dtype.kind, padding)
    length = max(least, *map(len, values))
    found = np.full((len(values), length, *first.shape[1:]), blank, first.dtype)
    for at, each in enumerate(values):
        found[at, : len(each)] = each
    return found


class _TupleItem(tuple[Any, ...]):
    """A tuple that its sequence collates, also if PyTorch's default collation is asked."""

    collate: Callable[[Sequence[Any]], Any]


class _DictItem(dict[str, Any]):
    """A dict that its sequence collates, also if PyTorch's default collation is asked."""

    collate: Callable[[Sequence[Any]], Any]


def _collations() -> dict[Any, Any] | None:
    """Return the ``default_collate_fn_map`` that the docs of ``default_collate`` let users extend.

    It lies beside that function. None: PyTorch is not imported, or has another collation.
    """
    data = sys.modules.get("torch.utils.data")
    home = sys.modules.get(data.default_collate.__module__) if data is not None else None
    return getattr(home, "default_collate_fn_map", None)


def _collated(items: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Return items as one batch of tensors; the arguments are those that PyTorch gives."""
    from torch.utils.data import default_convert

    return default_convert(items[0].collate(items))


def _parts(items: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return a part of each item; records of other tools may lack it."""
    found = next(item[name] for item in items if name in item)
    return [item[name] if name in item else found[:0] for item in items]
