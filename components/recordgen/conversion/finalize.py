"""Whether what a run has left is usable: enough rows, and no finding that ``fail_on`` names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recordgen.core.dataset.lint import Lint
from recordgen.core.dataset.manifest import LINT_FILE, REJECTS_FILE
from recordgen.core.planning.plan import too_many
from recordgen.core.runs.commit import leave_failed
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.errors import (
    DataError,
    LintError,
    NothingToConvertError,
    RunnerError,
    TooManyRejectsError,
)
from recordgen.formats.missing_files import missing_hint
from recordgen.rejects import Reject, place_of, to_lines
from recordgen.storage.hosts import unreachable_text


def read_plan(staging: Staging) -> StagedPlan:
    """Return the plan. Raises: RunnerError if the run left none."""
    staged = staging.read_plan()
    if staged is None:
        raise RunnerError(f"the run ended without a plan in {staging.root}")
    return staged


def stop_unless_usable(
    staged: StagedPlan, examples: int, rejects: Sequence[Reject], output: str, most: float
) -> None:
    """Raise if there are no examples or too many rejects, after writing the rejects.

    ``examples`` are new, or planned; ``most`` is the allowed share of rejects.
    """
    usable = staged.existing + examples
    error = why_unusable(usable, staged.read, staged.dropped, rejects, most)
    if error is not None:
        path = leave_failed(output, REJECTS_FILE, to_lines(rejects)) if rejects else None
        raise type(error)(error.message, rejects=rejects, rejects_file=path, options=error.options)


def why_unusable(
    examples: int, read: int, dropped: int, rejects: Sequence[Reject], most: float
) -> DataError | None:
    """Return the error of a conversion without usable rows or with too many rejects, else None.

    ``dropped`` rows name no split; ``most`` is the allowed share of rejects.
    """
    hint, root = missing_hint(rejects)
    options = {"image_root": root} if root else {}
    if too_many(len(rejects), read, most):
        first = rejects[0]
        return TooManyRejectsError(
            f"{len(rejects)} of {read} rows were rejected, more than the allowed "
            f"{most:.2%} ({_by_reason(rejects)}), such as "
            f"{place_of(first.source, first.line, first.uri)}: {first.message:.300}; "
            f"{f'{hint}; ' if hint else ''}fix them or raise max_reject_fraction",
            rejects=rejects,
            options=options,
        )
    if not read:
        return NothingToConvertError(
            "nothing to convert: 0 rows read; the import files are empty or have only a header, so "
            "write a row for each example into them"
        )
    if not examples:
        return NothingToConvertError(
            f"nothing to convert: {read} rows read, {len(rejects)} rejected "
            f"({_by_reason(rejects)}), {dropped} dropped because they name no split"
            + (f"; {hint}" if hint else ""),
            rejects=rejects,
            options=options,
        )
    return None


def _by_reason(rejects: Sequence[Reject]) -> str:
    counts = Counter(item.code for item in rejects).most_common()
    reasons = ", ".join(f"{code} {count}" for code, count in counts) or "none"
    hosts = unreachable_text(rejects)
    return f"{reasons}; unreachable: {hosts}" if hosts else reasons


def stop_on_findings(lint: Lint, output: str) -> None:
    """Raise LintError if ``fail_on`` names a code of the findings, after writing the findings."""
    if lint.fatal:
        counts = ", ".join(f"{code} {count:,}" for code, count in lint.fatal.items())
        first = next(item for item in lint.findings() if item.code in lint.fatal)
        path = leave_failed(output, LINT_FILE, lint.lines())
        raise LintError(
            f"findings that fail_on names: {counts}, such as {first}; nothing was committed: fix "
            f"the data, or remove the code from fail_on and run it again with --resume; see {path}"
        )
