"""Convert, check and plan: the public functions for import files."""

from __future__ import annotations

import logging
import math
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from recordgen import storage
from recordgen.console import logs
from recordgen.console.terminal import AUTO, progress_for
from recordgen.conversion.results import CheckResult, ConversionResult, PlanResult, warn_about
from recordgen.conversion.work import (
    Mode,
    Work,
    checked,
    committed,
    facets_of,
    opened_run,
    read_outcome,
    read_plan,
)
from recordgen.core.conversion import Conversion, Labels, Shards, Splits
from recordgen.core.dataset.manifest import Dataset, has_dataset, read_dataset
from recordgen.core.dataset.splits import NO_EVAL, without_eval
from recordgen.core.dataset.vocabulary import AUTO_LABELS, NO_LABELS, LabelForms
from recordgen.core.facts import IMAGES, MEASURES, ROWS
from recordgen.core.flow import graph
from recordgen.core.flow.graph import NewRunner, running
from recordgen.core.flow.runner import LocalRunner, Runner
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.progress import Phases, Progress
from recordgen.core.runs.commit import open_run, ways_on
from recordgen.core.runs.staging import Staging
from recordgen.core.task.task import ONE, SEVERAL, Task
from recordgen.errors import DataError, OutputExistsError, UsageError
from recordgen.formats.format import Format
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.formats.source import AnySource, Source, open_files, open_source
from recordgen.lineage import conversion_events
from recordgen.messages.masking import masked
from recordgen.options import (
    ConvertOptions,
    OptionValues,
    differing,
    make_options,
    recorded_there,
    takes_options,
)
from recordgen.payloads.fetching import PayloadStore
from recordgen.registry import FORMATS
from recordgen.rejects import Reject
from recordgen.tasks import TASKS, task_for
from recordgen.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack


_REJECTS_SHOWN = 20


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
    mode = Mode(overwrite, append, resume)
    opened, decided = open_for(source, target, make_options(options), mode, beam_args, shown)
    result = _convert_source(opened, target, decided, mode, new_runner_for(beam_args), shown)
    warn_about(result)
    return result


def open_for(
    source: AnySource,
    output: str,
    options: ConvertOptions,
    mode: Mode,
    beam_args: Sequence[str],
    progress: Progress | None,
) -> tuple[Source, ConvertOptions]:
    """Open the source of a run that writes to ``output``. Raises: UsageError, SourceError."""
    if mode.overwrite and mode.append:
        raise UsageError("overwrite and append exclude each other; choose one")
    if mode.append:
        from recordgen.conversion.appending import task_there

        options = task_there(output, options)
    opened, decided = logged(open_source(source, options), progress)
    if beam_args:
        from recordgen.beam import need_reachable

        need_reachable(beam_args, [output, *opened.paths])
    return opened, decided


def new_runner_for(beam_args: Sequence[str]) -> NewRunner:
    """Return a function that makes a runner: this process, or Beam's if there are flags for it.

    Raises: UsageError: as :func:`recordgen.beam.runner_factory`.
    """
    if not beam_args:
        return LocalRunner
    from recordgen.beam import runner_factory

    return runner_factory(beam_args)


def local_runner_for(beam_args: Sequence[str], what: str) -> NewRunner:
    """Return the same for workers on this machine, which ``what`` needs. Raises: UsageError."""
    if beam_args:
        from recordgen.beam import need_local_workers

        need_local_workers(beam_args, what)
    return new_runner_for(beam_args)


def logged(
    opened: tuple[Source, ConvertOptions], progress: Progress | None
) -> tuple[Source, ConvertOptions]:
    """Log the detection of an opened source if there is a ``progress``; return the source."""
    detection = opened[0].detection
    if progress is not None and detection is not None:
        from recordgen.conversion.summaries import log_detected  # for a progress

        log_detected(detection)
    return opened


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
    shown = progress_for(progress)
    opened, decided = logged(open_source(source, make_options(options)), shown)
    result = check_opened(opened, decided, beam_args, shown)
    warn_about(result)
    return result


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
    target = "" if append_to is None else storage.normal(os.fspath(append_to))
    shown = progress_for(progress)
    mode = Mode(overwrite=False, append=bool(target), resume=False)
    opened, decided = open_for(source, target, make_options(options), mode, (), shown)
    conversion, existing = conversion_of(decided, opened.files), None
    if target:
        from recordgen.conversion.appending import find_existing

        existing = find_existing(target, conversion)
        opened.check_folder(existing)
    new_runner = local_runner_for(beam_args, "a dry run")
    with tempfile.TemporaryDirectory(prefix="recordgen-plan-") as folder:
        staging = Staging(folder)
        with running(new_runner(), staging, shown, conversion.task.noun) as runner:
            graph.plan_rows(runner, opened, conversion, staging, existing)
        planned = PlanResult(**vars(read_plan(staging)), detection=opened.detection)
    warn_about(planned)
    return planned


