r"""Tokens of a text, entities in it, and the IOB tags that mark entities token by token.

    "Anna flew to New York."      Span(0, 4, "person"), Span(13, 21, "city")
    Anna flew to New York .   →   B-person O O B-city I-city O

Offsets count characters (Unicode code points) from 0; the end is exclusive.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from recordgen.messages import UNSPACED

#: The tag of a token that is in no entity.
OUTSIDE = "O"
BEGIN, INSIDE = "B-", "I-"

# Other schemes have tags for the only (S, U), a middle (M) and the last token (E, L) of an entity.
_HEADS = {
    **dict.fromkeys((BEGIN, "S-", "U-"), BEGIN),
    **dict.fromkeys((INSIDE, "M-", "E-", "L-"), INSIDE),
}
_LAST = ("S-", "U-", "E-", "L-")

# The planes of Unicode with combining marks; the others have ideographs, or nothing.
_MARKED_PLANES = (0x0, 0x1, 0xE)


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
    """Spans or tags that do not fit their tokens."""


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text.

    A run of letters, digits and underscores is one token; so is every other character that is not
    blank. Characters of scripts without blanks between words (Han, Hiragana, Katakana, Thai, Lao,
    Khmer, Myanmar) are tokens of their own. Combining marks belong to the character before them.

    ``"U.S. 5€ 東京"`` → ``U . S . 5 € 東 京``
    """
    token = _ASCII_TOKEN if text.isascii() else _token()
    return [Token(*match.span()) for match in token.finditer(text)]


# What :func:`_token` matches in a text without marks and scripts of their own; it is much faster.
_ASCII_TOKEN = re.compile(r"\w+|[^\w\s]")


@cache
def _token() -> re.Pattern[str]:
    # Python's \w matches no marks, which would split words of Hindi.
    codes = chain.from_iterable(range(plane << 16, (plane + 1) << 16) for plane in _MARKED_PLANES)
    marks = re.escape("".join(c for c in map(chr, codes) if unicodedata.category(c)[0] == "M"))
    letter = rf"[^\W{UNSPACED}]"
    return re.compile(
        rf"{letter}+(?:[{marks}]+{letter}*)*|[{UNSPACED}][{marks}]*|[^\w\s][{marks}]*"
    )


def split_at_blanks(text: str) -> list[Token]:
    """Return the tokens of a text that single blanks separate."""
    tokens, start = [], 0
    for piece in text.split(" "):
        tokens.append(Token(start, start + len(piece)))
        start += len(piece) + 1
    return tokens


def tags_of(tokens: Sequence[Token], spans: Sequence[Span]) -> list[str]:
    """Return the tag of each token; a token that a span touches belongs to the entity.

    Raises: TagError: a span touches no token, or two spans touch the same token.
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
            raise TagError(f"the span {span} contains only blanks; remove it")
        if tags[first] != OUTSIDE:
            raise TagError(
                f"the span {span} begins in a word in which another span ends; an entity consists "
                f"of whole words and signs"
            )
        tags[first:last] = [BEGIN + span.label] + [INSIDE + span.label] * (last - first - 1)
    return tags


def is_tag(text: str) -> bool:
    """Return whether a text is a tag of IOB, BIOES, BILOU or BMES."""
    return text == OUTSIDE or (text[:2] in _HEADS and len(text) > 2)


def spans_of(tokens: Sequence[Token], tags: Sequence[str]) -> tuple[list[Span], list[Span]]:
    """Return all tagged entities, and the entities that begin with ``I-``.

    An entity begins with ``I-`` if the tag before it is ``O``, has another label, or ends an
    entity. The tags are those of IOB, BIOES, BILOU or BMES.

    Raises: TagError: there is not one tag for each token, or a tag is of another scheme.
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
        if not is_tag(tag):
            raise TagError(
                f"a tag must be {OUTSIDE}, {BEGIN}LABEL or {INSIDE}LABEL, or one of BIOES, BILOU "
                f"or BMES (got {tag!r:.40})"
            )
        head, label = _HEADS.get(tag[:2], OUTSIDE), tag[2:]
        if head == INSIDE and before[2:] == label:
            spans[-1] = spans[-1]._replace(end=end)
        elif tag != OUTSIDE:
            if head == INSIDE:
                begun.append(len(spans))
            spans.append(Span(start, end, label))
        before = OUTSIDE if tag.startswith(_LAST) else tag
    return spans, [spans[number] for number in begun]


