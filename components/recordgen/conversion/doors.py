"""``recordgen.convert``, ``check`` and ``plan``: errors name options as keywords of Python.

    use --columns path=1,label=2, or --append    →    use columns='path=1,label=2', or append=True

The command calls the functions of :mod:`recordgen.conversion.api`, whose messages have its own
spelling where both differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from recordgen.conversion import api
from recordgen.errors import DataError, RecordgenError
from recordgen.options import OPTIONS
from recordgen.registry import OWN

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Options of the command that need no value, and are keywords of Python.
_FLAGS = frozenset({"append", "overwrite", "resume"})

# A value: in quotes, with a character that words do not have, in capitals, one of the choices, or a
# scheme.
_CHOICES = {
    str(choice) for name, each in OPTIONS.items() if name != "task" for choice in each.known_values
} | {name for name in OWN if "_" not in name}
_VALUE = rf"'[^']*'|[^\s;()]*[=:_,*/{{\d][^\s;()]*|[A-Z|]{{2,}}|(?:{'|'.join(sorted(_CHOICES))})\b"
_VALUE += "|(?<=--allow )[a-z][a-z0-9+.-]*"
_OPTION = re.compile(rf"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])(?:[ =]({_VALUE}))?")


def spelled(text: str) -> str:
    """Return a message whose options are spelled as keywords of Python."""
    return _OPTION.sub(_keyword, text)


def _keyword(found: re.Match[str]) -> str:
    name, value = found[1].replace("-", "_"), found[2]
    if name in _FLAGS:
        return f"{name}=True" + (f" {value}" if value else "")
    if name not in OPTIONS:
        return found[0]
    if value is None:
        return name
    plain = value.rstrip(",.:")
    return f"{name}={plain.strip(chr(39))!r}{value[len(plain) :]}"


def in_python(function: _Function) -> _Function:
    """Return a function whose errors are spelled for Python; it is the same in all else."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except RecordgenError as exc:
            exc.args = tuple(spelled(arg) if isinstance(arg, str) else arg for arg in exc.args)
            if isinstance(exc, DataError):
                exc.message = spelled(exc.message)
            raise

    return cast(_Function, call)


convert = in_python(api.convert)
check = in_python(api.check)
plan = in_python(api.plan)
