"""The values of other tools' JSON: parsed to a declared depth, and checked where they are used.

Each check raises a ValueError that names the value, which costs the example that has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recordgen.core.limits import JSON_DEPTH
from recordgen.subjects.picture import is_number

_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_INNERMOST = re.compile(r"[\[{][^\[\]{}]*[\]}]")


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises: ValueError: it is none, or is nested too deep."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    try:
        value = json.loads(text)
    except RecursionError:
        raise too_deep() from None
    check_depth(text, 0, len(text))
    return value


def check_depth(text: str, begin: int, end: int) -> None:
    """Check how deep the value in a part of a JSON text is nested. Raises: ValueError."""
    if text.count("[", begin, end) + text.count("{", begin, end) <= JSON_DEPTH.most:
        return
    rest = _TEXT.sub("", text[begin:end])
    for _ in range(JSON_DEPTH.most):
        rest = _INNERMOST.sub("", rest)
    if "[" in rest or "{" in rest:
        raise too_deep()


def too_deep() -> ValueError:
    """Return the error about a value that is nested too deep."""
    return ValueError(f"a value has more than {JSON_DEPTH.most} {JSON_DEPTH.what}")


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Return an object. Raises: ValueError: it is something else."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be an object (got {value!r:.80})")
    return value


def items(value: Any, what: str) -> Sequence[Any]:
    """Return the items of a list; none if it is null. Raises: ValueError: it is something else."""
    if not isinstance(value, list | None):
        raise ValueError(f"{what} must be a list (got {value!r:.80})")
    return value or ()


def text(value: Any, what: str) -> str:
    """Return a text without blanks around it. Raises: ValueError: it is none, or empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} must be a text (got {value!r:.80})")
    return value.strip()


def numbers(value: Any, names: Sequence[str], what: str) -> Sequence[float]:
    """Return the numbers with these names in an object. Raises: ValueError: one is missing."""
    found: list[Any] = [mapping(value, what).get(name) for name in names]
    if not all(map(is_number, found)):
        raise ValueError(f"{what} needs the numbers {', '.join(names)} (got {value!r:.80})")
    return found
