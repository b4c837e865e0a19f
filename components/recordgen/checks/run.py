"""Runs the selected checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice

from recordgen.checks.codes import CHECKS, ERROR, PACKAGES, REPEATED, count_level
from recordgen.checks.contents import LintedTask, OpenPayload
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.findings import AboutAll, FoundRows, LintFinding
from recordgen.checks.selection import Selection
from recordgen.errors import UsageError
from recordgen.registry import imported
from recordgen.rejects import Finding
from recordgen.shown import Shown


@dataclass(frozen=True, repr=False)
class Lint(Shown):
    """The result of the checks.

    Attributes:
        counts: number of findings by code, in the order of the codes.
        fatal: the counts of codes that fail a run.
        about_all: findings about the dataset as a whole.
    """

    counts: Mapping[str, int]
    fatal: Mapping[str, int]
    about_all: Sequence[LintFinding]
    _lines: Sequence[LintFinding]
    _facts: ExampleFacts
    _hits: Sequence[FoundRows]

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return count_level(self.counts, ERROR)

    @property
    def is_bad(self) -> bool:
        """Whether there are errors, or findings that fail a run."""
        return bool(self.errors or self.fatal)

    def findings(self) -> Iterator[LintFinding]:
        """Yield all findings, code by code, each by import file and line."""
        for code in self.counts:
            yield from self._of(code)

    def first(self, count: int) -> Iterator[LintFinding]:
        """Yield the first findings of each code."""
        for code in self.counts:
            yield from islice(self._of(code), count)

    def _of(self, code: str) -> Iterator[LintFinding]:
        yield from (item for item in (*self.about_all, *self._lines) if item.code == code)
        for hits in self._hits:
            if hits.code == code:
                for at, row in enumerate(hits.rows):
                    level = CHECKS[code].level
                    other = None if hits.partners is None else hits.partners[at]
                    yield self._facts.finding(code, level, row, hits.message(at), other)

    def lines(self) -> Iterator[str]:
        """Yield the lines of ``lint.jsonl``."""
        return (item.to_line() for item in self.findings())


def need_packages(task: LintedTask, selection: Selection) -> None:
    """Check that the packages for the selected checks of a task are installed.

    Raises:
        UsageError: a package is missing; the message names the extra that installs it.
    """
    for code in sorted(selection.codes):
        check = CHECKS[code]
        if check.extra and check.finder in task.checks and not find_spec(PACKAGES[check.extra]):
            raise UsageError(
                f"select: {code} needs the package {PACKAGES[check.extra]!r}, which is not "
                f"installed: pip install 'recordgen[{check.extra}]', or omit the code"
            )


def run_checks(
    facts: ExampleFacts,
    task: LintedTask,
    about_all: Iterable[tuple[str, str]],
    lines: Iterable[Finding],
    lines_by_code: Mapping[str, int],
    selection: Selection,
    open_payload: OpenPayload,
) -> Lint:
    """Run the selected checks.

    Args:
        facts: facts about all examples.
        task: the task of the examples.
        about_all: codes and messages of findings about the dataset as a whole.
        lines: findings about lines of import files; the first of them if there are very many.
        lines_by_code: the number of findings about lines, by code.
        selection: the selected checks.
        open_payload: opens the payload of an example, for checks that need it.
    """
    wanted = selection.codes
    found = [
        item
        for path in (REPEATED, *task.checks)
        if any(CHECKS[code].finder == path for code in wanted)
        for item in _finder(path, open_payload)(facts, task, selection.thresholds)
        if item.code in wanted
    ]
    hits = [item for item in found if isinstance(item, FoundRows)]
    columns = [item for item in found if isinstance(item, AboutAll)]
    general = [
        LintFinding(code, CHECKS[code].level, "", 0, "", "", text)
        for code, text in (*about_all, *columns)
        if code in wanted
    ]
    about_lines = [
        LintFinding(it.code, CHECKS[it.code].level, it.source, it.line, it.uri, "", it.message)
        for it in lines
        if it.code in wanted
    ]
    counts = Counter(item.code for item in general)
    counts.update({code: count for code, count in lines_by_code.items() if code in wanted})
    for each in hits:
        counts[each.code] += len(each.rows)
    in_order = {code: counts[code] for code in CHECKS if counts[code]}
    fatal = {code: count for code, count in in_order.items() if code in selection.fatal}
    return Lint(in_order, fatal, general, about_lines, facts, hits)


def _finder(path: str, open_payload: OpenPayload) -> Callable[..., Iterable[FoundRows | AboutAll]]:
    """Return the function at a path, bound to ``open_payload`` if its checks open payloads."""
    finder: Callable[..., Iterable[FoundRows | AboutAll]] = imported(path)
    opens = any(check.finder == path and check.extra for check in CHECKS.values())
    return partial(finder, open_payload=open_payload) if opens else finder
