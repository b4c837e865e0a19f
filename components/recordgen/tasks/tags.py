r"""Tokens of a text, entities in it, and the IOB tags that say the one in terms of the other.

    "Anna flew to New York."      Span(0, 4, "person"), Span(13, 21, "city")
    Anna flew to New York .   →   B-person O O B-city I-city O

Offsets count characters (Unicode code points), from 0; the end is the place behind the last one.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

# Scripts that write no blanks between words, without their marks and digits. The ranges are spelled
# out, not looked up in a Unicode database: Python's and TensorFlow's are of different ages, and
# what is cut in training and in serving must be the same.
_UNSPACED = (
    (0x2E80, 0x2FDF),  # Han: radicals
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3038, 0x303B),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFD),
    (0x3041, 0x3096),  # Hiragana
    (0x309D, 0x309F),
    (0x30A0, 0x30FF),  # Katakana
    (0x31F0, 0x31FF),
    (0xFF66, 0xFF9F),
    (0x1AFF0, 0x1B16F),
    (0x0E01, 0x0E30),  # Thai
    (0x0E32, 0x0E33),
    (0x0E40, 0x0E46),
    (0x0E81, 0x0EB0),  # Lao
    (0x0EB2, 0x0EB3),
    (0x0EBD, 0x0EBD),
    (0x0EC0, 0x0EC6),
    (0x0EDC, 0x0EDF),
    (0x1780, 0x17B3),  # Khmer
    (0x17D7, 0x17D7),
    (0x17DC, 0x17DC),
    (0x1000, 0x102A),  # Myanmar
    (0x103F, 0x103F),
    (0x1050, 0x1055),
    (0x105A, 0x105D),
    (0x1061, 0x1061),
    (0x1065, 0x1066),
    (0x106E, 0x1070),
    (0x1075, 0x1081),
    (0x108E, 0x108E),
    (0x109E, 0x109F),
    (0xA9E0, 0xA9E4),
    (0xA9E6, 0xA9EF),
    (0xA9FA, 0xA9FE),
    (0xAA60, 0xAA7A),
    (0xAA7E, 0xAA7F),
)

#: The characters of these scripts, as they stand between the brackets of a regular expression.
UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in _UNSPACED)

#: The tag of a token that is in no entity.
OUTSIDE = "O"
BEGIN, INSIDE = "B-", "I-"


class Span(NamedTuple):
    """One entity: the characters from ``start`` up to ``end``, and its label."""

    start: int
    end: int
    label: str

    def __str__(self) -> str:
        return f"{self.start} to {self.end} ({self.label})"


class Token(NamedTuple):
    """One token: the characters from ``start`` up to ``end``."""

    start: int
    end: int


class TagError(ValueError):
    """Spans or tags that do not go with their tokens."""


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text.

    A run of letters, digits and underscores is one; so is every other character that is not blank.
    Characters of scripts without blanks between words (Han, Hiragana, Katakana, Thai, Lao, Khmer,
    Myanmar) are tokens of their own. Combining marks belong to the character before them.

    ``"U.S. 5€ 東京"`` → ``U . S . 5 € 東 京``
    """
    return [Token(*match.span()) for match in _token().finditer(text)]


@cache
def _token() -> re.Pattern[str]:
    # Python's \w has no marks, which would cut words of Hindi to pieces.
    marks = re.escape(
        "".join(c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c)[0] == "M")
    )
    letter = rf"[^\W{UNSPACED}]"
    return re.compile(
        rf"{letter}+(?:[{marks}]+{letter}*)*|[{UNSPACED}][{marks}]*|[^\w\s][{marks}]*"
    )


def split_at_blanks(text: str) -> list[Token]:
    """Return the tokens of a text that were put together with single blanks between them."""
    tokens, start = [], 0
    for piece in text.split(" "):
        tokens.append(Token(start, start + len(piece)))
        start += len(piece) + 1
    return tokens


def tags_of(tokens: Sequence[Token], spans: Sequence[Span]) -> list[str]:
    """Return the tag of each token; one that a span touches is in the entity as a whole.

    Raises:
        TagError: a span touches no token, or two of them the same.
    """
    tags = [OUTSIDE] * len(tokens)
    first = 0
    for span in sorted(spans):
        while first < len(tokens) and tokens[first].end <= span.start:
            first += 1
        last = first
        while last < len(tokens) and tokens[last].start < span.end:
            last += 1
        if first == last:
            raise TagError(f"the span {span} holds nothing but blanks; leave it out")
        if tags[first] != OUTSIDE:
            raise TagError(
                f"the span {span} begins in a word in which another one ends; an entity is made "
                f"of whole words and signs"
            )
        tags[first:last] = [BEGIN + span.label] + [INSIDE + span.label] * (last - first - 1)
    return tags


def spans_of(tokens: Sequence[Token], tags: Sequence[str]) -> tuple[list[Span], list[Span]]:
    """Return the entities that tags say, and those of them that begin with ``I-``.

    An entity begins so where the tag before belongs to none, or to one with another label.

    Raises:
        TagError: there is not one tag for each token, or one is of another scheme.
    """
    if len(tokens) != len(tags):
        raise TagError(
            f"{len(tokens)} tokens and {len(tags)} tags; each token needs one tag, with blanks "
            f"between them"
        )
    spans: list[Span] = []
    begun: list[int] = []
    before = OUTSIDE
    for (start, end), tag in zip(tokens, tags, strict=True):
        head, label = tag[:2], tag[2:]
        if tag != OUTSIDE and (head not in (BEGIN, INSIDE) or not label):
            raise TagError(
                f"a tag must be {OUTSIDE}, {BEGIN}LABEL or {INSIDE}LABEL (got {tag!r:.40}); write "
                f"other schemes, such as BIOES, in IOB"
            )
        if head == INSIDE and before[2:] == label:
            spans[-1] = spans[-1]._replace(end=end)
        elif tag != OUTSIDE:
            if head == INSIDE:
                begun.append(len(spans))
            spans.append(Span(start, end, label))
        before = tag
    return spans, [spans[number] for number in begun]


def cut_spans(tokens: Sequence[Token], spans: Sequence[Span]) -> list[Span]:
    """Return the spans that begin or end within a token."""
    inner = {place for start, end in tokens for place in range(start + 1, end)}
    return [span for span in spans if span.start in inner or span.end in inner]


def tag_names(labels: Sequence[str]) -> list[str]:
    """Return all tags in the order of their numbers.

    ``["city", "date"]`` → ``O``, ``B-city``, ``I-city``, ``B-date``, ``I-date``
    """
    return [OUTSIDE, *(head + label for label in labels for head in (BEGIN, INSIDE))]


def tag_number(tag: str, label_number: int) -> int:
    """Return the place of a tag among :func:`tag_names`, given that of its label."""
    return 0 if tag == OUTSIDE else 2 * label_number + (1 if tag.startswith(BEGIN) else 2)
