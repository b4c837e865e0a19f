"""The option ``encoding``."""

from __future__ import annotations

import codecs

from recordgen.errors import UsageError

_UTF8 = ("utf-8", "utf-8-sig", "ascii")


def known_encoding(name: str) -> str:
    """Return the name of an encoding as Python spells it; empty for UTF-8.

    Raises:
        UsageError: Python does not know it, or it is none of texts, such as ``base64``.
    """
    if not name:
        return ""
    try:
        "".encode(name)
    except (LookupError, ValueError) as exc:
        raise UsageError(
            f"encoding must be one that Python knows, such as cp1252, shift_jis, gb18030 or "
            f"utf-16-le (got {name!r})"
        ) from exc
    found = codecs.lookup(name).name
    return "" if found in _UTF8 else found
