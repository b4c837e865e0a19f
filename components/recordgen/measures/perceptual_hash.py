"""Perceptual hashes of thumbnails: the signs of their lowest frequencies.

The hash of given pixels is the same on every machine: it is computed with whole numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from recordgen.measures.neighbours import Hashes

#: Pixels on each side of a thumbnail, and minimum on the shorter side of a small picture.
SIDE = 32

#: Bits of a perceptual hash.
HASH_BITS = 64


def perceptual_hashes(thumbnails: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return the signs of the lowest frequencies of uint8 [n, 32, 32], the lowest bit first."""
    cosines, rows, columns, bits = _cosines()
    # Whole numbers below 255 * (32 * 2**12)**2 < 2**53.
    waves = np.matmul(cosines, np.matmul(thumbnails.astype(np.float64), cosines.T))
    signs = waves[:, rows, columns] > 0
    return np.where(signs, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64)


@lru_cache(maxsize=1)
def _cosines() -> tuple[
    npt.NDArray[np.float64],
    npt.NDArray[np.intp],
    npt.NDArray[np.intp],
    npt.NDArray[np.uint64],
]:
    """Return the DCT's matrix in whole numbers, its 64 lowest waves (rows, columns), their bits."""
    count = 11  # waves along a side: without the mean, diagonals 1 to 10 have 65
    waves = np.arange(count)[:, None] * (2 * np.arange(SIDE)[None] + 1)
    cosines = np.rint(np.cos(waves * (np.pi / (2 * SIDE))) * (1 << 12))
    lowest = sorted(
        ((row, column) for row in range(count) for column in range(count) if row or column),
        key=lambda wave: (sum(wave), wave),
    )[:HASH_BITS]
    rows, columns = np.array(lowest).T
    return cosines, rows, columns, np.uint64(1) << np.arange(HASH_BITS, dtype=np.uint64)


def mirrored_hashes(hashes: Hashes) -> Hashes:
    """Return the hashes of the mirror images: waves that are odd from left to right change sign."""
    _, _, columns, bits = _cosines()
    return hashes ^ np.bitwise_or.reduce(bits[columns % 2 == 1])
