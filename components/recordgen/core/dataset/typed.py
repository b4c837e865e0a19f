"""Build dataclasses and named tuples from parsed JSON, by the types that they declare.

    Shard, {"file": "a", "examples": 2, …}   →  Shard("a", 2, …)
    Reject, ["a.csv", 3, …]                  →  Reject("a.csv", 3, …)

Objects and lists in them are built, too.
"""

from __future__ import annotations

import json
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")

# Numbers are stored in 64 bits.
_BOUND = 2**63


def built(kind: type[_T], data: Any, name: str = "") -> _T:
    """Return the dataclass or named tuple of a JSON object, or of the list of a named tuple.

    An instance gets the types of its fields checked. ``name`` is for messages.

    Raises:
        ValueError: a value has another type, or is a whole number beyond 64 bits.
        TypeError: a field without a default is missing, or there are others.
    """
    hints = _hints(kind)  # type: ignore[arg-type]  # types are hashable
    is_tuple = issubclass(kind, tuple)
    if isinstance(data, kind):
        data = {key: getattr(data, key) for key in hints}
    elif is_tuple and isinstance(data, list):
        data = dict(zip(hints, data, strict=True))
    _expect(isinstance(data, Mapping), data, name, "a list" if is_tuple else "an object")
    known = {key: next(iter(_built([data[key]], hints[key], key))) for key in hints if key in data}
    return kind(**{**data, **known})


@lru_cache(256)
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _built(values: Collection[Any], hint: Any, name: str) -> Iterable[Any]:
    """Build values of one type together: a vocabulary may have a million labels."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return values
    if origin in (Union, types.UnionType):
        return [_one_of(value, inside, name) for value in values]
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return [built(hint, value, name) for value in values]
    if origin is tuple:
        return [_tuple(value, inside, name) for value in values]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        for value in values:
            _expect(isinstance(value, Mapping), value, name, "an object")
        return [dict(zip(v, _built(v.values(), inside[1], name), strict=True)) for v in values]
    for value in values:
        _expect(type(value) is hint, value, name, _NAMES.get(hint, hint.__name__))
        if hint is int:
            _expect(-_BOUND <= value < _BOUND, value, name, "a number of 64 bits")
    return values


def _one_of(value: Any, kinds: Collection[Any], name: str) -> Any:
    """Build a value of one of several types, the first one unless the value shows another."""
    if value is None and types.NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not types.NoneType]
    of = tuple if isinstance(value, list) else type(value)
    fitting = [kind for kind in others if (get_origin(kind) or kind) is of]
    [found] = _built([value], (fitting or others)[0], name)
    return found


def _tuple(value: Any, inside: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    _expect(isinstance(value, list | tuple), value, name, "a list")
    if inside[1:] == (...,):
        return tuple(_built(value, inside[0], name))
    _expect(len(value) == len(inside), value, name, f"a list of {len(inside)}")
    return tuple(_one_of(each, (kind,), name) for each, kind in zip(value, inside, strict=True))


_NAMES = {str: "a text", int: "a whole number", float: "a number", bytes: "a text"}


def parsed_json(data: bytes) -> Any:
    r"""Return the value of a JSON file.

    Raises: ValueError: it is no JSON in UTF-8, or ``\ud800``, half of a character, is in a text.
    """
    value = json.loads(data)
    if b"\\ud" in data.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _expect(is_so: bool, value: Any, name: str, expected: str) -> None:
    if not is_so:
        raise ValueError(f"{name} must be {expected} (got {value!r:.80})")