# Two characters between which no token continues: a blank, an ASCII sign, or the text's end. Marks
# may follow a sign.
_SIGN = r"[!-/:-@\[-^`{-~]"
_EDGE = re.compile(rf".?|\s.|.\s|.{_SIGN}|{_SIGN}\w", re.DOTALL)


def are_whole(text: str, spans: Sequence[Span]) -> bool:
    """Return whether spans in a text clearly begin and end between tokens, and contain some."""
    return all(
        _EDGE.fullmatch(text[max(start - 1, 0) : start + 1]) is not None
        and _EDGE.fullmatch(text[end - 1 : end + 1]) is not None
        and not text[start:end].isspace()
        for start, end, _ in spans
    )


def cut_spans(tokens: Sequence[Token], spans: Sequence[Span]) -> list[Span]:
    """Return the spans that begin or end within a token."""
    inner = {place for start, end in tokens for place in range(start + 1, end)}
    return [span for span in spans if span.start in inner or span.end in inner]


def cut_spans_in(text: str, spans: Sequence[Span]) -> Sequence[Span]:
    """Return the spans that begin or end within a word; ``spans`` are in order. Raises: TagError.

    Most texts need no tokens for that: they cost four times as much as the rest of the row.
    """
    _check_places(text, spans)
    if are_whole(text, spans):
        return ()
    tokens = tokenize(text)
    tags_of(tokens, spans)
    return cut_spans(tokens, spans)


def checked_tags(text: str, tokens: Sequence[Token], spans: Sequence[Span]) -> list[str]:
    """Return the tags of tokens; ``spans`` are in order. Raises: TagError."""
    _check_places(text, spans)
    return tags_of(tokens, spans)


def _check_places(text: str, spans: Sequence[Span]) -> None:
    """Check that spans in order end in the text and do not overlap. Raises: TagError."""
    for span in spans:
        if span.end > len(text):
            raise TagError(
                f"the span {span} ends after the text, which has {len(text)} characters; offsets "
                f"count characters, unless --columns offsets=… names another unit"
            )
    check_apart(spans)


def check_apart(spans: Sequence[Span]) -> None:
    """Check that spans in order do not overlap. Raises: TagError."""
    for one, other in pairwise(spans):
        if other.start < one.end:
            raise TagError(f"the spans {one} and {other} overlap; a character is in one entity")


def tag_names(labels: Sequence[str]) -> list[str]:
    """Return all tags in the order of their numbers.

    ``["city", "date"]`` → ``O``, ``B-city``, ``I-city``, ``B-date``, ``I-date``
    """
    return [OUTSIDE, *(head + label for label in labels for head in (BEGIN, INSIDE))]


def tag_number(tag: str, label_number: int) -> int:
    """Return the index of a tag in :func:`tag_names`, given the number of its label."""
    return 0 if tag == OUTSIDE else 2 * label_number + (1 if tag.startswith(BEGIN) else 2)


CODEPOINTS, UTF16, BYTES = "codepoints", "utf16", "bytes"

#: The units in words.
NAMES = {CODEPOINTS: "characters", UTF16: "UTF-16 code units", BYTES: "bytes"}

# The encoding in which each other unit is a number of bytes.
_ENCODINGS = {UTF16: ("utf-16-le", 2), BYTES: ("utf-8", 1)}


def in_codepoints(text: str, spans: Sequence[Span], unit: str) -> list[Span]:
    """Return spans whose offsets count ``unit`` as spans that count code points.

    Raises: TagError: an offset is within a character, or after the text.
    """
    place_of = places(text, unit)
    if place_of is None:
        return list(spans)
    total = next(reversed(place_of))
    for span in spans:
        if span.end > total:
            raise TagError(f"the span {span} ends after the text, which has {total} {NAMES[unit]}")
        if span.start not in place_of or span.end not in place_of:
            raise TagError(
                f"the span {span} begins or ends within a character, which has several "
                f"{NAMES[unit]}"
            )
    return [Span(place_of[span.start], place_of[span.end], span.label) for span in spans]


def places(text: str, unit: str) -> dict[int, int] | None:
    """Return the code point at each offset in ``unit``; None if all offsets are code points."""
    if unit == CODEPOINTS or text.isascii() or (unit == UTF16 and max(text) <= "\uffff"):
        return None
    encoding, size = _ENCODINGS[unit]
    widths = (len(character.encode(encoding, "surrogatepass")) // size for character in text)
    return {start: place for place, start in enumerate(accumulate(widths, initial=0))}
