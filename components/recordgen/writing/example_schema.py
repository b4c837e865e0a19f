"""The features that all examples have in common, and Python values as they are stored.

value                               dtype     shape
7, True, np.uint8(7)                int64     ()
0.5, np.float64(0.5)                float32   ()         rounded
b"a", "a"                           bytes     ()         text as UTF-8
[1, 2], array of int64              int64     its own
[0.5, 1], array of float32          float32   its own
["a", b"b"]                         bytes     (2,)
array of uint8, bool, float64, …    its own   its own    as raw bytes
None, []                            no feature
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.core.records.example import FeatureValue
from recordgen.errors import DataError
from recordgen.features import LIST_DTYPES, RAW_DTYPES, FeatureSpec
from recordgen.messages import listed

_STORABLE = "whole numbers, floats, text, bytes, NumPy arrays and lists of these"

_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_INT64 = np.iinfo(np.int64)


class Stored(NamedTuple):
    """A value as it is stored."""

    dtype: str  # as in FeatureSpec; "" for `[]`, which has no type
    shape: tuple[int, ...]  # () for a scalar
    value: FeatureValue  # an argument of serialize_example; may share memory with the given value


def described(dtype: str, shape: tuple[int, ...]) -> str:
    """Return ``int64 scalar``, ``bytes list of 3`` or ``uint8 array of shape (28, 28)``."""
    if not shape:
        return f"{dtype} scalar"
    if dtype in LIST_DTYPES and len(shape) == 1:
        return f"{dtype} list of {shape[0]}"
    return f"{dtype} array of shape {shape}"


def to_stored(value: Any) -> Stored:
    """Convert a value other than None to the form in which it is stored.

    ``"a"`` → ``Stored("bytes", (), b"a")``; ``[1, 2]`` → ``Stored("int64", (2,), array([1, 2]))``.

    Raises: ValueError: it cannot be stored; the message has the reason and the remedy.
    """
    kind = _kind(type(value))  # type: ignore[arg-type]  # types are hashable
    if kind is None:
        raise ValueError(f"cannot store a value of type {_name(value)}; {_remedy(value)}")
    _, store = _KINDS[kind]
    return store(value)


@cache
def _kind(of: type) -> str | None:
    # np.timedelta64 counts as an integer, but its unit would be lost.
    if issubclass(of, np.timedelta64):
        return None
    for kind, (types, _) in _KINDS.items():
        if issubclass(of, types):
            return kind
    return None


def _int(value: Any) -> Stored:
    number = int(value)
    if not _INT64.min <= number <= _INT64.max:
        raise ValueError(f"{number} does not fit in int64; store it as text or as a float")
    return Stored("int64", (), number)


def _float(value: Any) -> Stored:
    number = float(value)
    # Slightly larger numbers also round to the largest float32; they are refused, too.
    if abs(number) > _MAX_FLOAT32 and not math.isinf(number):
        raise ValueError(f"{number!r} does not fit in float32; give np.array([value]), of float64")
    return Stored("float32", (), number)


def _bytes(value: Any) -> Stored:
    return Stored("bytes", (), bytes(value))


def _text(value: Any) -> Stored:
    try:
        return Stored("bytes", (), value.encode("utf-8"))
    except UnicodeEncodeError as exc:
        raise ValueError(f"the text {value!r} cannot be encoded as UTF-8: {exc.reason}") from exc


def _array(value: npt.NDArray[Any]) -> Stored:
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError("a masked array would lose its mask; store its data and its mask")
    value = np.asarray(value)  # an np.matrix always has two dimensions
    if not value.ndim:
        return to_stored(value[()])
    name, little_endian = _layout(value.dtype)
    if name in ("int64", "float32"):
        return Stored(name, value.shape, value.astype(name, copy=False))
    if name in RAW_DTYPES:
        return Stored(name, value.shape, value.astype(little_endian, copy=False).tobytes())
    if value.dtype.kind in "US":
        if value.ndim > 1 and not value.size:
            raise ValueError(f"text of the shape {value.shape} has no values; remove it")
        items = [to_stored(item).value for item in value.reshape(-1).tolist()]
        return Stored("bytes", value.shape, items)  # type: ignore[arg-type]
    raise ValueError(
        f"cannot store an array of {value.dtype}; convert it with astype, to one of int64, "
        f"float32, {', '.join(RAW_DTYPES)}"
    )


@lru_cache(256)
def _layout(dtype: np.dtype[Any]) -> tuple[str, np.dtype[Any]]:
    """Return a dtype's name, which NumPy computes on each access, and its little-endian dtype."""
    return dtype.name, dtype.newbyteorder("<")


