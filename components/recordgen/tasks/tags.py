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
    Combining marks belong to the character before them.

    ``"U.S. 5€"`` → ``U . S . 5 €``
    """
    return [Token(*match.span()) for match in _token().finditer(text)]


@cache
def _token() -> re.Pattern[str]:
    # Python's \w has no marks, which would cut words of Hindi or Thai to pieces.
    marks = re.escape(
        "".join(c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c)[0] == "M")
    )
    return re.compile(rf"\w[\w{marks}]*|[^\w\s][{marks}]*")


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


def spans_of(tokens: Sequence[Token], tags: Sequence[str]) -> tuple[list[Span], int]:
    """Return the entities that tags say, and how many of these begin with ``I-``.

    Such a one begins where the tag before is of no entity, or of one with another label.

    Raises:
        TagError: there is not one tag for each token, or one is of another scheme.
    """
    if len(tokens) != len(tags):
        raise TagError(
            f"{len(tokens)} tokens and {len(tags)} tags; each token needs one tag, with blanks "
            f"between them"
        )
    spans: list[Span] = []
    begun, before = 0, OUTSIDE
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
            begun += head == INSIDE
            spans.append(Span(start, end, label))
        before = tag
    return spans, begun


def cut_tokens(tokens: Sequence[Token], spans: Sequence[Span]) -> int:
    """Return how many spans begin or end within a token."""
    inner = {place for start, end in tokens for place in range(start + 1, end)}
    return sum(span.start in inner or span.end in inner for span in spans)


def tag_names(labels: Sequence[str]) -> list[str]:
    """Return all tags in the order of their numbers.

    ``["city", "date"]`` → ``O``, ``B-city``, ``I-city``, ``B-date``, ``I-date``
    """
    return [OUTSIDE, *(head + label for label in labels for head in (BEGIN, INSIDE))]


def tag_number(tag: str, label_number: int) -> int:
    """Return the place of a tag among :func:`tag_names`, given that of its label."""
    return 0 if tag == OUTSIDE else 2 * label_number + (1 if tag.startswith(BEGIN) else 2)
