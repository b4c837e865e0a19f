"""Warnings of the Python API: what the commands print about rejects and findings."""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from types import FrameType

from recordgen.console.terminal import one_line
from recordgen.conversion.results import CheckResult, ConversionResult, PlanResult
from recordgen.conversion.texts.summaries import is_worth_naming
from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.dataset.manifest import Dataset
from recordgen.errors import RecordgenWarning
from recordgen.messages import shortened
from recordgen.messages.masking import masked
from recordgen.options.spelling import as_keywords
from recordgen.rejects import Reject, place_of
from recordgen.tasks.suiting import remedies_of

# A message may quote a whole row.
_MESSAGE_SHOWN = 400


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
    known: set[str] = set()
    if (lint := result.lint) is not None:
        where = f"{files}lint.jsonl" if files else "the result's lint.findings()"
        yield from _about_findings(lint, result.dataset, where)
        known = {item.message for item in lint.about_all}
    yield from (as_keywords(text) for text in result.dataset.warnings if text not in known)


def _about_rejects(rejects: Sequence[Reject], where: str) -> Iterator[str]:
    first = {item.code: item for item in reversed(rejects)}
    for code, count in sorted(Counter(item.code for item in rejects).items()):
        place = _place(first[code])
        yield f"{code}: {_number(count, 'rejected row')}. First: {place}. All: {where}"


def _about_findings(lint: Lint, dataset: Dataset, where: str) -> Iterator[str]:
    for item in lint.first(1):
        remedy = f"lint='-{item.code}' skips this check"
        if known := remedies_of(item.code, dataset):
            remedy = f"{as_keywords(known)}; {remedy}"
        yield (
            f"{item.code}: {_number(lint.counts[item.code], item.level)}. First: {_place(item)}. "
            f"Remedy: {remedy}. All: {where}"
        )


def _place(item: Reject | LintFinding) -> str:
    """Return ``file:line: message [uri]``; only the message if the whole dataset is concerned."""
    where = f"{place_of(item.source, item.line, item.uri)}: " if item.source else ""
    uri = f" [{item.uri}]" if is_worth_naming(item) else ""
    return f"{where}{as_keywords(shortened(item.message, _MESSAGE_SHOWN))}{uri}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _warn(text: str) -> None:
    """Warn at the line that called the package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RecordgenWarning, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == __package__.partition(".")[0]
