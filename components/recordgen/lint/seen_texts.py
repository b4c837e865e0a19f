r"""What a worker notes of the texts that it sees, many at a time.

SeenText(b"The caf\xc3\x83\xc2\xa9 is good", 16, ("good", "bad"))
  ─measured─▶  TextFacts(…, characters=[16], garbled=["The cafÃ© is good"], named=[["good"]])
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.lint.minhash import (
    SIGNATURE_BYTES,
    Signatures,
    Words,
    chunks,
    signatures,
    words_of,
)

# Labels of more words are not looked for.
_MOST_WORDS = 4

# Bits of a hash by which words are sorted out that cannot begin a label.
_SIEVE_BITS = 16

#: What decoders write for bytes that are no character.
REPLACEMENT = "\ufffd"

# What every character of two or three bytes looks like where its UTF-8 was read as Latin-1 or
# Windows-1252, and encoded once more. The first byte is a literal, for which a search is fast.
_SUSPECT = re.compile(rb"\xc3[\x82-\xb4][\xc2\xc5\xc6\xcb\xe2]")

# Of each text, so many suspects are looked at, with so many bytes on each side.
_MOST_SUSPECTS, _AROUND = 16, 12


class SeenText(NamedTuple):
    """One text that becomes an example.

    Attributes:
        data: the text in UTF-8.
        characters: how many it has.
        labels: those that any example may have; the same tuple for all texts of a dataset.
    """

    data: bytes
    characters: int
    labels: tuple[str, ...]


class TextFacts(NamedTuple):
    """What was noted of several texts.

    Attributes:
        signatures: uint8 [n, 64], see :mod:`recordgen.lint.minhash`; zeros: it has no words.
        has_words: bool [n].
        characters: int32 [n].
        garbled: of each, a part that was decoded wrongly; None: there seems to be none.
        named: of each, the labels that stand in it, in any order; None: no label does.
    """

    signatures: Signatures
    has_words: npt.NDArray[np.bool_]
    characters: npt.NDArray[np.int32]
    garbled: Sequence[str | None]
    named: Sequence[Sequence[str] | None]


def measured(texts: Sequence[SeenText]) -> TextFacts:
    """Note what the checks need of texts; many at once cost less than one by one."""
    found = np.zeros((len(texts), SIGNATURE_BYTES), np.uint8)
    has_words = np.zeros(len(texts), np.bool_)
    named: list[list[str] | None] = [None] * len(texts)
    labels = texts[0].labels if texts else ()
    for start, chunk in chunks([text.data for text in texts]):
        words = words_of(chunk)
        signed, rows = signatures(words)
        found[start + rows] = signed
        has_words[start + rows] = True
        for at, label in _labels_in(words, labels):
            named[start + at] = [*(named[start + at] or ()), label]
    characters = np.fromiter((text.characters for text in texts), np.int32, len(texts))
    return TextFacts(found, has_words, characters, [_garbled(each.data) for each in texts], named)


def _garbled(data: bytes) -> str | None:
    """Return a part of a text that was decoded with the wrong encoding; None: there is none."""
    if data.isascii():
        return None
    at = data.find(REPLACEMENT.encode())
    if at >= 0:
        return _around(data, at)
    for suspect in islice(_SUSPECT.finditer(data), _MOST_SUSPECTS):
        from ftfy.badness import is_bad  # who has no suspect needs none of its tables

        part = _around(data, suspect.start())
        if is_bad(part):
            return part
    return None


def _around(data: bytes, at: int) -> str:
    return data[max(0, at - _AROUND) : at + _AROUND].decode("utf-8", "ignore")


class _Sought(NamedTuple):
    """Labels of a number of words, by the hash of these.

    Attributes:
        sieve: bool [65536]: whether a label's hash has these lowest bits.
        by_hash: the labels.
    """

    sieve: npt.NDArray[np.bool_]
    by_hash: Mapping[int, str]


def _labels_in(words: Words, labels: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield each label that stands in a text, word by word, beside the number of the text."""
    for length, sought in _by_length(labels).items() if labels else ():
        if length > len(words.hashes):
            continue
        hashes, is_whole = words.runs(length)
        low = hashes.astype(np.uint16)
        places = np.flatnonzero(sought.sieve[low] & is_whole)
        texts, by_hash = words.texts[places].tolist(), sought.by_hash
        found = {*zip(texts, map(by_hash.get, hashes[places].tolist()), strict=True)}
        yield from sorted((text, label) for text, label in found if label is not None)


@lru_cache(maxsize=4)
def _by_length(labels: tuple[str, ...]) -> Mapping[int, _Sought]:
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
        found[length] = _Sought(sieve, by_hash)
    return found
