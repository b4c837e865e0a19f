"""Measures how many planted faults the checks of texts find, and their false findings.

    python -m benchmarks.lint_texts
    python -m benchmarks.lint_texts --texts FILE

Plants known faults in texts of several kinds, or in the lines of FILE, and prints for each the
share of texts in which it was found:

    near-duplicates   a copy is found if it is in one group with its text; a text in one group with
                      another text is false
    wrong encoding    a finding about a text without a fault is false

Paragraphs, and headings with a few words, come from Python's own reference; sentences are random.
Words with accents or signs are planted in texts before they are decoded wrongly, one for each 20
words. The last lines are the cost of a look at a text.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lint_precision import best_times, print_table, share_in_groups
from recordgen.checks.copies import LEAST_SIMILARITY, group_texts
from recordgen.core.facts.columns import SIGNATURE_BYTES
from recordgen.measures.texts import SeenText

_ACCENTED = (
    "café",
    "naïve",
    "Köln",
    "señor",
    "façade",
    "smörgåsbord",
    "„quote“",
    "it\u2019s",
    "5 €",
)

#: (words, random numbers) → words
Fault = Callable[[list[str], random.Random], list[str]]


def read_paragraphs(least: int, most: int) -> list[str]:
    """Return the paragraphs of Python's reference with ``least`` to ``most`` - 1 words."""
    from pydoc_data.topics import topics

    parts = {part for text in topics.values() for part in text.split("\n\n")}
    return sorted(part for part in parts if least <= len(part.split()) < most)


def make_sentences(count: int, words: int) -> list[str]:
    """Return sentences of random words that are as frequent as in a language (Zipf's law)."""
    draw = random.Random(1)
    letters = "abcdefghijklmnoprstuvw"
    known = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(5000)]
    weights = [1 / rank for rank in range(1, len(known) + 1)]
    return [" ".join(draw.choices(known, weights, k=words)) for _ in range(count)]


def _edited(words: list[str], draw: random.Random, *, share: float) -> list[str]:
    """Replace, drop, add or swap words, at least one, like typing errors and edits."""
    found = list(words)
    for _ in range(max(1, round(share * len(words)))):
        at = draw.randrange(len(found))
        kind = draw.randrange(4)
        if kind == 0:
            found[at] = f"{found[at]}x"
        elif kind == 1 and len(found) > 1:
            del found[at]
        elif kind == 2:
            found.insert(at, draw.choice(words))
        else:
            found[at : at + 2] = reversed(found[at : at + 2])
    return found


def _respelt(words: list[str], draw: random.Random) -> list[str]:
    """Change capitals and punctuation."""
    return [draw.choice((str.upper, str.capitalize, str.strip))(word) + "," for word in words]


def _cut(words: list[str], draw: random.Random, *, share: float) -> list[str]:
    """Cut the end."""
    del draw
    return words[: max(1, round((1 - share) * len(words)))]


def _shuffled(words: list[str], draw: random.Random) -> list[str]:
    return draw.sample(words, len(words))


COPIES: Mapping[str, Fault] = {
    **{f"{percent} % edited": partial(_edited, share=percent / 100) for percent in (1, 5, 10, 20)},
    "capitals, punctuation": _respelt,
    **{f"last {percent} % cut": partial(_cut, share=percent / 100) for percent in (10, 20, 40)},
    "words shuffled": _shuffled,
}


def _decoded(text: str, encoding: str) -> str:
    return text.encode().decode(encoding, "replace")


def _encoded(text: str, encoding: str) -> str:
    return text.encode(encoding, "replace").decode("utf-8", "replace")


GARBLED: Mapping[str, Callable[[str], str]] = {
    "UTF-8 read as Windows-1252": partial(_decoded, encoding="cp1252"),
    "UTF-8 read as Latin-1": partial(_decoded, encoding="latin-1"),
    "UTF-8 read as Mac Roman": partial(_decoded, encoding="mac-roman"),
    "Windows-1252 read as UTF-8": partial(_encoded, encoding="cp1252"),
}


def facts_of(texts: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    return SeenText.columns([SeenText(text.encode(), len(text)) for text in texts])


def share_of_copies(texts: Sequence[str], fault: Fault) -> str:
    draw = random.Random(2)
    copies = [" ".join(fault(text.split(), draw)) for text in texts]
    signatures = np.frombuffer(b"".join(facts_of([*texts, *copies])["signature"]), np.uint8)
    groups = group_texts(signatures.reshape(-1, SIGNATURE_BYTES), LEAST_SIMILARITY)
    return share_in_groups(groups)


def with_accents(text: str, draw: random.Random) -> str:
    words = text.split()
    for at in range(0, len(words), 20):
        words[at] = draw.choice(_ACCENTED)
    return " ".join(words)


def share_of_garbled(texts: Sequence[str], garble: Callable[[str], str]) -> str:
    draw = random.Random(3)
    right = [with_accents(text, draw) for text in texts]
    found = sum(part is not None for part in facts_of(list(map(garble, right)))["garbled"])
    false = sum(part is not None for part in facts_of(right)["garbled"])
    return f"{found / len(texts):.0%}" + (f", {false} false" if false else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=Path, metavar="FILE", help="a text in each line")
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="of each kind")
    args = parser.parse_args()
    if args.texts:
        lines = args.texts.read_text(encoding="utf-8").splitlines()
        kinds = {"lines": [line for line in lines if line.strip()]}
    else:
        kinds = {
            "paragraphs": read_paragraphs(30, 1000),
            "short paragraphs": read_paragraphs(8, 30),
            "sentences of 10 words": make_sentences(args.count, 10),
            "texts of 200 words": make_sentences(args.count, 200),
        }
    kinds = {name: texts[: args.count] for name, texts in kinds.items()}
    print_table("near-duplicates", kinds, COPIES, share_of_copies)
    print_table("wrong encoding", kinds, GARBLED, share_of_garbled)
    for name, texts in kinds.items():
        some = texts[:256]
        [seconds] = best_times(partial(facts_of, some), rounds=5)
        size = sum(len(text.encode()) for text in some) / len(some)
        print(f"{name}: {seconds / len(some) * 1e6:.1f} µs for a text of {size:,.0f} bytes")


if __name__ == "__main__":
    main()
