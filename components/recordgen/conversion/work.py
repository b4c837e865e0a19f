"""The work of every run on a source: plan its rows, work on their shards, and examine the examples.

A conversion writes the shards, a check only reads what they would hold, and a repeated run compares
them with those that are there. All three end with the same dataset and the same findings.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from operator import methodcaller
from typing import Any, NamedTuple

from recordgen import storage
from recordgen.checks.check import Examined, ExampleFacts, run_checks
from recordgen.checks.selection import Selection
from recordgen.conversion.examination import examination_of
from recordgen.conversion.examining import all_facts, examine
from recordgen.conversion.results import CheckResult, ConversionResult
from recordgen.core.conversion import Conversion
from recordgen.core.dataset import manifest
from recordgen.core.dataset.counts import RowCounts, Split, dataset_digest
from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.dataset.manifest import INDEX_FILE, Dataset, shard_file, write_index
from recordgen.core.dataset.vocabulary import Vocabulary, with_seen
from recordgen.core.facts.columns import Columns, to_parquet
from recordgen.core.flow import graph
from recordgen.core.flow.graph import running
from recordgen.core.flow.runner import Flow, Runner
from recordgen.core.ordered import check_stopped
from recordgen.core.planning.appending import Existing, merge, merge_findings
from recordgen.core.planning.plan import too_many
from recordgen.core.progress import CHECKS, COMMIT, SHARDS, Phases
from recordgen.core.runs.commit import Run, check_appendable, commit, leave_failed, open_run
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.core.shards import SplitSum
from recordgen.core.task.annotation import label_files
from recordgen.core.task.task import GAP, HAS, INEXACT, Examples
from recordgen.errors import (
    DataError,
    LintError,
    NothingToConvertError,
    RunnerError,
    TooManyRejectsError,
)
from recordgen.exports.export import CONVERTED, Output, described_names, exported, no_files
from recordgen.features import IMAGE_OBJECT_KEYPOINT_X, OBJECTS, FeatureSpec
from recordgen.formats.image_root import missing_hint
from recordgen.formats.source import Source
from recordgen.lineage import Facets
from recordgen.messages import counted
from recordgen.messages.masking import masked
from recordgen.rejects import Finding, Reject, place_of, to_lines
from recordgen.storage.access import unreachable_text
from recordgen.version import __version__

# Limit on the findings in a result, which must stay small however many rows were changed.
_FINDINGS_KEPT = 10_000


@dataclass(frozen=True)
class Work:
    """What a run does, and where it leaves what it finds.

    Attributes:
        existing: the dataset that the run appends to; None if there is none.
        output: where the dataset will be; empty if nothing is written.
    """

    source: Source
    conversion: Conversion
    selection: Selection
    phases: Phases
    staging: Staging
    existing: Existing | None = None
    output: str = ""

    @contextmanager
    def running(self, runner: Runner) -> Iterator[Runner]:
        """Yield the runner to build a graph on, then run the graph. Raises: as ``runner.run``."""
        noun, progress = self.conversion.task.noun, self.phases.progress
        with self.phases.during(SHARDS), running(runner, self.staging, progress, noun):
            yield runner

    def run(self, runner: Runner, on_shards: Callable[[Flow], Flow]) -> None:
        """Plan all rows, work on their shards, and examine the examples. Raises: as ``running``."""
        with self.running(runner):
            shards = graph.plan_rows(
                runner, self.source, self.conversion, self.staging, self.existing
            )
            self.examine(runner, on_shards(shards))

    def examine(self, runner: Runner, shards: Flow) -> None:
        """Examine the examples of ``shards``, which has the names of their files."""
        shared = examination_of(
            self.source, self.conversion, self.selection, self.staging, self.existing
        )
        examine(runner, shards, shared, self.existing)


@dataclass(frozen=True)
class Outcome:
    """What the steps of a run have left.

    Attributes:
        dataset: the new shards, without those of a dataset that they are appended to.
        rejects: of planning and of writing, sorted.
    """

    staged: StagedPlan
    results: Mapping[str, SplitSum]
    dataset: Dataset
    rejects: tuple[Reject, ...]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the run by the names of :mod:`recordgen.core.progress`."""
        return self.staged.totals(self.results.values())


