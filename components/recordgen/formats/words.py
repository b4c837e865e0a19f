"""The words of a name: of a column, a file or a folder."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")


def words_of(name: str) -> list[str]:
    """Return the words and numbers of a name, in lower case.

    ``topLeftX`` → top, left, x; ``bbox_x1`` → bbox, x, 1; ``val2017`` → val, 2017
    """
    return [word.lower() for word in _WORDS.findall(name)]
