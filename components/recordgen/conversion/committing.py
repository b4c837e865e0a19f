"""Open the run that writes an output, and commit its shards with the files beside them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import methodcaller
from typing import Any

from recordgen import storage
from recordgen.checks.selection import Selection
from recordgen.console.stopping import check_stopped
from recordgen.conversion.appending import check_can_append, find_existing
from recordgen.conversion.dataset import to_dataset
from recordgen.conversion.examining import all_facts
from recordgen.conversion.finalize import (
    all_rejects,
    first_findings,
    indexed,
    linted,
    read_outcome,
    stop_on_findings,
    stop_unless_usable,
)
from recordgen.conversion.results import ConversionResult
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.dataset.manifest import (
    EXAMPLES_FILE,
    FINDINGS_FILE,
    LINT_FILE,
    REJECTS_FILE,
    Dataset,
)
from recordgen.core.facts.columns import Columns, to_parquet
from recordgen.core.planning.appending import Existing, merge, merge_findings
from recordgen.core.progress import COMMIT, Phases
from recordgen.core.runs.commit import Run, check_appendable, commit, open_run
from recordgen.core.runs.counters import total_counts
from recordgen.core.task.stored import label_files
from recordgen.exports.beside import CONVERTED, described_names, exported, no_files
from recordgen.exports.output import Output
from recordgen.formats.source import Source
from recordgen.messages.masking import masked
from recordgen.rejects import Finding, Reject, to_lines

_log = logging.getLogger(__name__)


class UncommittedOutput(Output):
    """The output of a run before its commit: shards are still in the staging folder."""

    def __init__(
        self,
        root: str,
        dataset: Dataset,
        path_of: Callable[[str], str],
        rejects: Sequence[Reject],
        lint: Lint,
        facts: Callable[[], Iterator[Columns]],
    ) -> None:
        super().__init__(root, dataset)
        self._path_of = path_of
        self.all_rejects = rejects
        self.lint = lint
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
        REJECTS_FILE: ["".join(to_lines(output.all_rejects)).encode()],
        FINDINGS_FILE: (line.encode() for line in to_lines(findings)),
        LINT_FILE: (line.encode() for line in output.lint.lines()),
        EXAMPLES_FILE: to_parquet(output.facts()),
    }


@contextmanager
def opened_run(
    output: str,
    conversion: Conversion,
    *,
    overwrite: bool,
    append: bool,
    resume: bool,
    in_parts: bool = False,
) -> Iterator[tuple[Run, Existing | None]]:
    """Open a run, and the dataset that it appends to, if any. Raises: as :func:`open_run`."""
    if append:
        check_can_append(conversion.task)
        check_appendable(output)
    with open_run(
        output,
        overwrite=overwrite,
        append=append,
        resume=resume,
        in_parts=in_parts,
        described=described_names(),
    ) as run:
        if run.leftovers:
            _log.info("%s: resuming an interrupted run", masked(output))
        yield run, find_existing(output, conversion) if append else None


def committed(
    run: Run,
    source: Source,
    output: str,
    conversion: Conversion,
    selection: Selection,
    existing: Existing | None,
    phases: Phases,
) -> ConversionResult:
    """Check the results of a run, and commit them to ``output``. Raises: as :func:`convert`."""
    staged, results = read_outcome(run.staging, conversion)
    rejects = all_rejects(staged, results)
    examples = sum(each.examples for each in results.values())
    stop_unless_usable(staged, examples, rejects, output, conversion.max_reject_fraction)
    dataset = to_dataset(source, staged, results, conversion)
    found = run.staging.read_findings(staged)
    kept: Collection[str] = ()
    if existing is not None:
        dataset = merge(existing.dataset, dataset)
        # This run has new rejects of the import files that it read again.
        old = [item for item in existing.rejects if item.source not in source.names]
        rejects = tuple(sorted({*old, *rejects}))
        found = merge_findings(output, source.names, found)
        kept = existing.files
    shards = [shard for each in results.values() for shard in each.shards]
    facts = partial(all_facts, run.staging, shards, existing)
    first = first_findings(run.staging, staged)
    dataset, lint = linted(dataset, run.staging, staged, first, conversion, selection, phases)
    stop_on_findings(lint, output)
    dataset = indexed(dataset, run.staging, existing)

    def path_of(file: str) -> str:
        return storage.join(output, file) if file in kept else run.staging.path(file)

    described = UncommittedOutput(output, dataset, path_of, rejects, lint, facts)
    with phases.during(COMMIT):
        files = side_files(described, found)
        check_stopped()
        commit(run.staging, output, dataset, files=files, kept=kept)
    resumed = sum(each.kept for name, each in results.items() if name in dataset.splits)
    return ConversionResult(
        output=output,
        dataset=dataset,
        rejects=rejects,
        seconds=0.0,  # not known yet
        counts=total_counts(staged, results.values()),
        kept_shards=resumed if run.leftovers else None,
        findings=first,
        detection=source.detection,
        lint=lint,
        phases=phases.seconds,
    )
