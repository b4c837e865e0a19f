"""Measures of pictures from their thumbnails, many at a time, and which of them are alike.

    64 looks (32×32 gray, sharpness)  ─measured─▶  PictureFacts (an array for each measure)

The hash of given pixels is the same on every machine: it is computed with whole numbers.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.core.facts.neighbours import BANDS, Hashes, Indices, band_of, find_neighbours
from recordgen.core.facts.perceptual_hash import (
    SIDE,
    Looks,
    Pixels,
    mirrored_hashes,
    perceptual_hashes,
)

#: Pixels on each side of a signature.
SIGNATURE_SIDE = 8

_Floats: TypeAlias = "npt.NDArray[np.float32]"

# The following numbers come from the table of `python -m benchmarks.lint_precision`.

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


class PictureFacts(NamedTuple):
    """Measures of pictures: arrays with one element for each picture."""

    # uint64: the signs of the 64 lowest frequencies. Copies differ in few bits, also after
    # encoding, resizing or brightening; it is meaningless without `contrast`.
    perceptual_hash: npt.NDArray[np.uint64]
    # uint8 [n, 8, 8]: the picture in 64 gray pixels, to verify that two are alike.
    signature: Pixels
    brightness: _Floats  # float32: mean, 0 (black) to 255 (white)
    contrast: _Floats  # float32: standard deviation, 0 to 127.5
    darkest: Pixels  # uint8: 1 % of the picture is at this level or below
    lightest: Pixels  # uint8: 1 % of the picture is at this level or above
    entropy: _Floats  # float32: entropy of the levels in steps of 4, 0 to 6 bits
    sharpness: _Floats  # float32: see Looks
    colourfulness: _Floats  # float32: likewise; NaN if unknown


def measured(looks: Looks) -> PictureFacts:
    """Measure pictures."""
    histograms = _histograms(looks.thumbnail)
    brightness, contrast = _moments(histograms)
    below = histograms.cumsum(axis=1)
    few = SIDE * SIDE // 100
    return PictureFacts(
        perceptual_hashes(looks.thumbnail),
        signatures(looks.thumbnail),
        brightness,
        contrast,
        (below <= few).sum(axis=1).astype(np.uint8),
        (below < SIDE * SIDE - few).sum(axis=1).astype(np.uint8),
        _entropy(histograms),
        looks.sharpness.astype(np.float32),
        looks.colourfulness.astype(np.float32),
    )


def _histograms(thumbnails: Pixels) -> npt.NDArray[np.int64]:
    """Return the number of pixels at each level: int64 [n, 256]."""
    count = len(thumbnails)
    offsets = np.arange(count)[:, None] * 256
    levels = thumbnails.reshape(count, SIDE * SIDE) + offsets
    return np.bincount(levels.ravel(), minlength=count * 256).reshape(count, 256)


def _moments(histograms: npt.NDArray[np.int64]) -> tuple[_Floats, _Floats]:
    levels, size = np.arange(256), SIDE * SIDE
    sums, squares = histograms @ levels, histograms @ (levels * levels)
    spread = np.sqrt((size * squares - sums * sums).astype(np.float64)) / size
    return (sums / size).astype(np.float32), spread.astype(np.float32)


def _entropy(histograms: npt.NDArray[np.int64]) -> _Floats:
    """Return the entropy of the levels in steps of 4, in bits."""
    shares = histograms.reshape(-1, 64, 4).sum(axis=2) / (SIDE * SIDE)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return (0 - (shares * logs).sum(axis=1)).astype(np.float32)


def signatures(thumbnails: Pixels) -> Pixels:
    """Reduce thumbnails to 8×8 pixels: uint8 [n, 8, 8]."""
    side = SIDE // SIGNATURE_SIDE
    rows = np.repeat(np.eye(SIGNATURE_SIDE), side, axis=1)
    sums = np.matmul(rows, np.matmul(thumbnails.astype(np.float64), rows.T))
    return (sums / (side * side) + 0.5).astype(np.uint8)


def find_alike(
    facts: PictureFacts,
    *,
    least: float = LEAST_CORRELATION,
    on_crowd: Callable[[int], None] | None = None,
    band: int | None = None,
) -> Indices:
    """Group pictures that are nearly the same, or nearly each other's mirror images.

    Pictures that look like very many others are compared with some hundred of them each: with
    all other checks, a picture takes four microseconds, and thirty in such a crowd
    (``python -m benchmarks.launcher``).

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