def convert_files(
    files: Sequence[ImportFile], output: str, options: ConvertOptions, *, new_runner: NewRunner
) -> ConversionResult:
    """Convert import files in a step of a pipeline, and log the progress.

    Only this step writes to ``output``, so a dataset there, or a part of one, is left over from an
    earlier attempt: it is replaced or resumed.

    Raises: as :func:`convert`; the message of a DataError has the first rejected rows, since a
        pipeline may drop the files of a failed step.
    """
    progress = logs.ProgressLog()
    opened, decided = logged(open_files(files, options), progress)
    mode = Mode(overwrite=True, append=False, resume=True)
    try:
        return _convert_source(opened, output, decided, mode, new_runner, progress)
    except DataError as exc:
        raise with_rejects(exc, exc.rejects) from exc


def with_rejects(error: DataError, rejects: Sequence[Reject]) -> DataError:
    """Return an error whose message names the first rejected rows."""
    from recordgen.conversion.summaries import first_lines  # only a failed step needs them

    shown = first_lines(rejects, _REJECTS_SHOWN, len(rejects))
    return type(error)("\n  ".join([error.message, *shown]))


def _convert_source(
    source: Source,
    output: str,
    options: ConvertOptions,
    mode: Mode,
    new_runner: NewRunner,
    progress: Progress | None,
) -> ConversionResult:
    started = time.monotonic()
    source.check_apart(output)
    with conversion_events(source.names, output) as lineage, Phases(progress) as phases:
        storage.check_writable(output)
        conversion = conversion_of(options, source.files)
        is_there = has_dataset(output)
        confirms = is_there and mode == Mode(overwrite=False, append=False, resume=True)
        new_work = partial(Work, source, conversion, options.selection, phases, output=output)
        runner = new_runner()
        if confirms:
            with open_run(output, overwrite=True, resume=True) as run:
                result = confirm(new_work(run.staging), output, runner)
        else:
            with opened_run(source, output, conversion, mode) as (run, existing):
                if progress is None:  # nobody reads the heartbeats of workers
                    run = replace(run, staging=replace(run.staging, heartbeat_seconds=math.inf))
                work = new_work(run.staging, existing=existing)
                work.run(runner, partial(graph.write_shards, conversion=conversion, run=run))
                result = committed(work, run, output)
        lineage.emit("COMPLETE", partial(facets_of, result.dataset))
    return replace(result, seconds=time.monotonic() - started)


_log = logging.getLogger(__name__)


def check_opened(
    opened: Source, options: ConvertOptions, beam_args: Sequence[str], progress: Progress | None
) -> CheckResult:
    """Check an opened source. Raises: as :func:`check`."""
    started = time.monotonic()
    # Check all rows, however many rejects, and without eval.
    conversion = conversion_of(options)
    splits = replace(conversion.splits, without_eval="")
    conversion = replace(conversion, max_reject_fraction=1.0, splits=splits)
    new_runner = local_runner_for(beam_args, "check")
    prefix = "recordgen-check-"
    with tempfile.TemporaryDirectory(prefix=prefix) as folder, Phases(progress) as phases:
        staging = Staging(folder)
        work = Work(opened, conversion, options.selection, phases, staging)
        check_shards = partial(graph.check_shards, conversion=conversion, staging=staging)
        work.run(new_runner(), check_shards)
        found = checked(work, read_outcome(work))
    return replace(found, seconds=time.monotonic() - started)


def confirm(work: Work, output: str, runner: Runner) -> ConversionResult:
    """Return the finished dataset in ``output`` if this run would write the same one.

    The dataset does not record the versions of its payloads, so every payload is read. Nothing is
    written.

    Raises: OutputExistsError: it is a different dataset.
    """
    conversion, there = work.conversion, read_dataset(output)
    there = replace(there, options=recorded_there(there.options))
    known = {
        "task": conversion.task.name,
        "recordgen_version": __version__,
        "source": work.source.names,
    }
    options = dict.fromkeys((*conversion.recorded, *there.options))
    other = [name for name in known if getattr(there, name) != known[name]]
    _refuse_other(output, [*other, *differing(there.options, conversion.recorded, options)])
    _log.info(
        "%s is finished; reading all payloads to check that they are unchanged", masked(output)
    )
    compare_shards = partial(
        graph.compare_shards, conversion=conversion, output=output, staging=work.staging
    )
    work.run(runner, compare_shards)
    found = checked(work, read_outcome(work))
    names = [item.name for item in fields(Dataset)]
    _refuse_other(output, [n for n in names if getattr(there, n) != getattr(found.dataset, n)])
    return ConversionResult(output=output, unchanged=True, **vars(found))


