"""Signatures with all options, for editors, notebooks and ``help``.

A function that takes ``**options`` would show none of them. A TypedDict declares their types, and
dataclasses their defaults and descriptions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, get_type_hints

_Function = TypeVar("_Function", bound=Callable[..., Any])

# An entry of a docstring's list of attributes, until the next one.
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


class Depends:
    """The default of an option that depends on the data."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return f"<{self._text}>"


def takes(keywords: Any, *configs: type[Any], **defaults: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that lists the options of a function in its signature and docstring.

    Args:
        keywords: the TypedDict of the options: their order and types.
        *configs: the dataclasses whose fields they are; the first one that has a field declares it.
        **defaults: defaults of this function that differ from those of the fields.
    """
    declared = {item.name: item for config in reversed(configs) for item in fields(config)}
    texts = {name: text for config in reversed(configs) for name, text in attributes(config)}
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(name, _default(declared[name])),
            annotation=kind,
        )
        for name, kind in get_type_hints(keywords).items()
    ]
    listed = "".join(f"\n    {each.name}: {texts.get(each.name, '')}" for each in options)

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shown: Any = function  # functions may have this attribute, but no type says so
        shown.__signature__ = signature.replace(parameters=[*own, *options])
        if function.__doc__:
            # Python 3.13 removes the indentation of docstrings, older versions keep it.
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\nOptions:{listed}"
        return function

    return decorate


def _default(option: Field[Any]) -> Any:
    if option.default is not MISSING:
        return option.default
    return option.default_factory() if option.default_factory is not MISSING else option.default


def attributes(config: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and descriptions of a dataclass's attributes, from its docstring."""
    for found in _ATTRIBUTE.finditer(inspect.cleandoc(config.__doc__ or "")):
        yield found[1], found[2]
