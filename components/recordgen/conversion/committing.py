"""Open the run that writes an output, and commit its shards with the files beside them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any, NamedTuple

from recordgen import storage
from recordgen.console.stopping import check_stopped
from recordgen.conversion.examining import all_facts
from recordgen.conversion.results import CheckResult, ConversionResult
from recordgen.conversion.work import Work, checked, read_outcome
from recordgen.core.conversion import Conversion
from recordgen.core.dataset import manifest
from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.facts.columns import Columns, to_parquet
from recordgen.core.planning.appending import Existing, merge, merge_findings
from recordgen.core.planning.plan import too_many
from recordgen.core.progress import COMMIT
from recordgen.core.runs.commit import Run, check_appendable, commit, leave_failed, open_run
from recordgen.core.runs.staging import StagedPlan
from recordgen.core.task.annotation import label_files
from recordgen.errors import DataError, LintError, NothingToConvertError, TooManyRejectsError
from recordgen.exports.export import CONVERTED, Output, described_names, exported, no_files
from recordgen.formats.image_root import missing_hint
from recordgen.formats.source import Source
from recordgen.lineage import Facets
from recordgen.messages.masking import masked
from recordgen.rejects import Finding, Reject, place_of, to_lines
from recordgen.storage.retries import unreachable_text

_log = logging.getLogger(__name__)


class UncommittedOutput(Output):
    """The output of a run before its commit: shards are still in the staging folder."""

    def __init__(
        self,
        root: str,
        result: CheckResult,
        path_of: Callable[[str], str],
        facts: Callable[[], Iterator[Columns]],
    ) -> None:
        super().__init__(root, result.dataset)
        self._path_of = path_of
        self.all_rejects = result.rejects
        self.lint = result.lint
        self.facts = facts

    def path_of(self, file: str) -> str:
        return self._path_of(file)

    def has_examples(self) -> bool:
        return True

    def example_parts(self, columns: Collection[str]) -> Iterator[Any]:
        return map(methodcaller("select", list(columns)), self.facts())

    def rejects(self, most: int) -> Sequence[Reject]:
        return self.all_rejects[:most]

    def findings(self, most: int) -> Sequence[LintFinding]:
        return list(self.lint.first(most))


def side_files(
    output: UncommittedOutput, findings: Iterable[Finding]
) -> dict[str, Iterable[bytes]]:
    """Return the files by name, for :func:`recordgen.core.runs.commit.commit`."""
    labels = label_files(output.dataset)
    return {
        **no_files(),
        **{name: [text.encode()] for name, text in labels.items()},
        **exported(output, CONVERTED),
        manifest.REJECTS_FILE: ["".join(to_lines(output.all_rejects)).encode()],
        manifest.FINDINGS_FILE: (line.encode() for line in to_lines(findings)),
        manifest.LINT_FILE: (line.encode() for line in output.lint.lines()),
        manifest.EXAMPLES_FILE: to_parquet(output.facts()),
    }


def facets_of(dataset: manifest.Dataset) -> Facets:
    """Return what lineage says of a dataset; only a run that sends events asks for it."""
    from recordgen.exports.lineage import facets_of

    return facets_of(dataset)


class Mode(NamedTuple):
    """What a run does with what its output holds; see :func:`recordgen.convert`."""

    overwrite: bool
    append: bool
    resume: bool


@contextmanager
def opened_run(
    source: Source, output: str, conversion: Conversion, mode: Mode, *, in_parts: bool = False
) -> Iterator[tuple[Run, Existing | None]]:
    """Open a run, and the dataset that it appends to, if any.

    Raises: as :func:`open_run`; UsageError: the source does not suit the existing dataset.
    """
    existing = None
    if mode.append:
        from recordgen.conversion.appending import check_can_append, find_existing

        check_can_append(conversion.task)
        check_appendable(output)
    described = described_names()
    with open_run(output, **mode._asdict(), in_parts=in_parts, described=described) as run:
        if run.leftovers:
            _log.info("%s: resuming an interrupted run", masked(output))
        if mode.append:
            existing = find_existing(output, conversion)
        source.check_folder(existing)
        yield run, existing


def committed(work: Work, run: Run, output: str) -> ConversionResult:
    """Check the results of a run, and commit them to ``output``. Raises: as :func:`convert`."""
    outcome, existing = read_outcome(work), work.existing
    rows, most = outcome.dataset.rows, work.conversion.max_reject_fraction
    stop_unless_usable(outcome.staged, rows.examples, outcome.rejects, output, most)
    adjustments = work.staging.read_findings(outcome.staged)
    kept: Collection[str] = ()
    if existing is not None:
        names, kept = existing.read_again(work.source.names), existing.files
        # This run has new rejects of the import files that it read again.
        old = [item for item in existing.rejects if item.source not in names]
        rejects = tuple(sorted({*old, *outcome.rejects}))
        dataset = merge(existing.dataset, outcome.dataset)
        outcome = replace(outcome, dataset=dataset, rejects=rejects)
        adjustments = merge_findings(output, names, adjustments)
    result = checked(work, outcome, partial(stop_on_findings, output=output))

    def path_of(file: str) -> str:
        return storage.join(output, file) if file in kept else run.staging.path(file)

    shards = [shard for each in outcome.results.values() for shard in each.shards]
    facts = partial(all_facts, run.staging, shards, existing)
    with work.phases.during(COMMIT):
        files = side_files(UncommittedOutput(output, result, path_of, facts), adjustments)
        check_stopped()
        commit(run.staging, output, result.dataset, files=files, kept=kept)
    splits = result.dataset.splits
    resumed = sum(each.kept for name, each in outcome.results.items() if name in splits)
    shown = {**vars(result), "kept_shards": resumed if run.leftovers else None}
    return ConversionResult(output=output, **shown)


def stop_unless_usable(
    staged: StagedPlan, examples: int, rejects: Sequence[Reject], output: str, most: float
) -> None:
    """Raise if there are no examples or too many rejects, after writing the rejects.

    ``examples`` are new, or planned; ``most`` is the allowed share of rejects.
    """
    usable = staged.existing + examples
    error = why_unusable(usable, staged.read, staged.dropped, rejects, most)
    if error is not None:
        path = leave_failed(output, manifest.REJECTS_FILE, to_lines(rejects)) if rejects else None
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
            f"{len(rejects):,} of {read:,} rows were rejected, more than the allowed "
            f"{most:.2%} ({_by_reason(rejects)}), such as "
            f"{place_of(first.source, first.line, first.uri)}: {first.message:.300}; "
            f"{f'{hint}; ' if hint else ''}fix them or raise --max-reject-fraction",
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
            f"nothing to convert: {read:,} rows read, {len(rejects):,} rejected "
            f"({_by_reason(rejects)}), {dropped} dropped because they name no split"
            + (f"; {hint}" if hint else ""),
            rejects=rejects,
            options=options,
        )
    return None


def _by_reason(rejects: Sequence[Reject]) -> str:
    counts = Counter(item.code for item in rejects).most_common()
    reasons = ", ".join(f"{code} {count:,}" for code, count in counts) or "none"
    hosts = unreachable_text(rejects)
    return f"{reasons}; unreachable: {hosts}" if hosts else reasons


def stop_on_findings(lint: Lint, output: str) -> None:
    """Raise LintError if ``fail_on`` names a code of the findings, after writing the findings."""
    if lint.fatal:
        path = leave_failed(output, manifest.LINT_FILE, lint.lines())
        raise LintError(
            f"{fatal_findings(lint)}; nothing was committed: fix the data, or remove the code from "
            f"fail_on and run it again with --resume; see {path}"
        )


def fatal_findings(lint: Lint) -> str:
    """Return the counts of the findings that ``fail_on`` names, and the first one."""
    counts = ", ".join(f"{code} {count:,}" for code, count in lint.fatal.items())
    first = next(item for item in lint.findings() if item.code in lint.fatal)
    return f"findings that fail_on names: {counts}, such as {first}"
