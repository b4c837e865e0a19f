r"""The facts that a worker collects about texts, many at a time.

SeenText(b"The caf\xc3\x83\xc2\xa9 is good", 16, ("good", "bad"))
  ─columns─▶  characters [16], garbled ["The cafÃ© is good"], named_labels [["good"]], signature
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.measures.minhash import Words, chunks, signatures, words_of

# Labels with more words are not searched.
_MOST_WORDS = 4

# Bits of a hash that quickly exclude words that cannot begin a label.
_SIEVE_BITS = 16

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
    labels: tuple[str, ...]  # all labels of the dataset; the same tuple for all its texts

    @staticmethod
    def columns(seen: Sequence[SeenText]) -> Mapping[str, Sequence[Any]]:
        """Return the measures of texts, as columns of facts.

        A ``signature`` (64 bytes, see minhash) is None without words, ``garbled`` (a part that was
        decoded wrongly) and ``named_labels`` (the labels in the text, in any order) without any.
        """
        signed: list[bytes | None] = [None] * len(seen)
        named: list[list[str] | None] = [None] * len(seen)
        labels = seen[0].labels if seen else ()
        for start, chunk in chunks([text.data for text in seen]):
            words = words_of(chunk)
            found, rows = signatures(words)
            for row, signature in zip(rows.tolist(), found, strict=True):
                signed[start + row] = signature.tobytes()
            for at, label in _labels_in(words, labels):
                named[start + at] = [*(named[start + at] or ()), label]
        return {
            "signature": signed,
            "characters": [text.characters for text in seen],
            "garbled": [_garbled(each.data) for each in seen],
            "named_labels": named,
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


class _LabelIndex(NamedTuple):
    """Labels with the same number of words."""

    sieve: npt.NDArray[np.bool_]  # bool [65536]: whether a label's hash has these lowest bits
    by_hash: Mapping[int, str]  # the labels by the hash of their words


def _labels_in(words: Words, labels: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield the index of a text and a label that it contains word by word, for all such pairs."""
    for length, index in _by_length(labels).items() if labels else ():
        if length > len(words.hashes):
            continue
        hashes, is_whole = words.runs(length)
        low = hashes.astype(np.uint16)
        places = np.flatnonzero(index.sieve[low] & is_whole)
        texts, by_hash = words.texts[places].tolist(), index.by_hash
        found = {*zip(texts, map(by_hash.get, hashes[places].tolist()), strict=True)}
        yield from sorted((text, label) for text, label in found if label is not None)


@lru_cache(maxsize=4)
def _by_length(labels: tuple[str, ...]) -> Mapping[int, _LabelIndex]:
    by_length: dict[int, dict[int, str]] = {}
    for label in labels:
        words = words_of([label.encode()[:1000]])
        length = len(words.hashes)
        if 0 < length <= _MOST_WORDS:
            [whole] = words.runs(length)[0].tolist()
            by_length.setdefault(length, {}).setdefault(whole, label)
    found = {}
    for length, by_hash in sorted(by_length.items()):
        sieve = np.zeros(1 << _SIEVE_BITS, np.bool_)
        sieve[np.array(list(by_hash), np.uint64).astype(np.uint16)] = True
        found[length] = _LabelIndex(sieve, by_hash)
    return found