def _list(value: Sequence[Any]) -> Stored:
    types = set(map(type, value))
    kinds = {_kind(item) for item in types}
    if not kinds:
        return Stored("", (0,), None)
    shape = (len(value),)
    if kinds == {"int"}:
        return Stored("int64", shape, _ints(value))
    if kinds <= {"int", "float"}:
        return Stored("float32", shape, _floats(value))
    if kinds <= {"bytes", "text"}:
        return Stored("bytes", shape, [to_stored(item).value for item in value])  # type: ignore[arg-type]
    if kinds == {"list"} or (kinds == {"array"} and len({item.dtype for item in value}) == 1):
        return _nested([to_stored(item) for item in value])
    names = ", ".join(sorted({_name(item) for item in value}))
    raise ValueError(f"cannot store a list of {names}; give a list of one type: {_STORABLE}")


def _nested(rows: Sequence[Stored]) -> Stored:
    first = rows[0]
    shapes = {row.shape for row in rows}
    dtypes = {row.dtype for row in rows}
    if len(shapes) > 1 or "" in dtypes:
        raise ValueError(
            f"nested lists must have rows of one length, above 0 (got rows of the shapes "
            f"{listed(sorted(shapes), str)}); pad them, or store them flat and their "
            f"lengths as another feature"
        )
    if len(dtypes) > 1 and dtypes != {"int64", "float32"}:
        raise ValueError(f"a list must be of one type (got {', '.join(sorted(dtypes))})")
    shape = (len(rows), *first.shape)
    values: list[Any] = [row.value for row in rows]
    if first.dtype in RAW_DTYPES:
        return Stored(first.dtype, shape, b"".join(values))
    if first.dtype == "bytes":
        in_lists = [[item] if isinstance(item, bytes) else item for item in values]
        return Stored("bytes", shape, list(chain.from_iterable(in_lists)))
    dtype = "int64" if dtypes == {"int64"} else "float32"
    return Stored(dtype, shape, np.asarray(values, dtype))


def _ints(values: Sequence[Any]) -> npt.NDArray[np.int64]:
    try:
        return np.array(list(map(int, values)), np.int64)
    except OverflowError:
        worst = next(item for item in values if not _INT64.min <= int(item) <= _INT64.max)
        raise ValueError(f"{worst} in a list does not fit in int64; store it as text") from None


def _floats(values: Sequence[Any]) -> npt.NDArray[np.float32]:
    message = "a number in a list does not fit in float32; give an array of float64"
    try:
        numbers = np.array(list(map(float, values)), np.float64)
    except OverflowError as exc:  # an int that no float holds
        raise ValueError(message) from exc
    if (np.isfinite(numbers) & (np.abs(numbers) > _MAX_FLOAT32)).any():
        raise ValueError(message)
    return numbers.astype(np.float32)


# By name: Python types, and the function that stores their values.
_KINDS: Mapping[str, tuple[tuple[type, ...], Callable[[Any], Stored]]] = {
    "int": ((int, np.integer, np.bool_), _int),
    "float": ((float, np.floating), _float),
    "bytes": ((bytes, bytearray, memoryview), _bytes),
    "text": ((str,), _text),
    "array": ((np.ndarray,), _array),
    "list": ((list, tuple), _list),
}


def _name(value: Any) -> str:
    """Return ``int``, or for an array its dtype as well."""
    name = type(value).__name__
    return f"{name} of {value.dtype}" if isinstance(value, np.ndarray) else name


def _remedy(value: Any) -> str:
    if isinstance(value, Mapping):
        return "make each of its values a feature, such as 'image/height'"
    if hasattr(value, "numpy"):
        return "give the result of its numpy()"
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        return "give np.asarray(value)"
    return f"give {_STORABLE}"


_NO_KEY = "no such key"


