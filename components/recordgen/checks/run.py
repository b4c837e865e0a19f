"""Runs the selected checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from recordgen.checks.check import Check, CheckedTask, Examined, FoundRows
from recordgen.checks.selection import Selection
from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.facts import PAYLOADS
from recordgen.errors import UsageError
from recordgen.registry import CHECKS
from recordgen.rejects import Finding, OddLine


def need_packages(task: CheckedTask, selection: Selection) -> None:
    """Check that the packages for the selected checks of a task are installed.

    Raises:
        UsageError: a package is missing; the message names the extra that installs it.
    """
    for check in _checks_of(task, selection):
        if check.package and not find_spec(check.package):
            raise UsageError(
                f"select: {check.code} needs the package {check.package!r}, which is not "
                f"installed: pip install 'recordgen[{check.extra}]', or omit the code"
            )


def run_checks(
    examined: Examined[Any],
    odd_lines: Sequence[OddLine],
    changes: Iterable[Finding],
    adjusted: Mapping[str, int],
    selection: Selection,
    on_check: Callable[[str, int, int], None],
) -> Lint:
    """Run the selected checks.

    Args:
        examined: what they examine.
        odd_lines: findings in lines of import files.
        changes: changes in rows; the first of them if there are very many.
        adjusted: the numbers of all changes, by kind.
        selection: the selected checks.
        on_check: called before each check, with its code, its number from 0, and their number.
    """
    found, checks = {}, list(_checks_of(examined.task, selection))
    for number, check in enumerate(checks):
        on_check(check.code, number, len(checks))
        found[check.code] = list(check.findings(examined))
    examined.forget()
    by_kind = {CHECKS[code].counted_as: code for code in selection.codes if CHECKS[code].counted_as}
    changed = [it._replace(code=by_kind[it.code]) for it in changes if it.code in by_kind]
    about_lines: list[Finding] = [*odd_lines, *changed]
    rows = {
        code: [item for item in items if isinstance(item, FoundRows)]
        for code, items in found.items()
    }
    about_all = [
        LintFinding(code, CHECKS[code].level, "", 0, "", "", text)
        for code, items in found.items()
        for text in items
        if isinstance(text, str)
    ]
    counts = Counter(item.code for item in about_all)
    counts.update(item.code for item in odd_lines)
    for code, parts in rows.items():
        counts[code] += sum(len(part.rows) for part in parts)
    for kind, code in by_kind.items():
        counts[code] += adjusted.get(kind, 0)

    def of_code(code: str) -> Iterator[LintFinding]:
        level = CHECKS[code].level
        yield from (item for item in about_all if item.code == code)
        for it in about_lines:
            if it.code == code:
                yield LintFinding(code, level, it.source, it.line, it.uri, "", it.message)
        for part in rows.get(code, ()):
            for at, row in enumerate(part.rows):
                other = None if part.partners is None else part.partners[at]
                yield examined.facts.finding(code, level, row, part.message(at), other)

    in_order = {code: counts[code] for code in CHECKS if counts[code] and code in selection.codes}
    fatal = {code: count for code, count in in_order.items() if code in selection.fatal}
    return Lint(in_order, fatal, about_all, of_code, examined.remarks)


def _checks_of(task: CheckedTask, selection: Selection) -> Iterator[Check]:
    """Yield the selected checks that examine examples of a task, in the order of the registry."""
    has = {*task.facts, PAYLOADS}
    for code in CHECKS:
        if code in selection.codes and has.issuperset(CHECKS[code].needs):
            yield CHECKS[code]()
