"""Convert, check or plan: the three things one can do with import files."""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Union

import apache_beam as beam
from apache_beam.runners.runner import PipelineResult

from recordgen import logs, storage, transforms
from recordgen.appending import find_existing, merge, merge_findings, task_there
from recordgen.dataset import (
    DATASET_FILE,
    Dataset,
    read_dataset,
)
from recordgen.errors import (
    OutputExistsError,
    RunnerError,
    UsageError,
)
from recordgen.metrics import total_counts
from recordgen.options import ConvertOptions, check_names, parse_names
from recordgen.outcome import (
    all_rejects,
    first_findings,
    read_outcome,
    read_plan,
    stop_unless_usable,
    to_dataset,
)
from recordgen.progress import Progress, watching
from recordgen.report import render_dataset
from recordgen.roles import columns_text, parse_columns
from recordgen.rows import Adjustments, Finding, Reject, with_findings
from recordgen.runners import (
    dying_with_workers,
    last_line,
    need_local_workers,
    need_reachable,
    pipeline_factory,
    release,
)
from recordgen.runs import (
    check_appendable,
    commit,
    open_run,
    resume_run,
    texts_beside,
    ways_on,
)
from recordgen.schema import Schema
from recordgen.sources import ImportFile, find_import_files, with_lists
from recordgen.sources.detect import Detection, columns_of_table, detect, detect_frame
from recordgen.sources.header import Given
from recordgen.sources.preview import preview_files, preview_lines, preview_rows
from recordgen.splits import SplitFractions
from recordgen.staging import StagedPlan, Staging
from recordgen.tasks import TASKS, Tabular, task_for
from recordgen.transforms import Source
from recordgen.version import __version__

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

AnySource = Union[str, "os.PathLike[str]", Sequence[str], "pd.DataFrame"]
NewPipeline = Callable[[], beam.Pipeline]


@dataclass(frozen=True)
class ConversionResult:
    """A finished conversion.

    Attributes:
        output: the folder or URL prefix that was written.
        dataset: the content of its ``dataset.json``.
        rejects: the rows that were left out, as in ``rejects.jsonl``.
        findings: what was changed in rows, the first 10,000; ``findings.jsonl`` has all.
        seconds: wall-clock time.
        counts: what was counted, by the names in :mod:`recordgen.metrics`.
        kept_shards: shards of an interrupted run that were kept; None: there was nothing to go
            on with, or it was not asked for.
        unchanged: the finished dataset that was there is what would have been written; nothing
            was.
        detection: how the source was read.
    """

    output: str
    dataset: Dataset
    rejects: tuple[Reject, ...]
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    kept_shards: int | None = None
    unchanged: bool = False
    findings: tuple[Finding, ...] = ()
    detection: Detection | None = None


@dataclass(frozen=True)
class CheckResult:
    """A finished check: what a conversion would give.

    Attributes:
        dataset: as :class:`ConversionResult` has it; its shards have no bytes.
        rejects: the rows that would be left out.
        findings: what would be changed in rows, the first 10,000; ``rows.adjusted`` counts all.
        seconds: wall-clock time.
        counts: what was counted, by the names in :mod:`recordgen.metrics`.
        detection: how the source was read.
    """

    dataset: Dataset
    rejects: tuple[Reject, ...]
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    detection: Detection | None = None


def convert(
    source: AnySource,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    append: bool = False,
    resume: bool = False,
    beam_args: Sequence[str] = (),
    progress: Progress | None = None,
    **options: Any,
) -> ConversionResult:
    """Convert labelled images into split, sharded TFRecords.

    Args:
        source: AutoML import files: a path, URL or glob, several of them, or a DataFrame with
            the columns ``split``, ``image_uri`` and ``label`` (in TFRecorder's way).
        output: folder or URL prefix to write; see :mod:`recordgen.dataset` for what is in it.
        overwrite: replace a dataset that is already there.
        append: add to a dataset that is already there; rows that it holds are left out.
        resume: keep the finished shards of a run that died, as far as they are what would be
            written now. A finished dataset that is what would be written now is left alone.
        beam_args: flags for Beam, such as ``["--runner=DataflowRunner", "--project=…"]``; the
            default runner works in this process.
        progress: is told how far the run is; None: nobody is.
        **options: the fields of :class:`recordgen.options.ConvertOptions`, such as ``seed=7``;
            ``split_fractions`` may be ``"80,10,10"`` or ``(80, 10, 10)``, ``columns`` a mapping
            such as ``{"path": "image_id", "label": "source"}``, ``schema`` a
            :class:`recordgen.Schema` that says what the columns of ``source`` hold.

    Raises:
        UsageError: an option is wrong, ``output`` holds a dataset, or another run writes there.
        SourceError: an import file is missing or cannot be read.
        NothingToConvertError: no row is left to convert.
        TooManyRejectsError: above ``max_reject_fraction``; ``rejects.jsonl`` is written.
        StorageError: storage failed.
        RunnerError: Beam's runner failed.
    """
    if overwrite and append:
        raise UsageError("either overwrite the dataset that is there, or append to it")
    target = storage.normal(os.fspath(output))
    decoded = make_options(options)
    opened, decided = open_source(
        source, task_there(target, decoded) if append else decoded, progress
    )
    need_reachable(beam_args, [target, *opened.paths])
    return convert_source(
        opened,
        target,
        decided,
        new_pipeline=pipeline_factory(beam_args),
        overwrite=overwrite,
        append=append,
        resume=resume,
        progress=progress,
    )


