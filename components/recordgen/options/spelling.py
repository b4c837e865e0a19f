"""Options in messages, as the user of each door types them.

    use --columns path=1,label=2, or --append    ↔    use columns='path=1,label=2', or append=True

A message is written once, in either spelling; :func:`as_keywords` is for Python,
:func:`as_flags` for the command.
"""

from __future__ import annotations

import re
import shlex

from recordgen.options import OPTIONS
from recordgen.registry import OWN

# Options of the command that need no value, and are keywords of Python.
_FLAGS = frozenset({"append", "overwrite", "resume"})

# A value: in quotes, with a character that words do not have, in capitals, one of the choices, a
# scheme, or a format, which may be another package's, and its task.
_CHOICES = {
    str(choice) for name, each in OPTIONS.items() if name != "task" for choice in each.known_values
} | {name for name in OWN if "_" not in name}
_VALUE = rf"'[^']*'|[^\s;()]*[=:_,*/{{\d][^\s;()]*|[A-Z|]{{2,}}|(?:{'|'.join(sorted(_CHOICES))})\b"
_VALUE += "|(?<=--allow )[a-z][a-z0-9+.-]*|(?<=--format )[a-z][a-z0-9]*(?= for )"
_FLAG = rf"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])(?:[ =]({_VALUE}))?"
_NAMES = "|".join((*OPTIONS, *_FLAGS))
# Not the roles in the value of another option, which the first part of the pattern takes.
_FLAG_OR_KEYWORD = re.compile(rf"{_FLAG}|(?<![\w/?&.'\"-])({_NAMES})=('[^']*'|[^\s;,()]+)")


def as_keywords(text: str) -> str:
    """Return a message whose options are spelled as keywords of Python."""
    return re.sub(_FLAG, _keyword, text)


def as_flags(text: str) -> str:
    """Return a message whose options are spelled as flags of the command."""
    return _FLAG_OR_KEYWORD.sub(_flag, text)


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


def _flag(found: re.Match[str]) -> str:
    name, value = found[3], found[4]
    if name is None:
        return found[0]
    flag = f"--{name.replace('_', '-')}"
    if name in _FLAGS:
        return flag
    plain = value.rstrip(".:")
    return f"{flag} {shlex.quote(plain.strip(chr(39)))}{value[len(plain) :]}"
