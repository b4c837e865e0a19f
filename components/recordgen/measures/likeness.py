"""Which pictures are nearly the same, or nearly each other's mirror images.

Pictures are compared if their 64-bit hashes are near, without comparing all pairs; keys of any kind
join other things in the same way:

    hashes                          joined by                        groups
    0: 00…0000  1: 00…0111          (0, 1), three bits differ        [0, 0, 2, 2, 4]
    2: f0…0000  3: f0…0000          (2, 3), none does
    4: 3c…5a96

Two hashes that differ in at most three bits are equal in one of four bands of 16 bits, and in one
of four bands of 12 bits of the rest (Manku, Jain and Sarma, "Detecting near-duplicates for web
crawling", 2007). So hashes are sorted by each of the 16 pairs of bands, and only hashes with equal
bands are compared. Hashes of real pictures are not distributed evenly: 28 bits keep buckets small
where 16 would not. Things in buckets that are crowded nevertheless are sorted once more, by keys
of the things themselves.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.measures.pictures import (
    SIGNATURE_SIDE,
    Hashes,
    PictureFacts,
    Pixels,
    mirrored_hashes,
)

#: Maximum number of different bits for which the bands find all near-duplicates.
MAX_DISTANCE = 3

#: Bands of a hash: near-duplicates have one of them in common.
BANDS = 4

_BAND_BITS, _REST_BITS = 16, 12

# A hash is compared with this number of hashes that follow it in its bucket. Without a limit, an
# attacker could craft hashes for one bucket, and all would be compared with all.
_WINDOW = 32

# Leaders that are tried for pictures that share a hash but are not alike.
_LEADERS = 16

# Pairs that are processed together: it limits the memory of temporary arrays.
_CHUNK = 1 << 15

Indices: TypeAlias = "npt.NDArray[np.int32]"

#: Keys (uint32) of the things with these indices of hashes, several times: things that are alike
#: probably have one of their keys in common.
KeysOf: TypeAlias = "Callable[[Indices], Iterable[npt.NDArray[np.uint32]]]"

#: ``(first, second) -> bool`` for each pair of hashes: whether the hashed things are really alike.
Alike: TypeAlias = "Callable[[Indices, Indices], npt.NDArray[np.bool_]]"


def find_neighbours(
    hashes: Hashes,
    count: int,
    usable: npt.NDArray[np.bool_],
    alike: Alike,
    keys_of: KeysOf,
    on_crowd: Callable[[int], object],
    bands: Iterable[int] = range(BANDS),
) -> Indices:
    """Group things whose hashes differ in at most three bits.

    It needs less than 50 bytes per hash, in addition to ``alike``.

    Args:
        hashes: uint64 [n], or [2 × n]: the hash of each thing, then the hashes of their mirror
            images in the same order. Two mirror images are as far apart as the things themselves.
        count: n.
        usable: bool for each hash; False if it is meaningless, such as the hash of a picture of one
            colour.
        alike: compares the things themselves, for pairs with close hashes.
        keys_of: returns keys for things in crowded buckets: their pairs are those that share a key.
        on_crowd: called with the number of hashes in crowded buckets, if there are any.
        bands: the bands of 16 bits, one of which two near-duplicates have in common.

    Returns:
        int32 [n]: the lowest index of the group of each thing; its own if it has none.
    """
    forest = Forest(np.arange(count, dtype=np.int32))
    # Sorted by hash, then by index: the first index of each hash represents all that share it.
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    leaders, left = _join_equal(hashes, order[usable[order]], forest, alike)
    is_crowded = np.isin(hashes[leaders], hashes[left])
    for first, second in _close_pairs(hashes[leaders], is_crowded, bands):
        forest.join_alike(leaders[first], leaders[second], alike)
    crowd = np.sort(np.concatenate([leaders[is_crowded], left]))
    if len(crowd):
        on_crowd(len(crowd))
        for first, second in _pairs_by_keys(keys_of(crowd)):
            one, other = crowd[first], crowd[second]
            wanted = _are_close(hashes[one], hashes[other])
            wanted &= (one < count) | (other < count)  # a pair of mirror images is there already
            forest.join_alike(one[wanted], other[wanted], alike)
    return forest.groups()


def group_by_keys(keys: Iterable[npt.NDArray[np.uint32]], count: int, alike: Alike) -> Indices:
    """Group things that share a key and are alike.

    Args:
        keys: several arrays, each with a key of each thing: uint32 [n].
        count: n.
        alike: compares the things themselves.

    Returns:
        int32 [n]: the lowest index of the group of each thing; its own if it has none.
    """
    forest = Forest(np.arange(count, dtype=np.int32))
    for first, second in _pairs_by_keys(keys):
        forest.join_alike(first, second, alike)
    return forest.groups()


def _pairs_by_keys(keys: Iterable[npt.NDArray[np.uint32]]) -> Iterator[tuple[Indices, Indices]]:
    """Yield pairs of things that share a key; a pair may occur more than once."""
    for each in keys:
        order = np.argsort(each, kind="stable").astype(np.int32)
        yield from _pairs_in_buckets(each[order], order)


def _join_equal(
    hashes: Hashes, kept: Indices, forest: Forest, alike: Alike
) -> tuple[Indices, Indices]:
    """Join things to the first one with the same hash, their leader.

    Things that share a hash with a leader but are not like it get another leader. Return all
    leaders, and the things that are like none of the leaders with their hash.
    """
    leaders, left = list[Indices](), kept
    for _ in range(_LEADERS):
        starts = _starts(hashes[left])
        leaders.append(left[starts])
        if starts.all():
            return np.concatenate(leaders), left[:0]
        positions = np.flatnonzero(starts).astype(np.int32)
        lead = left[np.repeat(positions, np.diff(positions, append=len(left)))]
        done = starts
        for at in _chunks(len(left)):
            pairs = np.flatnonzero(~starts[at]) + at.start
            done[pairs] = forest.join_alike(lead[pairs], left[pairs], alike)
        left = left[~done]
    return np.concatenate(leaders), left


def _chunks(size: int) -> Iterator[slice]:
    for start in range(0, size, _CHUNK):
        yield slice(start, min(start + _CHUNK, size))


def _close_pairs(
    hashes: Hashes, is_crowded: npt.NDArray[np.bool_], bands: Iterable[int]
) -> Iterator[tuple[Indices, Indices]]:
    """Yield pairs of positions with close hashes; a pair may occur more than once.

    Set ``is_crowded`` for positions in crowded buckets, whose pairs are not yielded.
    """
    for band in bands:
        for rest in range(BANDS):
            keys = _keys(hashes, band, rest)
            order = np.argsort(keys, kind="stable").astype(np.int32)
            keys = keys[order]
            sizes = np.diff(np.flatnonzero(_starts(keys)), append=len(keys))
            crowds = np.repeat(sizes > _WINDOW + 1, sizes)
            is_crowded[order[crowds]] = True
            for first, second in _pairs_in_buckets(keys[~crowds], order[~crowds]):
                close = _are_close(hashes[first], hashes[second])
                if close.any():
                    yield first[close], second[close]


def band_of(hashes: Hashes, band: int) -> Hashes:
    """Return one band of each hash."""
    return hashes >> np.uint64(band * _BAND_BITS) & np.uint64((1 << _BAND_BITS) - 1)


def _are_close(hashes: Hashes, others: Hashes) -> npt.NDArray[np.bool_]:
    return count_bits(hashes ^ others) <= MAX_DISTANCE


def _keys(hashes: Hashes, band: int, rest: int) -> npt.NDArray[np.uint32]:
    """Return keys that combine one band of each hash with one band of its other 48 bits."""
    keys = np.empty(len(hashes), np.uint32)
    shift = np.uint64(band * _BAND_BITS)
    for at in _chunks(len(hashes)):
        turned = hashes[at] >> shift | hashes[at] << (np.uint64(64) - shift) % np.uint64(64)
        low = turned & np.uint64((1 << _BAND_BITS) - 1)
        high = turned >> np.uint64(_BAND_BITS + rest * _REST_BITS)
        high &= np.uint64((1 << _REST_BITS) - 1)
        keys[at] = low << np.uint64(_REST_BITS) | high
    return keys


def _pairs_in_buckets(
    keys: npt.NDArray[np.uint32], order: Indices
) -> Iterator[tuple[Indices, Indices]]:
    """Yield pairs of things with the same key, within the window.

    Args:
        keys: sorted keys.
        order: the thing of each key.
    """
    for chunk in _chunks(len(keys)):
        at = np.arange(chunk.start, chunk.stop)
        for step in range(1, _WINDOW + 1):
            at = at[at + step < len(keys)]
            at = at[keys[at] == keys[at + step]]
            if not len(at):
                break
            yield order[at], order[at + step]


def _starts(values: npt.NDArray[np.unsignedinteger[Any]]) -> npt.NDArray[np.bool_]:
    """Return True for each value that differs from its predecessor."""
    starts = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def count_bits(values: Hashes) -> npt.NDArray[np.uint8]:
    """Return the number of set bits of each value: uint8, in the shape of ``values``."""
    # Sums of 2, 4 and 8 bits in parallel; NumPy has a function for it only since 2.0.
    values = values - (values >> np.uint64(1) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    values = (values & pairs) + (values >> np.uint64(2) & pairs)
    values = values + (values >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (values * np.uint64(0x0101010101010101) >> np.uint64(56)).astype(np.uint8)


class Forest:
    """Groups as trees: the root of each is its lowest index.

    ``parent``: the index itself for each index, in which the trees are kept.
    """

    def __init__(self, parent: Indices) -> None:
        self._parent = parent

    def roots(self, of: Indices) -> Indices:
        """Return the root of each index."""
        root = self._parent[of]
        while not np.array_equal(above := self._parent[root], root):
            root = above
        self._parent[of] = root  # the next call takes one step
        return root

    def join_alike(self, first: Indices, second: Indices, alike: Alike) -> npt.NDArray[np.bool_]:
        """Join pairs of hashes that are alike; return whether each pair is now in one group."""
        size = np.int32(len(self._parent))
        one, other = first % size, second % size
        # Pairs that are already in one group need no comparison.
        joined: npt.NDArray[np.bool_] = self.roots(one) == self.roots(other)
        new = np.flatnonzero(~joined)
        if len(new):
            new = new[alike(first[new], second[new])]
        joined[new] = True
        self.join(one[new], other[new])
        return joined

    def join(self, first: Indices, second: Indices) -> None:
        """Join the groups of pairs."""
        while len(first):
            one, other = self.roots(first), self.roots(second)
            high, low = np.maximum(one, other), np.minimum(one, other)
            # One pair for each upper root: roots hang only below lower roots, so there is no cycle.
            upper, used = np.unique(high, return_index=True)
            used = used[low[used] < upper]
            self._parent[high[used]] = low[used]
            left = one != other
            left[used] = False
            first, second = first[left], second[left]

    def groups(self) -> Indices:
        """Return the root of all indices."""
        for at in _chunks(len(self._parent)):
            self.roots(np.arange(at.start, at.stop, dtype=np.int32))
        return self._parent


_Floats: TypeAlias = "npt.NDArray[np.float32]"

# The following numbers come from the table of `python -m benchmarks.lint`.

#: The least correlation of the signatures of near-duplicates.
LEAST_CORRELATION = 0.97


# Divisions of the signatures in crowded buckets: two of a class of about this size are compared.
# Pairs that correlate by 0.97 are in one class in about every third division.
_DIVISIONS, _CLASS_SIZE = 12, 32

# Enough for 2**29 signatures.
_MAX_STEPS = 24

# Signatures that are handled together.
_SAMPLE = 1 << 14


def find_alike(
    facts: PictureFacts,
    *,
    least: float = LEAST_CORRELATION,
    on_crowd: Callable[[int], object] = lambda views: None,
    band: int | None = None,
) -> Indices:
    """Group pictures that are nearly the same, or nearly each other's mirror images.

    Pictures that look like very many others are compared with some hundred of them each: with
    all other checks, a picture takes four microseconds, and thirty in such a crowd.

    Args:
        facts: facts about all pictures.
        least: see :func:`are_alike`.
        on_crowd: called with the number of pictures and mirror images that look like very many
            others, if there are any.
        band: the band in which pictures have company (:func:`same_in_band`); None: any.

    Returns:
        int32 [n]: the lowest number of the group of each picture; its own if it has none.
    """
    count = len(facts.perceptual_hash)
    hashes = np.concatenate([facts.perceptual_hash, mirrored_hashes(facts.perceptual_hash)])
    bands = range(BANDS) if band is None else [band]
    divisions = [each for each in range(_DIVISIONS) if each % BANDS in bands]

    def alike(first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        return are_alike(signatures_of(first), signatures_of(second), least)

    def signatures_of(views: Indices) -> Pixels:
        stack: Pixels = facts.signature[views % count]
        turned = views >= count
        stack[turned] = stack[turned, :, ::-1]
        return stack

    def keys_of(views: Indices) -> Iterator[npt.NDArray[np.uint32]]:
        return _signature_keys(views, signatures_of, divisions)

    usable = np.tile(facts.has_hash, 2)
    return find_neighbours(hashes, count, usable, alike, keys_of, on_crowd, bands)


def same_in_band(hashes: Hashes, band: int) -> Hashes:
    """Return a number for each hash, the same if it or its mirror image has the same band.

    Two near-duplicates have the same number in one of the bands at least.
    """
    return np.minimum(band_of(hashes, band), band_of(mirrored_hashes(hashes), band))


def _signature_keys(
    views: Indices, signatures_of: Callable[[Indices], Pixels], divisions: Sequence[int]
) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield some of twelve random divisions of signatures into small classes of similar ones.

    Each step halves the classes: in the middle of their signatures along a direction. So it divides
    signatures that have much in common, too, such as those of forms.
    """
    count = len(views)
    depth = max(0, count // _CLASS_SIZE).bit_length()
    for directions in _directions()[divisions, :depth]:
        along = np.empty((depth, count), np.float32)
        for start in range(0, count, _SAMPLE):
            at = slice(start, start + _SAMPLE)
            along[:, at] = _positions(signatures_of(views[at]), directions).T
        classes = np.zeros(count, np.uint32)
        for step, positions in enumerate(along, start=1):
            halves = classes.view(np.uint16).reshape(count, 2).T
            low, high = halves if sys.byteorder == "little" else halves[::-1]
            order = np.lexsort((_as_levels(positions), low, high))
            classes[order] = (np.arange(count) << step) // count
        yield classes


def _as_levels(positions: _Floats) -> npt.NDArray[np.uint16]:
    """Return positions as 65,536 levels: numbers of 16 bits are sorted without comparisons."""
    lowest, highest = positions.min(), positions.max()
    scale = np.float64(65535) / max(float(highest - lowest), 1e-9)
    return ((positions - lowest).astype(np.float64) * scale).astype(np.uint16)


@lru_cache(maxsize=1)
def _directions() -> npt.NDArray[np.float64]:
    """Return directions of 1 and -1, the same everywhere: [divisions, steps, pixels]."""
    shape = (_DIVISIONS, _MAX_STEPS, SIGNATURE_SIDE**2)
    drawn = hashlib.shake_128(b"recordgen").digest(math.prod(shape) // 8)
    return np.unpackbits(np.frombuffer(drawn, np.uint8)).reshape(shape) * 2.0 - 1.0


def _positions(signatures: Pixels, directions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the positions of signatures along directions: [n, directions].

    Brightness and contrast do not matter.
    """
    levels = signatures.reshape(len(signatures), -1).astype(np.float64)
    size = levels.shape[1]
    centred = size * levels - levels.sum(axis=1, keepdims=True)
    # Whole numbers below 2**53 until they are divided, so that all machines agree.
    length = np.sqrt((centred * centred).sum(axis=1, keepdims=True))
    return (centred @ directions.T) / np.maximum(length, 1)


def are_alike(
    signatures: Pixels, others: Pixels, least: float = LEAST_CORRELATION
) -> npt.NDArray[np.bool_]:
    """Return whether the pixels of each pair of pictures correlate.

    Brightness and contrast do not matter.

    Args:
        signatures: uint8 [n, 8, 8].
        others: uint8 [n, 8, 8]: the other picture of each pair.
        least: the least correlation of two pictures that are alike, 0 to 1.

    Returns:
        bool [n]
    """
    one, other = (
        stack.reshape(len(stack), -1).astype(np.float32) for stack in (signatures, others)
    )
    size = one.shape[1]
    ones, others_sum = one.sum(axis=1).astype(np.int64), other.sum(axis=1).astype(np.int64)
    shared = size * _products(one, other) - ones * others_sum
    spread = size * _products(one, one) - ones * ones
    other_spread = size * _products(other, other) - others_sum * others_sum
    both = np.sqrt(spread.astype(np.float64) * other_spread)
    return shared >= least * both


def _products(one: _Floats, other: _Floats) -> npt.NDArray[np.int64]:
    """Return the sum of products of each pair of signatures: whole numbers below 2**24."""
    return np.einsum("ij,ij->i", one, other).astype(np.int64)
