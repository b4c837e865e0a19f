"""Whether a mirrored image keeps its label, as far as the label's text shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_INSIDE = re.compile(r"(?<=[a-z])(?=[A-Z])")  # of TurnLeft
_WORD = re.compile(r"[^\W_](?:[^\W_]|')*")

# More digits are an identifier.
_DIGITS = 4

# A mirrored digit or letter is another one, or none; a mirrored side is the other side.
_CHANGED = (
    {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
    | {"digit", "digits", "number", "numbers", "letter", "letters", "character", "characters"}
    | {"text", "word", "words", "alphabet", "clock", "clockwise", "counterclockwise"}
    | {"anticlockwise", "cw", "ccw", "left", "right", "leftward", "rightward", "lefthand"}
    | {"righthand", "east", "west", "eastbound", "westbound", "port", "starboard"}
)


def keep_when_mirrored(labels: Iterable[str]) -> bool:
    """Return whether no label looks like a digit, a letter, a text or a side.

    ``daisy``, ``n02085620-Chihuahua`` → true; ``7``, ``class 3``, ``B``, ``seven``, ``TurnLeft`` →
    false: a label with a number may stand for that number.
    """
    words = (word for label in labels for word in _WORD.findall(_INSIDE.sub(" ", label)))
    return not any(map(_changes, words))


def _changes(word: str) -> bool:
    digits = sum(map(str.isdecimal, word))
    return 0 < digits <= _DIGITS or len(word) == 1 or word.lower() in _CHANGED