def read_plan(staging: Staging) -> StagedPlan:
    """Return the plan. Raises: RunnerError if the run left none."""
    staged = staging.read_plan()
    if staged is None:
        raise RunnerError(f"the run ended without a plan in {staging.root}")
    return staged


def read_outcome(work: Work) -> Outcome:
    """Return what the steps have left. Raises: RunnerError: a shard or a row is missing."""
    staged = read_plan(work.staging)
    results = work.staging.read_results()
    _check_complete(staged, results, work.conversion)
    rejects = [*staged.rejects, *(item for each in results.values() for item in each.rejects)]
    dataset = _dataset(work, staged, results, Counter(item.code for item in rejects))
    return Outcome(staged, results, dataset, tuple(sorted(rejects)))


def _check_complete(
    staged: StagedPlan, results: Mapping[str, SplitSum], conversion: Conversion
) -> None:
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


def _dataset(
    work: Work, staged: StagedPlan, results: Mapping[str, SplitSum], rejected: Mapping[str, int]
) -> Dataset:
    source, conversion, task = work.source, work.conversion, work.conversion.task
    splits: dict[str, Split] = {}
    for name in staged.splits:
        if name in results and results[name].examples:
            split = results[name].split()
            is_labelled = task.labelling is not None
            splits[name] = split if is_labelled else replace(split, unlabelled=0)
    reencoded: Counter[str] = Counter()
    adjusted = Counter(staged.adjusted)
    for each in results.values():
        reencoded.update(each.reencoded)
        adjusted.update(each.changes)
    features, inexact = _described(task, adjusted)
    objects = tuple(name for name in OBJECTS if adjusted.pop(f"{HAS}{name}", 0))
    seen = {label for split in splits.values() for label in split.labels}
    vocabulary = with_seen(staged.vocabulary, seen)
    rows = RowCounts(
        read=staged.read,
        examples=sum(split.examples for split in splits.values()),
        duplicates=staged.duplicates,
        merged=staged.merged,
        adjusted=dict(sorted(adjusted.items())),
        dropped=staged.dropped,
        existing=staged.existing,
        assigned=sum(each.assigned for each in results.values()),
        rejected=dict(sorted(rejected.items())),
    )
    return Dataset(
        task=task.name,
        recordgen_version=__version__,
        source=source.names,
        seed=conversion.splits.seed,
        options=conversion.recorded,
        compression=conversion.shards.compression,
        label_kind=vocabulary.kind,
        labels=vocabulary.names,
        splits=splits,
        rows=rows,
        reencoded=dict(sorted(reencoded.items())),
        warnings=vocabulary.warnings,
        digest=dataset_digest([shard for split in splits.values() for shard in split.shards]),
        features=features,
        inexact=inexact,
        objects=objects,
        keypoints=source.keypoints if IMAGE_OBJECT_KEYPOINT_X in objects else {},
        folder=storage.folder_of(source.names[0]) if task.by_address else "",
        source_folder=source.folder_from(work.output),
    )


def _described(
    task: Examples, adjusted: Counter[str]
) -> tuple[Mapping[str, FeatureSpec], tuple[str, ...]]:
    """Return the features of examples, and those of whole numbers that float32 cannot hold.

    Takes what shards have counted about whole numbers out of ``adjusted``: a feature that all
    examples have needs no default.
    """
    found = dict(task.stored_features())
    for name, spec in found.items():
        if not adjusted.pop(f"{GAP}{name}", 0) and spec.has_gaps:
            found[name] = replace(spec, default=None)
    return found, tuple(name for name in found if adjusted.pop(f"{INEXACT}{name}", 0))


def checked(
    work: Work, outcome: Outcome, stop: Callable[[Lint], None] | None = None
) -> CheckResult:
    """Run the checks on the whole dataset of an outcome, and write its index to the staging folder.

    ``outcome`` is as read, or merged with the dataset that the run appends to; ``stop`` raises an
    error if there are findings with which the run must not go on.

    Raises: as ``stop``, and as :func:`recordgen.access.shards.lengths_there`.
    """
    findings = tuple(islice(work.staging.read_findings(outcome.staged), _FINDINGS_KEPT))
    with work.phases.during(CHECKS):
        found = work.staging.read_found()
        lint = run_checks(
            _about_splits(work, outcome.dataset),
            replace(found, files={**outcome.staged.line_files, **found.files}),
            work.staging.read_lines,
            findings,
            outcome.staged.adjusted,
            work.selection,
        )
    if stop is not None:
        stop(lint)
    general = (item.message for item in lint.about_all)
    advice = work.conversion.task.advice()
    warnings = (*outcome.dataset.warnings, *general, *lint.remarks, *advice)
    return CheckResult(
        dataset=replace(_indexed(work, outcome.dataset), warnings=warnings, lint=lint.counts),
        rejects=outcome.rejects,
        seconds=0.0,  # not known yet
        counts=outcome.counts,
        findings=findings,
        detection=work.source.detection,
        lint=lint,
        phases=work.phases.seconds,
    )


