"""What people read: input in messages, quoted in part, each item shortened; and sizes.

Labels, columns, boxes and files come from the input, so neither their number nor their length may
decide the length of a message: ten thousand rejects of one image that each quote all of its labels
take gigabytes.

``masking.py`` keeps secrets out of messages and logs.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, Field, fields
from itertools import islice
from typing import Any, TypeVar, get_type_hints

#: Characters that are invisible or change lines and the direction of text, for the brackets of a
#: regular expression: soft hyphens, separators, direction marks, fillers, tags. Without joiners,
#: which belong to letters and emojis.
INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e01ef"
)

#: The characters of scripts that write no blanks between words, without their marks and digits, for
#: a regular expression's brackets. They are spelled out, not looked up in a Unicode database:
#: Python's and TensorFlow's databases differ in age, and training and serving must cut texts alike.
UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b"  # Han, from its radicals on
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
    "\u3041-\u3096\u309d-\u309f"  # Hiragana
    "\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # Katakana
    "\u0e01-\u0e30\u0e32-\u0e33\u0e40-\u0e46"  # Thai
    "\u0e81-\u0eb0\u0eb2-\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf"  # Lao
    "\u1780-\u17b3\u17d7\u17dc"  # Khmer
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065-\u1066"  # Myanmar
    "\u106e-\u1070\u1075-\u1081\u108e\u109e-\u109f\ua9e0-\ua9e4\ua9e6-\ua9ef"
    "\ua9fa-\ua9fe\uaa60-\uaa7a\uaa7e-\uaa7f"
)

#: The longest message of an error, a reject or a finding, in characters.
MESSAGE_CHARACTERS = 4_000

_ITEMS = 10
_ITEM_CHARACTERS = 80


def shortened(text: str, characters: int = MESSAGE_CHARACTERS) -> str:
    """Return a text of at most ``characters`` characters; a cut text ends with ``…``."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def listed(
    items: Collection[Any], shown: Callable[[Any], str] = repr, *, between: str = ", "
) -> str:
    """Return the first ten items for a message: ``'a', 'b', … (12 in all)``."""
    first = between.join(shortened(shown(item), _ITEM_CHARACTERS) for item in islice(items, _ITEMS))
    return f"{first}{between}… ({len(items):,} in all)" if len(items) > _ITEMS else first


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 shard``, ``1,200 shards``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def megabytes(size: float) -> str:
    """Return a size in bytes as text (1 MB = 10^6 bytes)."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


class Shown:
    """Base of results: ``print`` and notebooks show the summary that the command prints."""

    __slots__ = ()

    def __repr__(self) -> str:
        # The package's face knows: results are made far below the modules that describe them.
        return str(vars(sys.modules["recordgen"])["_summary"](self))

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"


# --- signatures with all options, for editors, notebooks and help --------------------------------

# A function that takes ``**options`` would show none of them. A TypedDict declares their types, and
# dataclasses their defaults and descriptions.

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