def _refuse_other(output: str, differences: Sequence[str]) -> None:
    """Raise OutputExistsError if the existing dataset differs from the new one."""
    if differences:
        raise OutputExistsError(
            f"{output}: there is another finished dataset already ({', '.join(differences)}); "
            f"{ways_on(output)} (with --resume if a run was interrupted)"
        )


# --- options → the settings of a conversion: nothing after this reads an option -------------------


_ALONE = (
    "pass a folder that also holds train, or use --split names=yes if there is none on purpose; "
    "--split names=no assigns splits where only names of folders say them"
)


def conversion_of(options: ConvertOptions, files: Sequence[ImportFile] = ()) -> Conversion:
    """Return what a run with the options does; its task and format are decided.

    ``files`` are the import files if their rows must leave some for ``train``.

    Raises: UsageError: an option does not suit the task.
    """
    task = task_for(options)
    return Conversion(
        task=task,
        splits=splits_of(options, files),
        labels=labels_of(options, task),
        shards=Shards(
            bytes=options.shard_bytes,
            by_label=options.shard_by == "label",
            compression=options.compression,
        ),
        payloads=payloads_of(options),
        store=store_of(options),
        reader=RowReader(options),
        max_reject_fraction=options.max_reject_fraction,
        threads=options.threads,
        recorded=options.recorded(),
    )


def splits_of(options: ConvertOptions, files: Sequence[ImportFile] = ()) -> Splits:
    """Return how rows of files get their splits.

    If ``fail_on`` names NO_EVAL, the plan fails: no payload is read for nothing.
    """
    selection, refusal = options.selection, ""
    if NO_EVAL in selection.fatal & selection.codes:
        refusal = f"{without_eval(options.eval_from)}; fail_on=none writes the dataset without it"
    return Splits(
        seed=options.seed,
        fractions=options.split.fractions,
        share=options.eval_share,
        grouping=options.grouping,
        by_content=options.splits_by_content,
        by_looks=options.finds_alike,
        stratifies=options.stratify == "label",
        duplicates=options.duplicates,
        drops_unnamed=options.missing_split == "drop",
        without_eval=refusal,
        without_train=_ALONE if _may_lose_train(options, files) else "",
    )


def _may_lose_train(options: ConvertOptions, files: Sequence[ImportFile]) -> bool:
    """Return whether splits are those of folders or documents, which nobody chose for this run."""
    has_rows = FORMATS.get(options.format, Format).has_columns
    is_meant = has_rows or options.split.names == "yes" or any(file.split for file in files)
    return bool(files) and not is_meant


def labels_of(options: ConvertOptions, task: Task) -> Labels:
    """Return how the labels of a task get their numbers."""
    missing = ""
    if task.labelling in (ONE, SEVERAL) and options.labels != NO_LABELS:
        found = FORMATS.get(options.format, Format)
        missing = (
            f"and {options.task} needs them; {found.how_to_label}, or use labels=none for data to "
            f"predict"
        )
    return Labels(
        mode=options.labels,
        vocabulary=options.vocabulary,
        missing=missing,
        forms=_forms(options, task),
    )


def _forms(options: ConvertOptions, task: Task) -> LabelForms | None:
    """Return what labels may be mistaken for; None if an option says that they are names.

    The target of a table has rules of its own, see ODD_COLUMN.
    """
    if options.labels != AUTO_LABELS or options.schema or not task.names_payloads:
        return None
    has_fields = FORMATS.get(options.format, Format).has_columns
    several = f"{task.kind}_multi_label"
    is_alone = task.labelling == ONE and not options.vocabulary
    return LabelForms(
        several=several if has_fields and several in TASKS else "",
        is_several=task.name == several,
        is_alone=is_alone,
        may_be_unsure=is_alone and has_fields and IMAGES in task.facts,
    )


def payloads_of(options: ConvertOptions) -> PayloadSettings:
    """Return how payloads are checked and stored."""
    has_rows = FORMATS.get(options.format, Format).has_columns  # then the encoding is that of rows
    return PayloadSettings(
        check=options.check,
        limit=options.limit,
        image_size=options.image_size,
        resize=options.resize,
        encode=options.encode,
        needs_looks=MEASURES in options.selection.needs,
        needs_rows=ROWS in options.selection.needs,
        text_encoding="" if has_rows else options.encoding,
    )


def store_of(options: ConvertOptions) -> PayloadStore:
    """Return access to the payloads that rows may reach."""
    looks = PayloadSettings(limit=options.limit, needs_looks=True)
    alike = looks if options.finds_alike else None
    return PayloadStore(options.limit, options.access, alike, options.threads)
