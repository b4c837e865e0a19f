"""Warnings of the Python API, and options in messages as the user of each door types them.

    use --columns path=1,label=2, or --append    ↔    use columns='path=1,label=2', or append=True

Warnings say what the commands print about rejects and findings. A message is written once, in
either spelling: :func:`as_keywords` is for Python, :func:`as_flags` for the command.
"""

from __future__ import annotations

import inspect
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from types import FrameType

from recordgen.console.terminal import one_line
from recordgen.conversion.results import CheckResult, ConversionResult, PlanResult
from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.rows.row import is_worth_naming
from recordgen.errors import RecordgenWarning
from recordgen.messages import counted, shortened
from recordgen.messages.masking import masked
from recordgen.options import OPTIONS
from recordgen.registry import OWN
from recordgen.rejects import Reject, place_of
from recordgen.tasks.suiting import remedies_of

# A message may quote a whole row.
_MESSAGE_SHOWN = 400

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


def warn_about(result: CheckResult | PlanResult) -> None:
    """Warn once for each code of rejects and findings, at the user's line."""
    for text in _texts(result):
        _warn(one_line(masked(text)))


def _texts(result: CheckResult | PlanResult) -> Iterator[str]:
    if isinstance(result, PlanResult):
        yield from _about_rejects(result.rejects, "the plan's rejects")
        yield from map(as_keywords, result.vocabulary.warnings)
        return
    files = f"{result.output}/" if isinstance(result, ConversionResult) else ""
    rejects = f"{files}rejects.jsonl" if files else "the result's rejects"
    yield from _about_rejects(result.rejects, rejects)
    where = f"{files}lint.jsonl" if files else "the result's lint.findings()"
    yield from _about_findings(result.lint, result.dataset, where)
    known = {item.message for item in result.lint.about_all}
    yield from (as_keywords(text) for text in result.dataset.warnings if text not in known)


def _about_rejects(rejects: Sequence[Reject], where: str) -> Iterator[str]:
    first = {item.code: item for item in reversed(rejects)}
    for code, count in sorted(Counter(item.code for item in rejects).items()):
        place = _place(first[code])
        yield f"{code}: {counted(count, 'rejected row')}. First: {place}. All: {where}"


def _about_findings(lint: Lint, dataset: Dataset, where: str) -> Iterator[str]:
    for item in lint.first(1):
        remedy = f"lint='-{item.code}' skips this check"
        if known := remedies_of(item.code, dataset):
            remedy = f"{as_keywords(known)}; {remedy}"
        yield (
            f"{item.code}: {counted(lint.counts[item.code], item.level)}. First: {_place(item)}. "
            f"Remedy: {remedy}. All: {where}"
        )


def _place(item: Reject | LintFinding) -> str:
    """Return ``file:line: message [uri]``; only the message if the whole dataset is concerned."""
    where = f"{place_of(item.source, item.line, item.uri)}: " if item.source else ""
    uri = f" [{item.uri}]" if is_worth_naming(item) else ""
    return f"{where}{as_keywords(shortened(item.message, _MESSAGE_SHOWN))}{uri}"


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


def _warn(text: str) -> None:
    """Warn at the line that called the package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RecordgenWarning, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == __package__.partition(".")[0]
