"""The features that all examples have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recordgen.core.records.example import FeatureValue
from recordgen.errors import DataError
from recordgen.features import LIST_DTYPES, FeatureSpec
from recordgen.messages import listed
from recordgen.writing.values import Stored, described, to_stored

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
