"""Runs the selected checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from recordgen.checks.check import NONE, Check, CheckedTask, Examined
from recordgen.checks.selection import Selection
from recordgen.core.dataset.lint import Found, LineSpool, Lint, LintFinding
from recordgen.registry import CHECKS
from recordgen.rejects import Finding


def run_checks(
    about_splits: Examined[Any],
    found: Found,
    lines_of: Callable[[str], Iterator[bytes]],
    changes: Iterable[Finding],
    adjusted: Mapping[str, int],
    selection: Selection,
) -> Lint:
    """Run the selected checks that need no examples, and collect all findings.

    ``found`` is what steps have found; ``lines_of`` returns their findings of one of its codes, as
    lines of JSON. ``changes`` may be the first of very many, ``adjusted`` has their numbers.
    """
    by_kind = {CHECKS[code].counted_as: code for code in selection.codes if CHECKS[code].counted_as}
    changed = [it._replace(code=by_kind[it.code]) for it in changes if it.code in by_kind]
    checks = {check.code: check for check in checks_of(about_splits.task, selection)}
    remarks, about_all, lines = [*found.remarks], list[LintFinding](), LineSpool()
    counts = Counter({code: adjusted.get(kind, 0) for kind, code in by_kind.items()})
    for code in (code for code in CHECKS if code in selection.codes):
        check, level = checks.get(code), CHECKS[code].level
        texts: list[str] = [*found.about_all.get(code, ())]
        if check is not None and check.scope == NONE:
            texts += map(str, check.findings(about_splits))
        mine = [LintFinding(code, level, "", 0, "", "", text) for text in texts]
        about_all += mine
        lines.add(code, (item.to_line().encode() for item in mine))
        counts[code] += len(mine)
        if code in found.codes:
            counts[code] += lines.add(code, lines_of(code))
        fixed = (
            LintFinding(code, level, *it[:3], "", it.message) for it in changed if it.code == code
        )
        lines.add(code, (item.to_line().encode() for item in fixed))
    remarks += about_splits.remarks
    in_order = {code: counts[code] for code in CHECKS if counts[code] and code in selection.codes}
    fatal = {code: count for code, count in in_order.items() if code in selection.fatal}
    return Lint(in_order, fatal, about_all, lines.read, remarks)


def checks_of(task: CheckedTask, selection: Selection) -> Iterator[Check]:
    """Yield the selected checks that examine examples of a task, in the order of the registry."""
    for code in CHECKS:
        if code in selection.codes and set(CHECKS[code].needs) <= set(task.facts):
            yield CHECKS[code]()
