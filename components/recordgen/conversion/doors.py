"""``recordgen.convert``, ``check`` and ``plan``: errors name options as keywords of Python.

The command calls the functions of :mod:`recordgen.conversion.api`, whose messages may have its own
spelling; see :mod:`recordgen.conversion.results`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from recordgen.conversion import api
from recordgen.conversion.results import as_keywords
from recordgen.errors import DataError, RecordgenError, check_names

_Function = TypeVar("_Function", bound=Callable[..., Any])


def in_python(function: _Function) -> _Function:
    """Return a function whose errors are spelled for Python; it is the same in all else."""
    names = [*signature(function).parameters]

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            check_names(options, names)  # also where another name leaves an argument out
            return function(*args, **options)
        except RecordgenError as exc:
            exc.args = tuple(as_keywords(arg) if isinstance(arg, str) else arg for arg in exc.args)
            if isinstance(exc, DataError):
                exc.message = as_keywords(exc.message)
            raise

    return cast(_Function, call)


convert = in_python(api.convert)
check = in_python(api.check)
plan = in_python(api.plan)
