"""Checks of option values; messages name the option, the expected and the given value."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

from recordgen.errors import UsageError


def check_one_of(name: str, value: object, allowed: Collection[str | None]) -> None:
    """Check that a value is one of some words. Raises: UsageError."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(map(str, allowed))} (got {value!r})")


def check_at_least(least: int, **named: Any) -> None:
    """Check whole numbers of 64 bits by name. Raises: UsageError."""
    for name, value in named.items():
        if not is_integer(value):
            raise UsageError(f"{name} must be a whole number (got {value!r})")
        if value < least:
            raise UsageError(f"{name} must be at least {least} (got {value!r})")
        if value >= 1 << 63:
            raise UsageError(f"{name} must be a number of 64 bits (got {value!r})")


def check_range(name: str, value: Any, low: float, high: float) -> None:
    """Check that a number lies between two others. Raises: UsageError."""
    if not is_number(value) or not low <= value <= high:  # NaN is not between any two numbers
        raise UsageError(f"{name} must be from {low} to {high} (got {value!r})")


def check_type(kind: type[Any], expected: str, **named: object) -> None:
    """Check the type of values by name. Raises: UsageError."""
    for name, value in named.items():
        if not isinstance(value, kind):
            raise UsageError(f"{name} must be {expected} (got {value!r})")


def check_function(expected: str = "a function", **named: object) -> None:
    """Check that values are functions or None. Raises: UsageError."""
    for name, value in named.items():
        if value is not None and not callable(value):
            raise UsageError(f"{name} must be {expected} (got {value!r})")


def check_list_of_names(name: str, value: object) -> None:
    """Check that a value is a collection of names. Raises: UsageError."""
    if isinstance(value, str):
        raise UsageError(
            f"{name} must be several names, not one text (got {value!r}); write [{value!r}]"
        )
    if not isinstance(value, Collection) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{name} must be a list of names, each a text (got {value!r})")


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number of Python or NumPy, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether a value is a real number of Python or NumPy, and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)
