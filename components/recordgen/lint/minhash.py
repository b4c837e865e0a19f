"""MinHash of texts: how much two of them share, estimated from 64 bytes of each.

    "Good, and cheap."   ─words─▶   good·and, and·cheap, cheap·   ─signatures─▶   uint8 [64]

A text is the set of its pairs of neighbouring words; the last word counts once more by itself. The
similarity of two texts is how many pairs they share, as a part of all that either has (Jaccard).
Each of 64 hash functions orders all pairs; the first pair of a text in this order is also that of
another text with a probability that equals their similarity (Broder, "On the resemblance and
containment of documents", 1997). So the share of equal bytes in two signatures estimates it, with a
standard error of at most 0.06.

Words are runs of letters and digits; small and capital Latin letters without accents are the same.
Each character that UTF-8 writes in three or four bytes, such as a Chinese one, is a word.

All numbers are whole, so signatures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

#: Bytes of a signature.
SIGNATURE_BYTES = 64

#: Of a longer text, so many bytes are compared.
MOST_BYTES = 60_000

# Texts are hashed together, about so many bytes at a time: arrays stay in the processor's cache.
_CHUNK_BYTES = 1 << 16

_BITS = 64
_BASE, _NEXT = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03

Signatures: TypeAlias = "npt.NDArray[np.uint8]"
Hashes: TypeAlias = "npt.NDArray[np.uint64]"
Counts: TypeAlias = "npt.NDArray[np.intp]"


class Words(NamedTuple):
    """The words of several texts, text by text.

    Attributes:
        hashes: uint64: of each word.
        texts: the text of each.
        counts: how many words each text has.
    """

    hashes: Hashes
    texts: Counts
    counts: Counts

    def runs(self, length: int) -> tuple[Hashes, npt.NDArray[np.bool_]]:
        """Return for each word the hash of it and those behind it, and whether one text has all.

        Args:
            length: words together, at least 1; at most as many as there are.
        """
        count = len(self.hashes) - length + 1
        hashes = self.hashes[:count]
        for step in range(1, length):
            hashes = mixed(hashes * np.uint64(_NEXT) + self.hashes[step : step + count])
        return hashes, self.texts[:count] == self.texts[length - 1 :]


def chunks(texts: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield texts that are hashed together, and the place of the first; long ones are cut."""
    chunk: list[bytes] = []
    size = start = 0
    for at, text in enumerate(texts):
        if len(text) > MOST_BYTES:  # not within a character
            text = text[:MOST_BYTES].decode("utf-8", "ignore").encode()
        if size + len(text) + 2 > _CHUNK_BYTES:
            yield start, chunk
            chunk, size, start = [], 0, at
        chunk.append(text)
        size += len(text) + 1
    if chunk:
        yield start, chunk


def words_of(texts: Sequence[bytes]) -> Words:
    """Return the words of texts in UTF-8, at most one chunk (:func:`chunks`)."""
    data = np.frombuffer(b" %b " % b" ".join(texts), np.uint8)
    kinds, begins = _kinds(data)
    # A word begins or ends where the kind of byte changes, or where another character begins.
    edges = np.flatnonzero((kinds[1:] != kinds[:-1]) | begins[1:]) + 1
    is_start = kinds[edges] > 0
    starts, stops = edges[is_start], np.append(edges[1:], len(data))[is_start]
    # The polynomial of a word: that of all up to its end, less that of all up to its start.
    powers, inverses = _powers()
    sums = np.cumsum(_LOWER[data] * powers[: len(data)], dtype=np.uint64)
    hashes = mixed((sums[stops - 1] - sums[starts - 1]) * inverses[starts])
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    last = np.searchsorted(starts, np.cumsum(lengths + 1))
    counts = np.diff(last, prepend=0)
    return Words(hashes, np.repeat(np.arange(len(texts)), counts), counts)