def check(
    source: AnySource,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress | None = None,
    **options: Any,
) -> CheckResult:
    """Read and check all that :func:`convert` would, and write nothing.

    Args and Raises: as :func:`convert`, but any number of rejects is a result, not an error.
    """
    started = time.monotonic()
    opened, decoded = open_source(source, make_options(options), progress)
    unlimited = replace(decoded, max_reject_fraction=1.0)  # look at everything, then judge
    need_local_workers(beam_args, "check")
    with tempfile.TemporaryDirectory(prefix="recordgen-check-") as folder:
        staging = Staging(folder)
        with _running(pipeline_factory(beam_args)(), staging, progress, decoded) as pipeline:
            shards = transforms.plan_rows(pipeline, opened, unlimited, staging)
            transforms.check_shards(shards, unlimited, staging)
        staged, results = read_outcome(staging, unlimited)
        findings = first_findings(staging, staged)
    rejects = all_rejects(staged, results)
    dataset = to_dataset(opened, staged, results, decoded)
    counts = total_counts(staged, results)
    return CheckResult(
        dataset, rejects, time.monotonic() - started, counts, findings, opened.detection
    )


def plan(
    source: AnySource,
    *,
    append_to: str | os.PathLike[str] | None = None,
    beam_args: Sequence[str] = (),
    progress: Progress | None = None,
    **options: Any,
) -> StagedPlan:
    """Plan what :func:`convert` would write, from rows and file sizes alone (a dry run).

    Args:
        source: as for :func:`convert`.
        append_to: the output whose dataset would be appended to, if it holds one.
        beam_args: as for :func:`convert`.
        progress: as for :func:`convert`.
        **options: as for :func:`convert`.

    Raises: as :func:`check`.
    """
    decoded = make_options(options)
    if append_to is not None:
        decoded = task_there(os.fspath(append_to), decoded)
    opened, decoded = open_source(source, decoded, progress)
    if append_to is not None:
        _need_names(decoded)
    existing = None if append_to is None else find_existing(os.fspath(append_to), decoded)
    need_local_workers(beam_args, "a dry run")
    with tempfile.TemporaryDirectory(prefix="recordgen-plan-") as folder:
        staging = Staging(folder)
        with _running(pipeline_factory(beam_args)(), staging, progress, decoded) as pipeline:
            transforms.plan_rows(pipeline, opened, decoded, staging, existing)
        return replace(read_plan(staging), detection=opened.detection)