def _about_splits(work: Work, dataset: Dataset) -> Examined[Any]:
    labels = work.conversion.labels
    return Examined(
        ExampleFacts(()),
        work.conversion.task,
        work.selection.thresholds,
        vocabulary=dataset.vocabulary or Vocabulary(dataset.label_kind, ()),
        splits=dataset.splits,
        eval_from=str(work.conversion.splits.share or ""),
        are_numbers_given=labels.mode == "integer" or bool(labels.vocabulary),
    )


def _indexed(work: Work, dataset: Dataset) -> Dataset:
    """Write the index, and return the dataset with its name."""
    path, of_new = work.staging.path(INDEX_FILE), work.staging.lengths
    if work.existing is None:
        return write_index(path, dataset, of_new)
    from recordgen.access.shards import lengths_there  # only an append needs it

    of_old, kept = lengths_there(work.existing.output, work.existing.dataset), work.existing.files
    return write_index(path, dataset, lambda file: (of_old if file in kept else of_new)(file))


# --- open the run that writes an output, and commit its shards with the files beside them ---------


_log = logging.getLogger(__name__)


@dataclass(eq=False)
class UncommittedOutput(Output):
    """The output of a run before its commit: shards are still in the staging folder."""

    result: CheckResult
    shard_path: Callable[[str], str]
    facts: Callable[[], Iterator[Columns]]

    def path_of(self, file: str) -> str:
        return self.shard_path(file)

    def has_examples(self) -> bool:
        return True

    def example_parts(self, columns: Collection[str]) -> Iterator[Any]:
        return map(methodcaller("select", list(columns)), self.facts())

    def rejects(self, most: int) -> Sequence[Reject]:
        return self.result.rejects[:most]

    def findings(self, most: int) -> Sequence[LintFinding]:
        return list(self.result.lint.first(most))


def side_files(
    output: UncommittedOutput, findings: Iterable[Finding]
) -> dict[str, Iterable[bytes]]:
    """Return the files by name, for :func:`recordgen.core.runs.commit.commit`."""
    labels = label_files(output.dataset)
    return {
        **no_files(),
        **{name: [text.encode()] for name, text in labels.items()},
        **exported(output, CONVERTED),
        manifest.REJECTS_FILE: ["".join(to_lines(output.result.rejects)).encode()],
        manifest.FINDINGS_FILE: (line.encode() for line in to_lines(findings)),
        manifest.LINT_FILE: (line.encode() for line in output.result.lint.lines()),
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
        shown = UncommittedOutput(output, result.dataset, result, path_of, facts)
        files = side_files(shown, adjustments)
        check_stopped()
        commit(run.staging, output, result.dataset, files=files, kept=kept)
    splits = result.dataset.splits
    resumed = sum(each.kept for name, each in outcome.results.items() if name in splits)
    kept_shards = resumed if run.leftovers else None
    return ConversionResult(output=output, **{**vars(result), "kept_shards": kept_shards})


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
    are_too_many = too_many(len(rejects), read, most)
    if read and examples and not are_too_many:
        return None
    hint, root = missing_hint(rejects, read)
    options = {"image_root": root} if root else {}
    if are_too_many:
        first = rejects[0]
        return TooManyRejectsError(
            f"rejected {len(rejects):,} of {counted(read, 'row')}, more than the allowed "
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
    return NothingToConvertError(
        f"nothing to convert: {read:,} rows read, {len(rejects):,} rejected "
        f"({_by_reason(rejects)}), {dropped} dropped because they name no split"
        + (f"; {hint}" if hint else ""),
        rejects=rejects,
        options=options,
    )


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
