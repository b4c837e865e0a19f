"""The types of columns in a declared table, with TFRecorder's names.

``Schema({"split": types.SplitKey, "photo": types.ImageUri, "age": types.IntegerInput})`` and
``Schema({"split": "split", "photo": "image", "age": "int"})`` are equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordgen.core.records.numbers import as_float32, is_marker
from recordgen.errors import UsageError, did_you_mean

# By kind: the dtype of the feature, and what a value must be.
_KINDS: Mapping[str, tuple[str, str]] = {
    "split": ("", "TRAIN, VALIDATION, TEST, UNASSIGNED or empty"),
    "image": ("bytes", "the path or URL of an image"),
    "text": ("bytes", "text"),
    "int": ("int64", "a whole number of 64 bits, or empty"),
    "float": ("float32", "a finite number of float32, or empty"),
    "bool": ("int64", "true or false, yes or no, 1 or 0, in any case, or empty"),
    "floats": ("float32", "finite numbers, such as [0.1, 0.2] or 0.1 0.2, or empty"),
    "label": ("bytes", "a label"),
    "int_label": ("bytes", "a whole number from 0, or empty"),
    "float_label": ("float32", "a finite number of float32"),
    "weight": ("float32", "a number from 0 to 10,000, or empty"),
    "ignored": ("", "anything"),
}

# Inputs with one number in each row.
_INPUTS = frozenset({"int", "float", "bool"})

# Kinds of numbers: texts such as ``NA`` are missing values.
_NUMBERS = frozenset({"int", "float", "bool", "floats", "int_label", "float_label", "weight"})

#: AutoML's range of weights.
MAX_WEIGHT = 10_000.0

_BOOLEANS = {"true": 1, "yes": 1, "1": 1, "false": 0, "no": 0, "0": 0}

_LENGTH = re.compile(r"floats\[([1-9][0-9]{0,8})\]", re.ASCII)
_WHOLE = re.compile(r"[+-]?0*[0-9]{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column."""

    # `split`, `image`, `text`, `int`, `float`, `bool`, `floats`, `label`, `int_label`,
    # `float_label`, `weight` or `ignored`.
    kind: str
    length: int | None = None  # how many numbers each value of `floats` has; None if that varies

    @classmethod
    def of(cls, given: Any) -> ColumnType:
        """Return the type that a declaration names.

        ``"floats[3]"``, ``types.FloatVector``, ``"FloatInput"``, ``int`` → a type

        Raises: UsageError: there is no such type.
        """
        if isinstance(given, ColumnType):
            return given
        if isinstance(given, type) and given in _PYTHON:
            return cls(_PYTHON[given])
        if isinstance(given, str):
            if found := _LENGTH.fullmatch(given):
                return cls("floats", int(found[1]))
            if given in _KINDS:
                return cls(given)
            if given in _OTHER_NAMES:
                return _OTHER_NAMES[given]
        known = [*_KINDS, *_OTHER_NAMES, "floats[N]"]
        hint = did_you_mean(given, known, f"; there are {', '.join(_KINDS)}")
        raise UsageError(f"unknown column type {given!r}{hint}")

    def __str__(self) -> str:
        return self.kind if self.length is None else f"{self.kind}[{self.length}]"

    @property
    def dtype(self) -> str:
        """The dtype of the column's feature; empty if it has no feature."""
        return _KINDS[self.kind][0]

    @property
    def is_number(self) -> bool:
        """Whether it is an input with one number in each row."""
        return self.kind in _INPUTS

    @property
    def is_label(self) -> bool:
        """Whether a vocabulary numbers the values."""
        return self.kind in ("label", "int_label")

    def parse(self, value: Any) -> Any:
        """Return a value in the form of an annotation: a text, a number, or a list of numbers.

        Blanks around a value are ignored, except in a text, which is not changed. Where a number
        is expected, :data:`recordgen.core.records.numbers.MARKERS` are missing values.

        Args:
            value: a field of a CSV, or a value of a DataFrame.

        Returns:
            The value; None if it is missing, empty, only blanks or a marker of missing numbers.

        Raises:
            ValueError: the value does not have this type; the message has the expected type and the
                value.
        """
        blank = value.strip() if isinstance(value, str) and self.kind != "text" else value
        if blank is None or (isinstance(blank, str) and self.is_missing(blank)):
            return None
        found = self._parsed(blank)
        if found is None:
            raise ValueError(f"must be {self.expected} (got {value!r:.80})")
        return found

    def is_missing(self, text: str) -> bool:
        """Return whether a text without blanks around it means that there is no value."""
        return not text or (self.kind in _NUMBERS and is_marker(text))

    @property
    def expected(self) -> str:
        """A description of valid values, for messages."""
        expected = _KINDS[self.kind][1]
        return expected if self.length is None else f"{self.length} {expected}"

    def _parsed(self, value: Any) -> Any:
        """Return a parsed value; None if it does not have this type."""
        if self.kind == "floats":
            numbers = _floats(value)
            return None if self.length not in (None, len(numbers or ())) else numbers
        if self.kind in ("float", "float_label"):
            return _float(_text(value))
        if self.kind == "weight":
            number = _float(_text(value))
            return number if number is not None and 0 <= number <= MAX_WEIGHT else None
        text = _text(_without_fraction(value))
        if self.kind == "bool":
            return _BOOLEANS.get((text or "").lower())
        if self.kind in ("int", "int_label"):
            number = int(text) if text and _WHOLE.fullmatch(text) else None
            if number is None or not -(1 << 63) <= number < 1 << 63:
                return None
            if self.kind == "int":
                return number
            return str(number) if number >= 0 else None
        return text


