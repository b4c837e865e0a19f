"""Check that values from JSON have the types that a dataclass declares."""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

# Numbers are stored in 64 bits.
_BOUND = 2**63


def check_types(found: Any) -> None:
    """Check the fields of a dataclass, and of all dataclasses in them, against their types.

    Raises:
        ValueError: a value has another type, or is a whole number beyond 64 bits.
    """
    hints = get_type_hints(type(found))
    for item in fields(found):
        _check([getattr(found, item.name)], hints[item.name], item.name)


def _check(values: Collection[Any], hint: Any, name: str) -> None:
    """Check values of one type together: a vocabulary may have a million labels."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return
    if origin in (Union, types.UnionType):
        kinds = [each for each in inside if each is not types.NoneType]
        values = [value for value in values if value is not None or len(kinds) == len(inside)]
        for value in values:
            fitting = [kind for kind in kinds if type(value) is kind]
            _check([value], fitting[0] if fitting else kinds[0], name)
    elif is_dataclass(hint):
        for value in values:
            _expect(isinstance(value, hint), value, name, "an object")  # type: ignore[arg-type]
            check_types(value)
    elif origin is tuple:
        for value in values:
            _expect(isinstance(value, tuple), value, name, "a list")
            if inside[1:] == (...,):
                _check(value, inside[0], name)
            else:
                _expect(len(value) == len(inside), value, name, f"a list of {len(inside)}")
                for each, kind in zip(value, inside, strict=True):
                    _check([each], kind, name)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        for value in values:
            _expect(isinstance(value, Mapping), value, name, "an object")
            _check(value.values(), inside[1], name)
    else:
        for value in values:
            _expect(type(value) is hint, value, name, _NAMES.get(hint, hint.__name__))
            if hint is int:
                _expect(-_BOUND <= value < _BOUND, value, name, "a number of 64 bits")


_NAMES = {str: "a text", int: "a whole number", float: "a number", bytes: "a text"}


def _expect(is_so: bool, value: Any, name: str, expected: str) -> None:
    if not is_so:
        raise ValueError(f"{name} must be {expected} (got {value!r:.80})")