def convert_files(
    files: Sequence[ImportFile],
    output: str,
    options: ConvertOptions,
    *,
    new_pipeline: NewPipeline,
    overwrite: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> ConversionResult:
    """Convert import files on a Beam pipeline of the caller's.

    Args:
        files: what to read.
        output: folder or URL prefix to write.
        options: how.
        new_pipeline: makes the (empty) pipeline that carries the work.
        overwrite: replace a dataset that is already there.
        resume: go on where a run that died has stopped.
        progress: is told how far the run is.

    Raises: as :func:`convert`.
    """
    opened, decided = _told(_open_files(files, options), progress)
    return convert_source(
        opened,
        output,
        decided,
        new_pipeline=new_pipeline,
        overwrite=overwrite,
        append=False,
        resume=resume,
        progress=progress,
    )


def convert_source(
    source: Source,
    output: str,
    options: ConvertOptions,
    *,
    new_pipeline: NewPipeline,
    overwrite: bool,
    append: bool,
    resume: bool,
    progress: Progress | None,
) -> ConversionResult:
    """Convert an opened source; what :func:`convert` and :func:`convert_files` share."""
    started = time.monotonic()
    storage.check_writable(output)
    pipeline = new_pipeline()
    is_there = storage.exists(storage.join(output, DATASET_FILE))
    if resume and is_there and not (overwrite or append):
        dataset, rejects, counts = _confirm(source, output, options, pipeline, progress)
        seconds = time.monotonic() - started
        return ConversionResult(
            output,
            dataset,
            rejects,
            seconds,
            counts,
            unchanged=True,
            detection=source.detection,
        )
    begin = resume_run if resume else open_run
    if append:
        _need_names(options)
        check_appendable(output)
    with begin(output, overwrite=overwrite, append=append) as run:
        existing = find_existing(output, options) if append else None
        if run.leftovers:
            _log.info("%s: going on where an interrupted run has stopped", output)
        with _running(pipeline, run.staging, progress, options):
            shards = transforms.plan_rows(pipeline, source, options, run.staging, existing)
            transforms.write_shards(shards, options, run)
        staged, results = read_outcome(run.staging, options)
        rejects = all_rejects(staged, results)
        stop_unless_usable(staged, results, rejects, output, options)
        dataset = to_dataset(source, staged, results, options)
        if existing is not None:
            dataset = merge(existing.dataset, dataset)
            # An import file that was read again tells its rejects anew.
            old = [item for item in existing.rejects if item.source not in source.names]
            rejects = tuple(sorted({*old, *rejects}))
        found = run.staging.read_findings(staged)
        if existing is not None:
            found = merge_findings(output, source.names, found)
        first = first_findings(run.staging, staged)
        kept = existing.files if existing else frozenset()

        def path_of(file: str) -> str:
            return storage.join(output, file) if file in kept else run.staging.path(file)

        report = render_dataset(dataset, rejects, path_of)
        texts = texts_beside(dataset, rejects, report)
        commit(run.staging, output, dataset, texts=texts, findings=found, kept=kept)
    resumed = sum(result.kept for result in results if result.split in dataset.splits)
    return ConversionResult(
        output,
        dataset,
        rejects,
        time.monotonic() - started,
        total_counts(staged, results),
        resumed if run.leftovers else None,
        findings=first,
        detection=source.detection,
    )


def _need_names(options: ConvertOptions) -> None:
    """Refuse to append what cannot be told from what is there. Raises: UsageError."""
    task = TASKS[options.task]
    if not task.names_payloads:
        raise UsageError(
            f"a {task.noun} of {task.name} has no name, so new ones cannot be told from those that "
            f"are there; convert all of them anew, with --overwrite"
        )


def _confirm(
    source: Source,
    output: str,
    options: ConvertOptions,
    pipeline: beam.Pipeline,
    progress: Progress | None,
) -> tuple[Dataset, tuple[Reject, ...], dict[str, int]]:
    """Return the finished dataset in ``output`` if it is what would be written now.

    With it come its rejects, and what was counted.

    What it was made of is not on record, so every payload is read; nothing is written.

    Raises:
        OutputExistsError: it is another.
    """
    there = read_dataset(output)
    known = {
        "task": options.task,
        "recordgen_version": __version__,
        "source": source.names,
        "seed": options.seed,
        "options": options.recorded(),
    }
    _refuse_other(output, [name for name in known if getattr(there, name) != known[name]])
    _log.info("%s is finished; reading all payloads to see whether they are still its own", output)
    with resume_run(output, overwrite=True) as run:
        with _running(pipeline, run.staging, progress, options):
            shards = transforms.plan_rows(pipeline, source, options, run.staging)
            transforms.compare_shards(shards, options, output, run.staging)
        staged, results = read_outcome(run.staging, options)
        dataset = to_dataset(source, staged, results, options)
        _refuse_other(
            output,
            [
                item.name
                for item in fields(Dataset)
                if getattr(there, item.name) != getattr(dataset, item.name)
            ],
        )
    return dataset, all_rejects(staged, results), total_counts(staged, results)


def _refuse_other(output: str, differences: Sequence[str]) -> None:
    """Raise OutputExistsError if the dataset that is there differs from what would be written."""
    if differences:
        raise OutputExistsError(
            f"{output}: there is a finished dataset already, and not the one that would be "
            f"written now: it differs in {', '.join(differences)}; {ways_on(output)} "
            f"(with --resume if a run was interrupted)"
        )


def make_options(values: dict[str, Any]) -> ConvertOptions:
    """Decode keyword options. Raises: UsageError for an unknown name or a wrong value."""
    check_names(values, ConvertOptions.names())
    for name in ("allow_scheme", "allow_root"):
        if name in values:
            values = {**values, name: parse_names(values[name])}
    if isinstance(columns := values.get("columns", ""), Mapping):
        values = {**values, "columns": columns_text(parse_columns(columns))}
    if isinstance(schema := values.get("schema", ""), Mapping | Schema):
        declared = schema if isinstance(schema, Schema) else Schema(schema)
        values = {**values, "schema": json.dumps(declared.to_json(), ensure_ascii=False)}
    fractions = values.get("split_fractions")
    if isinstance(fractions, str):
        values = {**values, "split_fractions": SplitFractions.parse(fractions)}
    elif isinstance(fractions, Sequence):
        text = ",".join(map(str, fractions))
        values = {**values, "split_fractions": SplitFractions.parse(text)}
    return ConvertOptions(**values)


def open_source(
    source: AnySource, options: ConvertOptions, progress: Progress | None = None
) -> tuple[Source, ConvertOptions]:
    """Find the import files, or take the rows of a DataFrame.

    Args:
        source: as for :func:`convert`.
        options: how to read it.
        progress: if somebody follows the run, how the source is read is logged.

    Returns:
        The source; and the options, with task and format as they are or were found to be.

    Raises:
        SourceError: an import file is missing or cannot be read.
        UsageError: it is not to be told what the source is.
    """
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return _told(_open_frame(source, options), progress)
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str) or (isinstance(source, Sequence) and source):
        return _told(_open_files(find_import_files(source), options), progress)
    raise UsageError(f"source must be a path, several paths or a DataFrame (got {source!r})")