SplitKey = ColumnType("split")
ImageUri = ColumnType("image")
StringInput = ColumnType("text")
IntegerInput = ColumnType("int")
FloatInput = ColumnType("float")
BooleanInput = ColumnType("bool")
FloatVector = ColumnType("floats")
StringLabel = ColumnType("label")
IntegerLabel = ColumnType("int_label")
FloatLabel = ColumnType("float_label")
Weight = ColumnType("weight")
Ignored = ColumnType("ignored")

_PYTHON: Mapping[type, str] = {str: "text", int: "int", float: "float", bool: "bool"}
_OTHER_NAMES: Mapping[str, ColumnType] = {
    **{name: each for name, each in globals().items() if isinstance(each, ColumnType)},
    "image_uri": ImageUri,
    "string": StringInput,
    "integer": IntegerInput,
    "vector": FloatVector,
}


def _text(value: Any) -> str | None:
    """Return a value as text; None if it is missing or not a single value."""
    if value is None or isinstance(value, bytes | list | tuple | dict | set):
        return None
    return str(_plain(value))


def _without_fraction(value: Any) -> Any:
    """Return 3 for 3.0: pandas stores whole numbers as floats if the column has gaps."""
    plain = _plain(value)
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def _plain(value: Any) -> Any:
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _float(text: str | None) -> float | None:
    try:
        return as_float32(float(text)) if text and _NUMBER.fullmatch(text) else None
    except OverflowError:
        return None


def _floats(value: Any) -> list[float] | None:
    """Parse a list of numbers or its text: ``[0.1, 0.2]``, ``0.1 0.2``, ``0.1,0.2``."""
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        value = value.tolist()
    if isinstance(value, list | tuple):
        items = [(_text(item) or "").strip() for item in value]
    else:
        text = (_text(value) or "").strip()
        if not text:
            return None
        for opening, closing in ("[]", "()"):
            if text.startswith(opening) and text.endswith(closing):
                text = text[1:-1]
        items = [*text.replace(",", " ").split()]
    found = [number for number in map(_float, items) if number is not None]
    return found if len(found) == len(items) else None
