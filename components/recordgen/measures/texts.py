r"""The facts that a worker collects about texts, many at a time, and the similarity of two texts.

SeenText(b"The caf\xc3\x83\xc2\xa9 is good", 16)
  ─columns─▶  characters [16], garbled ["The cafÃ© is good"], signature

MinHash estimates the similarity of two texts from 64 bytes of each, their signatures:

    "Good, and cheap."   ─words─▶   good·and, and·cheap, cheap·   ─signatures─▶   uint8 [64]

A text is the set of its pairs of neighbouring words; the last word counts once more by itself. The
similarity of two texts is the number of pairs that they share, divided by the number of pairs in
either (Jaccard). Each of 64 hash functions orders all pairs; two texts have the same first pair in
this order with a probability that equals their similarity (Broder, "On the resemblance and
containment of documents", 1997). So the share of equal bytes in two signatures estimates the
similarity, with a standard error of at most 0.06.

Words are runs of letters and digits; small and capital Latin letters without accents are the same.
Each character that UTF-8 writes in three or four bytes, such as a Chinese one, is a word. All
numbers are whole, so signatures are the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen.core.facts.columns import SIGNATURE_BYTES
from recordgen.core.rows.columns import mixed

#: Parts of a signature that are compared as a whole.
BANDS = SIGNATURE_BYTES // 4

#: Bytes of a longer text that are compared.
MOST_BYTES = 60_000

# Bytes of texts that are hashed together: arrays stay in the processor's cache.
_CHUNK_BYTES = 1 << 16

_BITS = 64
_BASE, _NEXT = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03

Signatures: TypeAlias = "npt.NDArray[np.uint8]"
Hashes: TypeAlias = "npt.NDArray[np.uint64]"
Counts: TypeAlias = "npt.NDArray[np.intp]"


class Words(NamedTuple):
    """The words of several texts, text by text."""

    hashes: Hashes  # uint64: the hash of each word
    texts: Counts  # the index of each word's text
    counts: Counts  # the number of words in each text


def chunks(texts: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield groups of texts to hash together, and the index of the first; cut long texts."""
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
    # A word begins or ends where the kind of byte changes, or where a sign begins.
    edges = np.flatnonzero((kinds[1:] != kinds[:-1]) | begins[1:]) + 1
    is_start = kinds[edges] > 0
    starts, stops = edges[is_start], np.append(edges[1:], len(data))[is_start]
    # A word's polynomial is the difference of the polynomials up to its end and up to its start.
    powers, inverses = _powers()
    sums = np.cumsum(_LOWER[data] * powers[: len(data)], dtype=np.uint64)
    hashes = mixed((sums[stops - 1] - sums[starts - 1]) * inverses[starts])
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    last = np.searchsorted(starts, np.cumsum(lengths + 1))
    counts = np.diff(last, prepend=0)
    return Words(hashes, np.repeat(np.arange(len(texts)), counts), counts)


def signatures(words: Words) -> tuple[Signatures, Counts]:
    """Return the signatures of the texts with words, uint8 [n, 64], and the texts' indices."""
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
    # The lowest bits, since the highest bits of a minimum of many numbers are zero.
    return np.ascontiguousarray(least.astype(np.uint8).T), rows


def similarity(signatures: Signatures, others: Signatures) -> npt.NDArray[np.float64]:
    """Estimate the similarity of pairs of texts, uint8 [n, 64] each: float64 [n], 0 to 1."""
    return (signatures == others).mean(axis=1)


def bands(
    signatures: Signatures, wanted: Iterable[int] = range(BANDS)
) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the 16 parts of all signatures, one by one: texts with an equal part may be alike.

    Two texts with a similarity of 0.7 have an equal part with a probability of 0.99; with a
    similarity of 0.5, 0.64; with a similarity of 0.2, 0.03.
    """
    parts = np.ascontiguousarray(signatures).view(np.uint32)
    for band in wanted:
        yield parts[:, band]


def _kinds(data: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the kind of each byte, in a word (1, 2) or not (0), and where signs begin."""
    kinds = _KINDS[data]
    begins = np.zeros(len(data), np.bool_)
    for size, (first, last) in _SIZES.items() if (data > 0x7F).any() else ():
        leads = np.flatnonzero((data >= first) & (data <= last))
        for step in range(1, size):
            kinds[leads + step] = kinds[leads]
        begins[leads] = True
    return kinds, begins


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
    """Return odd numbers: multiplication by each of them permutes the 32-bit numbers."""
    seeds = np.arange(1, SIGNATURE_BYTES + 1, dtype=np.uint64) * np.uint64(_BASE)
    return (mixed(seeds) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


# Kinds of bytes: between words, within a word, and in a sign that is a word by itself.
_BETWEEN, _WITHIN, _SIGN = 0, 1, 2

# First bytes of UTF-8 characters, by size, whose other bytes take the kind of the first.
_SIZES = {2: (0xC2, 0xC2), 3: (0xE0, 0xEF), 4: (0xF0, 0xF4)}


def _kinds_of_bytes() -> npt.NDArray[np.uint8]:
    kinds = [_WITHIN if chr(byte).isalnum() else _BETWEEN for byte in range(0x80)]
    kinds += [_WITHIN] * 0x60 + [_SIGN] * 0x20
    # U+0080 to U+00BF and U+2000 to U+2FFF: punctuation and symbols.
    kinds[0xC2] = kinds[0xE2] = _BETWEEN
    return np.array(kinds, np.uint8)


_KINDS = _kinds_of_bytes()
_LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)


#: The character that decoders write for invalid bytes.
REPLACEMENT = "\ufffd"

# Matches every character of two or three bytes whose UTF-8 was read as Latin-1 or Windows-1252, and
# encoded once more. The first byte is a literal, which makes the search fast.
_SUSPECT = re.compile(rb"\xc3[\x82-\xb4][\xc2\xc5\xc6\xcb\xe2]")

# Suspects that are examined per text, and bytes on each side of a suspect.
_MOST_SUSPECTS, _AROUND = 16, 12


class SeenText(NamedTuple):
    """One text that becomes an example."""

    data: bytes  # the text in UTF-8
    characters: int  # its number of characters

    @staticmethod
    def columns(seen: Sequence[SeenText]) -> Mapping[str, Sequence[Any]]:
        """Return the measures of texts, as columns of facts.

        A ``signature`` (64 bytes, see above) is None without words, ``garbled`` (a part that was
        decoded wrongly) without any.
        """
        signed: list[bytes | None] = [None] * len(seen)
        for start, chunk in chunks([text.data for text in seen]):
            found, rows = signatures(words_of(chunk))
            for row, signature in zip(rows.tolist(), found, strict=True):
                signed[start + row] = signature.tobytes()
        return {
            "signature": signed,
            "characters": [text.characters for text in seen],
            "garbled": [_garbled(each.data) for each in seen],
        }


def _garbled(data: bytes) -> str | None:
    """Return a part of a text that was decoded with the wrong encoding, or None."""
    if data.isascii():
        return None
    at = data.find(REPLACEMENT.encode())
    if at >= 0:
        return _around(data, at)
    for suspect in islice(_SUSPECT.finditer(data), _MOST_SUSPECTS):
        from ftfy.badness import is_bad  # its tables are loaded only if there is a suspect

        part = _around(data, suspect.start())
        if is_bad(part):
            return part
    return None


def _around(data: bytes, at: int) -> str:
    return data[max(0, at - _AROUND) : at + _AROUND].decode("utf-8", "ignore")