def _told(
    opened: tuple[Source, ConvertOptions], progress: Progress | None
) -> tuple[Source, ConvertOptions]:
    """Log how a source is read, if somebody follows the run."""
    detection = opened[0].detection
    if progress is not None and detection is not None:
        logs.detected(detection)
    return opened


def _open_frame(frame: pd.DataFrame, options: ConvertOptions) -> tuple[Source, ConvertOptions]:
    detection = detect_frame(frame, options)
    options = detection.options
    if TASKS[options.task].kind == Tabular.kind:
        from recordgen.sources.table_frame import frame_lines, frame_table

        table = frame_table(frame, options)
        options = replace(options, table=table.to_json())
        source = Source.of_lines(frame_lines(frame, table))
        detection = replace(detection, options=options, columns=columns_of_table(table))
        rows = preview_lines(chain.from_iterable(source.rows))
    else:
        from recordgen.sources.dataframe import dataframe_rows
        from recordgen.sources.declared_rows import frame_rows

        task = task_for(options)
        adjusted = Adjustments()
        found = (
            frame_rows(frame, task)
            if options.schema
            else dataframe_rows(frame, task, adjusted, Given.of(options))
        )
        source = Source.of_rows(with_findings(found, adjusted))
        rows = preview_rows(chain.from_iterable(source.rows), task)
    return replace(source, detection=replace(detection, rows=rows)), options


def _open_files(
    files: Sequence[ImportFile], options: ConvertOptions
) -> tuple[Source, ConvertOptions]:
    detection = detect(files, options)
    with_all = with_lists(files, detection.options)
    detection = replace(detection, rows=preview_files(with_all, detection.options))
    return replace(Source.of_files(with_all), detection=detection), detection.options


@contextmanager
def _running(
    pipeline: beam.Pipeline, staging: Staging, progress: Progress | None, options: ConvertOptions
) -> Iterator[beam.Pipeline]:
    """Give the pipeline to build, then run it; what workers left as their error is raised."""
    yield pipeline
    running: PipelineResult | None = None
    noun = TASKS[options.task].noun
    try:
        with _rare_collections(), watching(staging, progress, noun), dying_with_workers():
            running = pipeline.run()
            running.wait_until_finish()
    except KeyboardInterrupt:
        if running is not None:
            running.cancel()  # a job on other machines would go on without us
        raise
    except Exception as exc:
        if "KeyboardInterrupt" in last_line(exc):  # Beam wraps what its steps raise
            raise KeyboardInterrupt from exc
        reason = staging.read_error()
        if reason is not None:
            raise reason from exc
        raise RunnerError(f"Beam's runner failed: {last_line(exc)}") from exc
    finally:
        release(running)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Spare the garbage collector what is there to stay: it costs a tenth of planning.

    Neither a million objects of Beam and its libraries nor the rows, which hold no cycles, need
    be looked at again and again.
    """
    if not _sparing.acquire(blocking=False):  # another conversion of this process sees to it
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        _sparing.release()


_sparing = threading.Lock()
