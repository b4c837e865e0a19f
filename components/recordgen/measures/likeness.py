"""Which pictures are nearly the same, or nearly each other's mirror images."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.measures.neighbours import BANDS, Hashes, Indices, band_of, find_neighbours
from recordgen.measures.perceptual_hash import mirrored_hashes
from recordgen.measures.pictures import SIGNATURE_SIDE, PictureFacts, Pixels

_Floats: TypeAlias = "npt.NDArray[np.float32]"

# The following numbers come from the table of `python -m benchmarks.lint`.

#: The least correlation of the signatures of near-duplicates.
LEAST_CORRELATION = 0.97

#: The least contrast of a picture with a meaningful hash.
LEAST_HASH_CONTRAST = 3.0


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
    on_crowd: Callable[[int], None] | None = None,
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
    usable = np.tile(has_hash(facts), 2)

    def alike(first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        return are_alike(signatures_of(first), signatures_of(second), least)

    def signatures_of(views: Indices) -> Pixels:
        stack: Pixels = facts.signature[views % count]
        turned = views >= count
        stack[turned] = stack[turned, :, ::-1]
        return stack

    def keys_of(views: Indices) -> Iterator[npt.NDArray[np.uint32]]:
        return _signature_keys(views, signatures_of, divisions)

    bands = range(BANDS) if band is None else [band]
    divisions = [each for each in range(_DIVISIONS) if each % BANDS in bands]
    return find_neighbours(
        hashes,
        count=count,
        usable=usable,
        alike=alike,
        keys_of=keys_of,
        on_crowd=on_crowd,
        bands=bands,
    )


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


def has_hash(facts: PictureFacts) -> npt.NDArray[np.bool_]:
    """Return whether each picture has enough contrast for a meaningful hash."""
    return facts.contrast >= LEAST_HASH_CONTRAST
