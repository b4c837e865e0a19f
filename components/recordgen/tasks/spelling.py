"""Misspelt keys of JSON objects, which would otherwise count as missing.

{"start_offset": 5, "endOffset": 9}   →  AnnotationError: did you mean 'startOffset'?
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from recordgen.core.task.annotation import bad_annotation, printable

# "startOfset" is close to a key, and "annotationSpecId" is not.
_CLOSE = 0.85
# Short keys are close by chance.
_SHORT = 6

_PLACE = re.compile(r"(start|begin|from|first|end|stop|until|last|offset|time)", re.IGNORECASE)


def check_spelling(
    record: Mapping[str, Any], known: Sequence[str], where: str, *, of_places: bool = False
) -> None:
    """Check that no key stands for a missing one. Raises: AnnotationError, names both.

    Args:
        record: the JSON object.
        known: the keys that are read from it.
        where: the object, for the message.
        of_places: the known keys are places or times that have a default: then no other key may
            name one, such as ``start``.
    """
    missing = [name for name in known if record.get(name) is None]
    if not missing:
        return
    for key, value in record.items():
        if key in known or value in (None, "", [], {}):
            continue
        for name in missing:
            if _is_near(key, name) or (of_places and _PLACE.match(key)):
                raise bad_annotation(
                    f"{where} has the key {printable(key)!s:.80}, which is not read; did you mean "
                    f"{name!r}?"
                )


@lru_cache(maxsize=4096)
def _is_near(key: str, name: str) -> bool:
    """Return whether a key differs from a name only in its case, its separators or a typo."""
    one, other = (text.replace("_", "").replace("-", "").lower() for text in (key, name))
    if one == other:
        return True
    if min(len(one), len(other)) < _SHORT or abs(len(one) - len(other)) > 2:
        return False
    return SequenceMatcher(None, one, other).ratio() >= _CLOSE
