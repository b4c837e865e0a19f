"""The units in which offsets count: characters, UTF-16 code units or bytes of UTF-8.

    "🎉 Anna flew", Span(2, 6, "person") in code points, (3, 7) in utf16, (5, 9) in bytes

Python counts code points; JavaScript and Java count UTF-16 code units, of which an emoji has two;
C, Go and Rust count bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from recordgen.tasks.text_entities.tags import Span, TagError

CODEPOINTS, UTF16, BYTES = "codepoints", "utf16", "bytes"

#: The units in words.
NAMES = {CODEPOINTS: "characters", UTF16: "UTF-16 code units", BYTES: "bytes"}

# The first characters that take two UTF-16 code units, and two, three and four bytes.
_BEYOND_BMP = 0x10000
_MORE_BYTES = (0x80, 0x800, 0x10000)


def in_codepoints(text: str, spans: Sequence[Span], unit: str) -> list[Span]:
    """Return spans whose offsets count ``unit`` as spans that count code points.

    Raises:
        TagError: an offset is within a character, or after the text.
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
    if unit == CODEPOINTS or text.isascii() or (unit == UTF16 and ord(max(text)) < _BEYOND_BMP):
        return None
    widths = (_width(ord(character), unit) for character in text)
    return {start: place for place, start in enumerate(accumulate(widths, initial=0))}


def _width(character: int, unit: str) -> int:
    if unit == UTF16:
        return 1 + (character >= _BEYOND_BMP)
    return 1 + sum(character >= first for first in _MORE_BYTES)
