"""The end of a run: its plan, its results and what its checks found; whether they are usable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from recordgen.checks.check import Examined
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.run import FoundByWorkers, run_checks
from recordgen.checks.selection import Selection
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.index import write_index
from recordgen.core.dataset.lint import Lint
from recordgen.core.dataset.manifest import INDEX_FILE, LINT_FILE, REJECTS_FILE, Dataset, shard_file
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.planning.appending import Existing
from recordgen.core.planning.plan import too_many
from recordgen.core.progress import CHECKS, Phases
from recordgen.core.runs.commit import leave_failed
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.core.shards.task import SplitSum
from recordgen.errors import (
    DataError,
    LintError,
    NothingToConvertError,
    RunnerError,
    TooManyRejectsError,
)
from recordgen.formats.missing_files import missing_hint
from recordgen.rejects import Finding, Reject, place_of, to_lines
from recordgen.storage.hosts import unreachable_text

# Limit on the findings in a result, which must stay small however many rows were changed.
_FINDINGS_KEPT = 10_000


def read_plan(staging: Staging) -> StagedPlan:
    """Return the plan. Raises: RunnerError if the run left none."""
    staged = staging.read_plan()
    if staged is None:
        raise RunnerError(f"the run ended without a plan in {staging.root}")
    return staged


def read_outcome(
    staging: Staging, conversion: Conversion
) -> tuple[StagedPlan, dict[str, SplitSum]]:
    """Return the plan, and the results of all its shards by split.

    Raises: RunnerError: a shard or a row is missing.
    """
    staged = read_plan(staging)
    results = staging.read_results()
    planned = {
        shard_file(split, index, numbers["shards"], conversion.shards.compression)
        for split, numbers in staged.splits.items()
        for index in range(numbers["first"], numbers["shards"])
    }
    if too_many(len(staged.rejects), staged.read, conversion.max_reject_fraction):
        planned = set()  # then nothing is written
    found = {shard.file for each in results.values() for shard in each.shards}
    if found != planned:
        odd = sorted(found ^ planned)
        raise RunnerError(
            f"the run ended with {len(found)} of {len(planned)} shards (such as {odd[0]}); "
            f"run it again"
        )
    done = sum(each.examples + len(each.rejects) for each in results.values())
    rows = staged.rows if planned else 0
    if done != rows:
        raise RunnerError(f"the run ended with {done} of {rows} planned rows; run it again")
    return staged, results


def all_rejects(staged: StagedPlan, results: Mapping[str, SplitSum]) -> tuple[Reject, ...]:
    """Return the rejects of planning and of writing, sorted."""
    rejects = [*staged.rejects, *(item for each in results.values() for item in each.rejects)]
    return tuple(sorted(rejects))


def indexed(dataset: Dataset, staging: Staging, existing: Existing | None = None) -> Dataset:
    """Write the index to the staging folder, and return the dataset with the name of its index.

    The folder holds the lengths of new shards, which are appended to ``existing``.

    Raises: as :func:`recordgen.access.index.lengths_there`.
    """
    of_new = staging.shard_lengths
    if existing is None:
        return write_index(staging.path(INDEX_FILE), dataset, of_new)
    from recordgen.access.index import lengths_there  # only an append needs it

    of_old, kept = lengths_there(existing.output, existing.dataset), existing.files

    def lengths_of(file: str) -> bytes:
        return of_old(file) if file in kept else of_new(file)

    return write_index(staging.path(INDEX_FILE), dataset, lengths_of)


def first_findings(staging: Staging, staged: StagedPlan) -> tuple[Finding, ...]:
    """Return the first findings, by import file and line."""
    return tuple(islice(staging.read_findings(staged), _FINDINGS_KEPT))


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
        path = leave_failed(output, LINT_FILE, lint.lines())
        raise LintError(
            f"{fatal_findings(lint)}; nothing was committed: fix the data, or remove the code from "
            f"fail_on and run it again with --resume; see {path}"
        )


def fatal_findings(lint: Lint) -> str:
    """Return the counts of the findings that ``fail_on`` names, and the first one."""
    counts = ", ".join(f"{code} {count:,}" for code, count in lint.fatal.items())
    first = next(item for item in lint.findings() if item.code in lint.fatal)
    return f"findings that fail_on names: {counts}, such as {first}"


def linted(
    dataset: Dataset,
    staging: Staging,
    staged: StagedPlan,
    changes: Sequence[Finding],
    conversion: Conversion,
    selection: Selection,
    phases: Phases,
) -> tuple[Dataset, Lint]:
    """Run the checks; return the dataset with their warnings and counts, and all findings.

    The staging folder holds what their steps have found; ``changes`` are the first ones in rows.
    """
    task, labels = conversion.task, conversion.labels
    about_splits = Examined[Any](
        ExampleFacts(()),
        task,
        selection.thresholds,
        vocabulary=dataset.vocabulary or Vocabulary(dataset.label_kind, ()),
        splits=dataset.splits,
        eval_from=str(conversion.splits.share or ""),
        are_numbers_given=labels.mode == "integer" or bool(labels.vocabulary),
    )
    with phases.during(CHECKS):
        about_all, remarks = staging.read_about()
        lint = run_checks(
            about_splits,
            FoundByWorkers(staging.read_lines, about_all, remarks),
            changes,
            staged.adjusted,
            selection,
        )
    general = (item.message for item in lint.about_all)
    warnings = (*dataset.warnings, *general, *lint.remarks, *task.advice())
    return replace(dataset, warnings=warnings, lint=lint.counts), lint
