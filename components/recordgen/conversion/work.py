"""The work of every run on a source: plan its rows, work on their shards, and examine the examples.

A conversion writes the shards, a check only reads what they would hold, and a repeated run compares
them with those that are there. All three end with the same dataset and the same findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from recordgen import storage
from recordgen.checks.check import Examined, ExampleFacts, run_checks
from recordgen.checks.selection import Selection
from recordgen.conversion.examination import examination_of
from recordgen.conversion.examining import examine
from recordgen.conversion.results import CheckResult
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.counts import RowCounts, Split, dataset_digest
from recordgen.core.dataset.index import write_index
from recordgen.core.dataset.lint import Lint
from recordgen.core.dataset.manifest import INDEX_FILE, Dataset, shard_file
from recordgen.core.dataset.vocabulary import Vocabulary, with_seen
from recordgen.core.flow import graph
from recordgen.core.flow.graph import running
from recordgen.core.flow.runner import Flow, Runner
from recordgen.core.planning.appending import Existing
from recordgen.core.planning.plan import too_many
from recordgen.core.progress import CHECKS, SHARDS, Phases
from recordgen.core.runs.counters import total_counts
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.core.shards import SplitSum
from recordgen.core.task.task import GAP, HAS, INEXACT, Examples
from recordgen.errors import RunnerError
from recordgen.features import IMAGE_OBJECT_KEYPOINT_X, OBJECTS, FeatureSpec
from recordgen.formats.source import Source
from recordgen.rejects import Reject
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
        """The counts of the run by the names in :mod:`recordgen.core.runs.counters`."""
        return total_counts(self.staged, self.results.values())


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

    Raises: as ``stop``, and as :func:`recordgen.access.index.lengths_there`.
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
    path, of_new = work.staging.path(INDEX_FILE), work.staging.lengths_of(dataset.shards)
    if work.existing is None:
        return write_index(path, dataset, of_new)
    from recordgen.access.index import lengths_there  # only an append needs it

    of_old, kept = lengths_there(work.existing.output, work.existing.dataset), work.existing.files
    return write_index(path, dataset, lambda file: (of_old if file in kept else of_new)(file))
