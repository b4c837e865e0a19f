"""The return values of ``check``, ``convert``, ``plan`` and :mod:`recordgen.parts`."""

from __future__ import annotations

import inspect
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from recordgen.console.terminal import one_line
from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.rows.row import is_worth_naming
from recordgen.core.runs.staging import StagedPlan
from recordgen.errors import RecordgenWarning
from recordgen.formats.detect import Detection
from recordgen.messages import Shown, counted, shortened
from recordgen.messages.masking import masked
from recordgen.options import OPTIONS
from recordgen.registry import OWN
from recordgen.rejects import Finding, Reject, place_of
from recordgen.tasks.suiting import remedies_of


@dataclass(frozen=True, repr=False)
class PlanResult(Shown, StagedPlan):
    """The result of a dry run: the plan.

    Attributes:
        detection: detected format, task and columns of the source.
    """

    detection: Detection | None = None


@dataclass(frozen=True, repr=False)
class PartsResult(PlanResult):
    """The result of planning a run in parts.

    Attributes:
        output: the folder or URL prefix whose staging folder has the plan.
        parts: number of parts; those from ``shards`` on have nothing to do.
    """

    output: str = ""
    parts: int = 0


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """The result of work on a part.

    Attributes:
        part: its number; -1 if the dataset is committed.
        parts: number of parts of the run; 0 if the dataset is committed, as are ``shards``.
        shards: number of shards of the part.
        was_done: the part was finished already, or has no shards.
        is_committed: the dataset of all parts is committed already.
    """

    output: str
    part: int = -1
    parts: int = 0
    shards: int = 0
    seconds: float = 0.0
    was_done: bool = False
    is_committed: bool = False


def _no_findings() -> Lint:
    return Lint({}, {}, (), lambda _: iter(()))


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckResult(Shown):
    """The result of a check: what a conversion would write.

    Attributes:
        dataset: the content that ``dataset.json`` would have; its shards have no bytes.
        rejects: rejected rows, as in ``rejects.jsonl``.
        findings: the first 10,000 changes in rows; ``rows.adjusted`` counts all.
        seconds: wall-clock time.
        counts: counts by the names of :mod:`recordgen.core.progress`.
        detection: detected format, task and columns of the source.
        lint: findings of the checks, as in ``lint.jsonl``.
        phases: seconds of each phase, see :mod:`recordgen.core.progress`.
    """

    dataset: Dataset
    rejects: tuple[Reject, ...]
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    detection: Detection | None = None
    lint: Lint = field(default_factory=_no_findings)
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, repr=False)
class ConversionResult(CheckResult):
    """The result of a conversion, with the attributes of :class:`CheckResult`.

    Attributes:
        output: the folder or URL prefix that was written.
        kept_shards: shards of an interrupted run that were kept; None if nothing was resumed.
        unchanged: the output held the same dataset already, so nothing was written.
    """

    output: str
    kept_shards: int | None = None
    unchanged: bool = False


# --- warnings, and options in messages as the user of each door types them ------------------------

#     use --columns path=1,label=2, or --append    ↔    use columns='path=1,label=2', or append=True
#
# Warnings say what the commands print about rejects and findings. A message is written once, in
# either spelling: :func:`as_keywords` is for Python, :func:`as_flags` for the command.

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