def signatures(words: Words) -> tuple[Signatures, Counts]:
    """Return the signatures of those texts that have words: uint8 [n, 64], and their numbers."""
    rows = np.flatnonzero(words.counts)
    if not len(rows):
        return np.empty((0, SIGNATURE_BYTES), np.uint8), rows
    following = np.append(words.hashes[1:], np.uint64(0))
    starts = np.append(0, np.cumsum(words.counts[rows])[:-1])
    following[starts[1:] - 1] = 0
    following[-1] = 0
    pairs = mixed(words.hashes * np.uint64(_NEXT) + following)
    orders = np.multiply.outer(_functions(), (pairs >> np.uint64(32)).astype(np.uint32))
    least = np.minimum.reduceat(orders, starts, axis=1)
    # The lowest bits: the highest ones are zero of whatever is the least of many.
    return np.ascontiguousarray(least.astype(np.uint8).T), rows


def similarity(signatures: Signatures, others: Signatures) -> npt.NDArray[np.float64]:
    """Estimate the similarity of pairs of texts: float64 [n], 0 to 1.

    Args:
        signatures: uint8 [n, 64].
        others: uint8 [n, 64]: what they are compared with.
    """
    return (signatures == others).mean(axis=1)


def bands(signatures: Signatures) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield 16 times a part of each signature: texts with an equal part may be alike.

    Of two texts with a similarity of 0.7, a part is equal with a probability of 0.99; of two with
    0.5, of 0.64; of two with 0.2, of 0.03.
    """
    parts = np.ascontiguousarray(signatures).view(np.uint32)
    for band in range(parts.shape[1]):
        yield parts[:, band]


def _kinds(data: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return of each byte whether it is of a word (1, 2) or not (0), and where a sign begins."""
    kinds = _KINDS[data]
    begins = np.zeros(len(data), np.bool_)
    for size, (first, last) in _SIZES.items() if (data > 0x7F).any() else ():
        leads = np.flatnonzero((data >= first) & (data <= last))
        for step in range(1, size):
            kinds[leads + step] = kinds[leads]
        begins[leads] = True
    return kinds, begins


def mixed(hashes: Hashes) -> Hashes:
    """Spread each hash over 64 bits (Stafford's variant 13, as in SplitMix64)."""
    hashes = (hashes ^ hashes >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ hashes >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return hashes ^ hashes >> np.uint64(31)


@lru_cache(maxsize=1)
def _powers() -> tuple[Hashes, Hashes]:
    """Return the powers of a number, and their inverses modulo 2⁶⁴."""
    found = []
    for base in (_BASE, pow(_BASE, -1, 1 << _BITS)):
        factors = np.full(_CHUNK_BYTES + 2, base, np.uint64)
        factors[0] = 1
        found.append(np.multiply.accumulate(factors))
    return found[0], found[1]


@lru_cache(maxsize=1)
def _functions() -> npt.NDArray[np.uint32]:
    """Return odd numbers: a product with one of them orders all 32-bit numbers anew."""
    seeds = np.arange(1, SIGNATURE_BYTES + 1, dtype=np.uint64) * np.uint64(_BASE)
    return (mixed(seeds) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


# Kinds of bytes: between words, within a word, and of a sign that is a word by itself.
_BETWEEN, _WITHIN, _SIGN = 0, 1, 2

# First bytes of characters in UTF-8 by their size, where the bytes behind are not within a word.
_SIZES = {2: (0xC2, 0xC2), 3: (0xE0, 0xEF), 4: (0xF0, 0xF4)}


def _kinds_of_bytes() -> npt.NDArray[np.uint8]:
    kinds = [_WITHIN if chr(byte).isalnum() else _BETWEEN for byte in range(0x80)]
    kinds += [_WITHIN] * 0x60 + [_SIGN] * 0x20
    # U+0080 to U+00BF and U+2000 to U+2FFF: punctuation and symbols.
    kinds[0xC2] = kinds[0xE2] = _BETWEEN
    return np.array(kinds, np.uint8)


_KINDS = _kinds_of_bytes()
_LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)
