"""The values of a feature → what a source returns: NumPy values, text, bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen.access.parse import Steps, Values
from recordgen.features import RAW_DTYPES, FeatureSpec

if TYPE_CHECKING:
    import numpy.typing as npt

#: Returns the value of a feature. Raises ValueError: the record has something else.
Reader = Callable[[Values], Any]

_KINDS: Mapping[str, np.dtype[Any]] = {"int64": np.dtype(np.int64), "float32": np.dtype(np.float32)}


def reader_of(
    spec: FeatureSpec, *, as_bytes: Callable[[Any], Any], is_inexact: bool = False
) -> Reader:
    """Return the reader of a feature.

    Scalars become NumPy scalars, text or bytes, arrays and lists NumPy arrays (of objects for text
    and bytes). A whole number that records may lack becomes a float with NaN, a float64 if it
    ``is_inexact``.
    """
    if spec.dtype in RAW_DTYPES:
        return _raw(spec)
    is_bytes = spec.dtype == "bytes"
    stored: Any = bytes if is_bytes else _KINDS[spec.dtype]
    dtype = np.dtype(np.float64 if is_inexact else np.float32) if spec.has_gaps else stored
    one = as_bytes if is_bytes else dtype.type
    has_default = isinstance(spec.default, bytes) if is_bytes else spec.default is not None

    def scalar(values: Values) -> Any:
        if len(values) == 1 and getattr(values, "dtype", bytes) == stored:
            return one(values[0])
        if not len(values) and has_default:
            return one(spec.default)
        return one(_one(_of_kind(values, stored)))

    def array(values: Values) -> Any:
        found = _of_kind(values, stored)
        several = _objects(list(map(one, found))) if is_bytes else np.array(found, dtype)
        return several if spec.shape is None else several.reshape(spec.shape)

    return scalar if spec.shape == () else array


def as_array(view: memoryview) -> npt.NDArray[np.uint8]:
    """Return bytes as an array that shares their memory."""
    return np.frombuffer(view, np.uint8)


def as_text(view: memoryview) -> str:
    """Return bytes as text."""
    return str(view, "utf-8", "replace")


def by_kind(values: Values) -> Any:
    """Return the values of a feature without a spec: an array of numbers or bytes objects.

    Those of a feature list are a list of arrays.
    """
    if isinstance(values, Steps):
        return list(map(by_kind, values))
    return (
        np.array(values) if isinstance(values, np.ndarray) else _objects(list(map(bytes, values)))
    )


def _raw(spec: FeatureSpec) -> Reader:
    stored = np.dtype(spec.dtype).newbyteorder("<")

    def read(values: Values) -> Any:
        found = np.frombuffer(_one(_of_kind(values, bytes)), stored)
        return found.astype(spec.dtype).reshape(spec.shape or ())

    return read


def _one(values: Any) -> Any:
    if len(values) != 1:
        raise ValueError(f"one value is expected (got {len(values) or 'none'})")
    return values[0]


def _of_kind(values: Values, kind: Any) -> Any:
    """Return values if they are bytes or have a dtype; an empty list has any kind."""
    found: Any = values.dtype if isinstance(values, np.ndarray) else bytes
    if found != kind and len(values):
        words = ["bytes" if each is bytes else each for each in (kind, found)]
        raise ValueError("values of {} are expected (got {})".format(*words))
    return values


def _objects(items: list[Any]) -> npt.NDArray[np.object_]:
    found = np.empty(len(items), object)
    found[:] = items
    return found