class ExampleSchema:
    """The features that all examples have in common; refuses an example that does not fit.

    Every example has the features of the first, of the same type and shape, with two exceptions:

    - A list or 1-D array of int64, float32 or bytes may vary in length, be None, or have no key.
    - A scalar may be None. A missing key is an error.

    Such a feature is read as a list of varying length: its spec has the shape None.
    """

    def __init__(self, known: Mapping[str, FeatureSpec] | None = None, where: str = "") -> None:
        """Start with no features, or with the ``known`` features of the examples at ``where``."""
        self._known = known or {}
        self._where = where
        self._columns = {name: _Column(name) for name in self._known}

    def check(self, example: Any, number: int) -> dict[str, FeatureValue]:
        """Return the features of an example as they are stored; ``number`` is for messages.

        Raises: DataError: the example cannot be stored, or does not fit the others.
        """
        if not isinstance(example, Mapping):
            raise DataError(
                f"record {number}: an example must be a dict of values by feature name (got a "
                f"{type(example).__name__}); a DataFrame gives dicts with to_dict('records'), a "
                f"tf.data.Dataset with as_numpy_iterator()"
            )
        values: dict[str, FeatureValue] = {}
        for name, value in example.items():
            column = self._columns.get(name) or self._add(name, number)
            if value is None:
                self._widen(column, number, "None")
                continue
            try:
                stored = to_stored(value)
            except ValueError as exc:
                raise DataError(f"record {number}: feature {name!r}: {exc}") from exc
            if stored.dtype != column.dtype or stored.shape != column.shape:
                self._widen(column, number, stored)
            values[name] = stored.value
        if len(example) < len(self._columns):
            for name, column in self._columns.items():
                if name not in example:
                    self._widen(column, number, _NO_KEY)
        return values

    def specs(self) -> dict[str, FeatureSpec]:
        """Return the specs of all features, by name.

        Raises: DataError: a feature was None or ``[]`` in every example.
        """
        found = {}
        for name, column in self._columns.items():
            if name in self._known:
                found[name] = self._known[name]
            elif not column.dtype:
                gap, number = next(iter(column.gaps.items()))
                raise DataError(
                    f"record {number}: feature {name!r} is {gap}, as in every record, so that its "
                    f"type is unknown; remove it, or give an empty array of its type"
                )
            else:
                found[name] = column.spec()
        if not found:
            raise DataError("the examples have no features; an example is a dict of values by name")
        return dict(sorted(found.items()))

    def _add(self, name: Any, number: int) -> _Column:
        if not isinstance(name, str) or not name:
            raise DataError(f"record {number}: a feature's name must be text (got {name!r})")
        try:
            name.encode("utf-8")
        except UnicodeEncodeError as exc:
            raise DataError(
                f"record {number}: the feature name {name!r} cannot be encoded as UTF-8"
            ) from exc
        if self._known:
            raise DataError(
                f"record {number}: there is no feature {name!r} in {self._where}, only "
                f"{listed(self._known)}; remove it"
            )
        column = self._columns[name] = _Column(name)
        if number:
            column.gaps[_NO_KEY] = 0
        return column

    def _widen(self, column: _Column, number: int, what: Stored | str) -> None:
        """Let a column accept a new type, shape or gap. Raises: DataError: it is not allowed."""
        if isinstance(what, str) or not what.dtype:
            gap = what if isinstance(what, str) else "[]"
            column.gaps.setdefault(gap, number)
        elif not column.dtype:
            column.dtype, column.shape, column.first = what.dtype, what.shape, number
        elif what.dtype == column.dtype and column.is_list and len(what.shape) == 1:
            column.varies = True
        else:
            raise _misfit(number, column, described(what.dtype, what.shape))
        column.check_gaps()
        if column.name in self._known:
            self._check_known(column, self._known[column.name], number)

    def _check_known(self, column: _Column, known: FeatureSpec, number: int) -> None:
        now = column.spec() if column.dtype else None
        if now is not None and now.dtype != known.dtype:
            fits = False
        elif known.shape is None:
            fits = now is None or now.shape is None or len(now.shape) <= 1
        else:
            fits = not column.gaps and (now is None or now.shape == known.shape)
        if not fits:
            got = str(column) if column.dtype and not column.gaps else next(iter(column.gaps))
            length = ", of varying length" if column.varies else ""
            expected = f"{known.dtype} list of any length"
            if known.shape is not None:
                expected = described(known.dtype, known.shape)
            raise DataError(
                f"record {number}: feature {column.name!r} must be {expected} as in {self._where} "
                f"(got {got}{length}); all splits of an output have the same features"
            )


def _misfit(number: int, column: _Column, got: str) -> DataError:
    return DataError(
        f"record {number}: feature {column.name!r} must be {column} as in record {column.first} "
        f"(got {got}); give every record one type and shape: None for a scalar that is missing, "
        f"and a list of int64, float32 or bytes if the length varies"
    )


class _Column:
    """The type, shape and gaps of one feature in the examples so far.

    Attributes:
        name: the feature's name.
        dtype: the type of its values; "" before the first value.
        shape: the shape of the first value.
        first: the record of the first value.
        varies: whether lists differ in length.
        gaps: the kinds of missing values (``None``, ``[]``, no key), each with its first record.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtype = ""
        self.shape: tuple[int, ...] = ()
        self.first = 0
        self.varies = False
        self.gaps: dict[str, int] = {}

    def __str__(self) -> str:
        return described(self.dtype, self.shape)

    @property
    def is_list(self) -> bool:
        """Whether the feature is a list, whose length may vary."""
        return self.dtype in LIST_DTYPES and len(self.shape) == 1

    def spec(self) -> FeatureSpec:
        """Return the spec of the values so far."""
        # A parser cannot use a shape without elements, either.
        varies = self.varies or self.gaps or (self.is_list and not self.shape[0])
        return FeatureSpec(self.dtype, shape=None if varies else self.shape)

    def check_gaps(self) -> None:
        """Raise DataError if a value is missing that must not be missing."""
        if not self.dtype or self.is_list:
            return
        for gap, number in self.gaps.items():
            if gap != "None" or self.shape:
                raise _misfit(number, self, gap)
