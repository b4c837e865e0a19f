"""Convert, check and plan: the public functions for import files."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from recordgen import storage
from recordgen.beam.runners import need_local_workers, need_reachable, runner_factory
from recordgen.checks.run import need_packages
from recordgen.checks.selection import Selection
from recordgen.console import logs
from recordgen.console.progress_bar import AUTO, progress_for
from recordgen.console.stopping import check_stopped
from recordgen.console.summaries import reject_lines
from recordgen.console.warned import warn_about
from recordgen.conversion.appending import check_can_append, find_existing, task_there
from recordgen.conversion.examination import examination_of
from recordgen.conversion.examining import all_facts, examine
from recordgen.conversion.finalize import (
    all_rejects,
    first_findings,
    indexed,
    linted,
    read_outcome,
    read_plan,
    stop_on_findings,
    stop_unless_usable,
    to_dataset,
)
from recordgen.conversion.settings import conversion_of
from recordgen.conversion.side_files import UncommittedOutput, side_files
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.manifest import DATASET_FILE, Dataset, read_dataset
from recordgen.core.flow import graph
from recordgen.core.flow.runner import Runner
from recordgen.core.flow.running import NewRunner, running
from recordgen.core.planning.appending import Existing, merge, merge_findings
from recordgen.core.progress import COMMIT, SHARDS, Progress
from recordgen.core.runs.commit import Run, check_appendable, commit, open_run, ways_on
from recordgen.core.runs.counters import total_counts
from recordgen.core.runs.phases import Phases
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.core.shards.task import ShardResult
from recordgen.errors import DataError, OutputExistsError, UsageError
from recordgen.exports.beside import described_names
from recordgen.exports.openlineage import conversion_events, facets_of
from recordgen.formats.import_file import ImportFile
from recordgen.formats.source import AnySource, Source, open_files, open_source
from recordgen.masking import masked
from recordgen.options import (
    ConvertOptions,
    OptionValues,
    make_options,
    recorded_there,
    takes_options,
)
from recordgen.rejects import Reject
from recordgen.results import CheckResult, ConversionResult, PlanResult
from recordgen.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack

_REJECTS_SHOWN = 20

_log = logging.getLogger(__name__)


@takes_options
def convert(
    source: AnySource,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    append: bool = False,
    resume: bool = False,
    beam_args: Sequence[str] = (),
    progress: Progress | Literal["auto"] | None = AUTO,
    **options: Unpack[OptionValues],
) -> ConversionResult:
    """Convert labelled data into split, sharded TFRecords.

    Rejected rows and findings of the checks are :class:`recordgen.errors.RecordgenWarning`, one for
    each code.

    Args:
        source: import files: a path, URL or glob, several of them, or a DataFrame with the columns
            ``split``, ``image_uri`` and ``label`` (as in TFRecorder).
        output: folder or URL prefix to write; its files: :mod:`recordgen.core.dataset.manifest`.
        overwrite: replace an existing dataset.
        append: add to an existing dataset; rows that it holds are skipped.
        resume: keep finished shards of a run that died if this run would write the same bytes. A
            finished dataset that would be written again stays as it is.
        beam_args: flags for Beam, such as ``["--runner=DataflowRunner", "--project=…"]``; without
            flags, this process does the work, and Beam need not be installed.
        progress: receives the progress of the run; ``auto``: a line below the cell of a notebook, a
            bar on a terminal, and nothing elsewhere; None: nothing.
        **options: the fields of :class:`recordgen.options.ConvertOptions`, such as ``seed=7``;
            ``split`` may be ``"80,10,10"`` or ``(80, 10, 10)``, ``columns`` a mapping
            such as ``{"path": "image_id", "label": "source"}``, ``schema`` a
            :class:`recordgen.Schema` that describes the columns of ``source``.

    Raises:
        UsageError: an option is wrong, ``output`` holds a dataset or the source, or is in a source
            folder, or another run writes there.
        SourceError: an import file is missing or cannot be read.
        NothingToConvertError: no row is left to convert.
        TooManyRejectsError: more than ``max_reject_fraction``; ``rejects.jsonl`` is written.
        LintError: there are findings that ``fail_on`` names; ``lint.jsonl`` is written.
        StorageError: storage failed.
        RunnerError: Beam's runner failed.
    """
    target = storage.normal(os.fspath(output))
    shown = progress_for(progress)
    opened, decided = open_for(
        source, target, make_options(options), overwrite, append, beam_args, shown
    )
    result = _convert_source(
        opened,
        target,
        decided,
        new_runner=runner_factory(beam_args),
        overwrite=overwrite,
        append=append,
        resume=resume,
        progress=shown,
    )
    warn_about(result)
    return result


def open_for(
    source: AnySource,
    output: str,
    options: ConvertOptions,
    overwrite: bool,
    append: bool,
    beam_args: Sequence[str],
    progress: Progress | None,
) -> tuple[Source, ConvertOptions]:
    """Open the source of a run that writes to ``output``. Raises: UsageError, SourceError."""
    if overwrite and append:
        raise UsageError("overwrite and append exclude each other; choose one")
    given = task_there(output, options) if append else options
    opened, decided = _logged(open_source(source, given), progress)
    need_reachable(beam_args, [output, *opened.paths])
    return opened, decided


@takes_options
def check(
    source: AnySource,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress | Literal["auto"] | None = AUTO,
    **options: Unpack[OptionValues],
) -> CheckResult:
    """Read and check everything as :func:`convert` does, but write nothing.

    Args and Raises: as :func:`convert`, but any number of rejects is allowed.
    """
    opened = open_source(source, make_options(options))
    result = check_opened(opened, beam_args, progress_for(progress))
    warn_about(result)
    return result


def check_opened(
    source: tuple[Source, ConvertOptions], beam_args: Sequence[str], progress: Progress | None
) -> CheckResult:
    """Check an opened source. Raises: as :func:`check`."""
    started = time.monotonic()
    opened, decoded = _logged(source, progress)
    # Check all rows, however many rejects, and without eval.
    conversion, selection = conversion_of(decoded), decoded.selection
    splits = replace(conversion.splits, without_eval="")
    conversion = replace(conversion, max_reject_fraction=1.0, splits=splits)
    need_packages(conversion.task, selection)
    need_local_workers(beam_args, "check")
    prefix = "recordgen-check-"
    with tempfile.TemporaryDirectory(prefix=prefix) as folder, Phases(progress) as phases:
        staging, runner = Staging(folder), runner_factory(beam_args)()
        shared, noun = examination_of(opened, conversion, selection, staging), conversion.task.noun
        with phases.during(SHARDS), running(runner, staging, progress, noun, shared.joins):
            shards = graph.plan_rows(runner, opened, conversion, staging)
            examine(runner, graph.check_shards(shards, conversion, staging), shared)
        outcome = read_outcome(staging, conversion)
        found = _checked(opened, conversion, selection, staging, phases, *outcome)
    return replace(found, seconds=time.monotonic() - started)


def _checked(
    source: Source,
    conversion: Conversion,
    selection: Selection,
    staging: Staging,
    phases: Phases,
    staged: StagedPlan,
    results: Sequence[ShardResult],
) -> CheckResult:
    """Return the result of a run that checked all rows and payloads, and wrote nothing."""
    findings = first_findings(staging, staged)
    dataset = to_dataset(source, staged, results, conversion)
    dataset = indexed(dataset, staging)
    dataset, lint = linted(dataset, staging, staged, findings, conversion, selection, phases)
    return CheckResult(
        dataset=dataset,
        rejects=all_rejects(staged, results),
        seconds=0.0,  # not known yet
        counts=total_counts(staged, results),
        findings=findings,
        detection=source.detection,
        lint=lint,
        phases=phases.seconds,
    )


@takes_options
def plan(
    source: AnySource,
    *,
    append_to: str | os.PathLike[str] | None = None,
    beam_args: Sequence[str] = (),
    progress: Progress | Literal["auto"] | None = AUTO,
    **options: Unpack[OptionValues],
) -> PlanResult:
    """Plan the dataset of :func:`convert` from rows and file sizes only (a dry run).

    Args and Raises: as :func:`convert`; ``append_to`` is the output to append to, if it holds a
    dataset.
    """
    decoded = make_options(options)
    if append_to is not None:
        decoded = task_there(os.fspath(append_to), decoded)
    shown = progress_for(progress)
    opened, decoded = _logged(open_source(source, decoded), shown)
    conversion, existing = conversion_of(decoded), None
    if append_to is not None:
        existing = find_existing(os.fspath(append_to), conversion)
    need_local_workers(beam_args, "a dry run")
    with tempfile.TemporaryDirectory(prefix="recordgen-plan-") as folder:
        staging = Staging(folder)
        with running(runner_factory(beam_args)(), staging, shown, conversion.task.noun) as runner:
            graph.plan_rows(runner, opened, conversion, staging, existing)
        planned = PlanResult(**vars(read_plan(staging)), detection=opened.detection)
    warn_about(planned)
    return planned


def convert_files(
    files: Sequence[ImportFile],
    output: str,
    options: ConvertOptions,
    *,
    new_runner: NewRunner,
) -> ConversionResult:
    """Convert import files in a step of a pipeline, and log the progress.

    Only this step writes to ``output``, so a dataset there, or a part of one, is left over from an
    earlier attempt: it is replaced or resumed.

    Raises: as :func:`convert`; the message of a DataError has the first rejected rows, since a
        pipeline may drop the files of a failed step.
    """
    progress = logs.ProgressLog()
    opened, decided = _logged(open_files(files, options), progress)
    try:
        return _convert_source(
            opened,
            output,
            decided,
            new_runner=new_runner,
            overwrite=True,
            resume=True,
            progress=progress,
        )
    except DataError as exc:
        raise with_rejects(exc, exc.rejects) from exc


def with_rejects(error: DataError, rejects: Sequence[Reject]) -> DataError:
    """Return an error whose message names the first rejected rows."""
    return type(error)("\n  ".join([error.message, *reject_lines(rejects, _REJECTS_SHOWN)]))


def _convert_source(
    source: Source,
    output: str,
    options: ConvertOptions,
    *,
    new_runner: NewRunner,
    overwrite: bool,
    append: bool = False,
    resume: bool,
    progress: Progress | None,
) -> ConversionResult:
    started = time.monotonic()
    source.check_apart(output)
    with conversion_events(source.names, output) as events, Phases(progress) as phases:
        storage.check_writable(output)
        conversion = conversion_of(options)
        need_packages(conversion.task, options.selection)
        is_there = storage.exists(storage.join(output, DATASET_FILE))
        confirms = resume and is_there and not (overwrite or append)
        runner = new_runner()
        if confirms:
            result = _confirm(source, output, conversion, options.selection, runner, phases)
        else:
            with opened_run(
                output, conversion, overwrite=overwrite, append=append, resume=resume
            ) as (run, existing):
                noun, selection, staging = conversion.task.noun, options.selection, run.staging
                shared = examination_of(source, conversion, selection, staging, existing)
                with phases.during(SHARDS), running(runner, staging, progress, noun, shared.joins):
                    shards = graph.plan_rows(runner, source, conversion, staging, existing)
                    written = graph.write_shards(shards, conversion, run)
                    examine(runner, written, shared, existing)
                result = committed(run, source, output, conversion, selection, existing, phases)
        events.emit("COMPLETE", partial(facets_of, result.dataset))
    return replace(result, seconds=time.monotonic() - started)


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
    examples = sum(result.shard.examples for result in results)
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
    facts = partial(all_facts, run.staging, results, existing)
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
    resumed = sum(result.kept for result in results if result.split in dataset.splits)
    return ConversionResult(
        output=output,
        dataset=dataset,
        rejects=rejects,
        seconds=0.0,  # not known yet
        counts=total_counts(staged, results),
        kept_shards=resumed if run.leftovers else None,
        findings=first,
        detection=source.detection,
        lint=lint,
        phases=phases.seconds,
    )


def _confirm(
    source: Source,
    output: str,
    conversion: Conversion,
    selection: Selection,
    runner: Runner,
    phases: Phases,
) -> ConversionResult:
    """Return the finished dataset in ``output`` if this run would write the same one.

    The dataset does not record the versions of its payloads, so every payload is read. Nothing is
    written.

    Raises:
        OutputExistsError: it is a different dataset.
    """
    there = read_dataset(output)
    there = replace(there, options=recorded_there(there.options))
    known = {
        "task": conversion.task.name,
        "recordgen_version": __version__,
        "source": source.names,
        "seed": conversion.splits.seed,
        "options": conversion.recorded,
    }
    _refuse_other(output, [name for name in known if getattr(there, name) != known[name]])
    _log.info(
        "%s is finished; reading all payloads to check that they are unchanged", masked(output)
    )
    with open_run(output, overwrite=True, resume=True) as run:
        noun, staging = conversion.task.noun, run.staging
        shared = examination_of(source, conversion, selection, staging)
        with phases.during(SHARDS), running(runner, staging, phases.progress, noun, shared.joins):
            shards = graph.plan_rows(runner, source, conversion, staging)
            compared = graph.compare_shards(shards, conversion, output, staging)
            examine(runner, compared, shared)
        outcome = read_outcome(run.staging, conversion)
        found = _checked(source, conversion, selection, run.staging, phases, *outcome)
        now, names = found.dataset, [item.name for item in fields(Dataset)]
        _refuse_other(output, [n for n in names if getattr(there, n) != getattr(now, n)])
    return ConversionResult(output=output, unchanged=True, **vars(found))


def _refuse_other(output: str, differences: Sequence[str]) -> None:
    """Raise OutputExistsError if the existing dataset differs from the new one."""
    if differences:
        raise OutputExistsError(
            f"{output}: there is another finished dataset already, which differs in "
            f"{', '.join(differences)}; {ways_on(output)} (with --resume if a run was interrupted)"
        )


def _logged(
    opened: tuple[Source, ConvertOptions], progress: Progress | None
) -> tuple[Source, ConvertOptions]:
    """Log the detection of an opened source if there is a ``progress``; return the source."""
    detection = opened[0].detection
    if progress is not None and detection is not None:
        logs.detected(detection)
    return opened
