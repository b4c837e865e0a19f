"""Convert, check or plan: the three things one can do with import files."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Union

import apache_beam as beam
from apache_beam.runners.runner import PipelineResult

from recordgen import transforms
from recordgen.advice import advice
from recordgen.dataset import Dataset, ImageStats, RowCounts, Split, dataset_digest, shard_file
from recordgen.errors import (
    NothingToConvertError,
    RunnerError,
    TooManyRejectsError,
    UsageError,
)
from recordgen.options import ConvertOptions, check_names
from recordgen.planning import too_many
from recordgen.progress import Progress, watching
from recordgen.rows import Reject
from recordgen.runners import (
    dying_with_workers,
    last_line,
    need_local_workers,
    need_reachable,
    pipeline_factory,
    release,
)
from recordgen.shards import ShardResult
from recordgen.sources import ImportFile, find_import_files
from recordgen.splits import SplitFractions
from recordgen.staging import StagedPlan, Staging, abandon, commit, open_staging
from recordgen.transforms import Source
from recordgen.version import __version__

if TYPE_CHECKING:
    import pandas as pd

TASK = "image_classification"

AnySource = Union[str, "os.PathLike[str]", Sequence[str], "pd.DataFrame"]
NewPipeline = Callable[[], beam.Pipeline]


@dataclass(frozen=True)
class ConversionResult:
    """A finished conversion.

    Attributes:
        output: the folder or URL prefix that was written.
        dataset: the content of its ``dataset.json``.
        rejects: the rows that were left out, as in ``rejects.jsonl``.
        seconds: wall-clock time.
    """

    output: str
    dataset: Dataset
    rejects: tuple[Reject, ...]
    seconds: float


@dataclass(frozen=True)
class CheckResult:
    """A finished check: what a conversion would give.

    Attributes:
        dataset: as :class:`ConversionResult` has it; its shards have no bytes.
        rejects: the rows that would be left out.
        seconds: wall-clock time.
    """

    dataset: Dataset
    rejects: tuple[Reject, ...]
    seconds: float


def convert(
    source: AnySource,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
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
        beam_args: flags for Beam, such as ``["--runner=DataflowRunner", "--project=…"]``; the
            default runner works in this process.
        progress: is told how far the run is; None: nobody is.
        **options: the fields of :class:`recordgen.options.ConvertOptions`, such as ``seed=7``;
            ``split_fractions`` may be ``"80,10,10"`` or ``(80, 10, 10)``.

    Raises:
        UsageError: an option is wrong, or ``output`` holds a dataset.
        SourceError: an import file is missing or cannot be read.
        NothingToConvertError: no row is left to convert.
        TooManyRejectsError: above ``max_reject_fraction``; ``rejects.jsonl`` is written.
        StorageError: storage failed.
        RunnerError: Beam's runner failed.
    """
    target = os.fspath(output)
    opened = open_source(source)
    need_reachable(beam_args, [target, *opened.paths])
    return convert_source(
        opened,
        target,
        make_options(options),
        new_pipeline=pipeline_factory(beam_args),
        overwrite=overwrite,
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
    decoded = make_options(options)
    unlimited = replace(decoded, max_reject_fraction=1.0)  # look at everything, then judge
    opened = open_source(source)
    need_local_workers(beam_args, "check")
    with tempfile.TemporaryDirectory(prefix="recordgen-check-") as folder:
        staging = Staging(folder)
        with _running(pipeline_factory(beam_args)(), staging, progress) as pipeline:
            planned, plan = transforms.plan_rows(pipeline, opened, unlimited, staging)
            tasks = transforms.cut_into_shards(planned, plan, unlimited)
            transforms.check_shards(tasks, unlimited, staging)
        staged, results = _read_outcome(staging, unlimited)
    rejects = _all_rejects(staged, results)
    dataset = _to_dataset(opened, staged, results, decoded)
    return CheckResult(dataset, rejects, time.monotonic() - started)


def plan(
    source: AnySource,
    *,
    beam_args: Sequence[str] = (),
    **options: Any,
) -> StagedPlan:
    """Plan what :func:`convert` would write, from rows and file sizes alone (a dry run).

    Args and Raises: as :func:`check`.
    """
    decoded = make_options(options)
    need_local_workers(beam_args, "a dry run")
    with tempfile.TemporaryDirectory(prefix="recordgen-plan-") as folder:
        staging = Staging(folder)
        with _running(pipeline_factory(beam_args)(), staging, None) as pipeline:
            transforms.plan_rows(pipeline, open_source(source), decoded, staging)
        return _read_plan(staging)


def convert_files(
    files: Sequence[ImportFile],
    output: str,
    options: ConvertOptions,
    *,
    new_pipeline: NewPipeline,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ConversionResult:
    """Convert import files on a Beam pipeline of the caller's.

    Args:
        files: what to read.
        output: folder or URL prefix to write.
        options: how.
        new_pipeline: makes the (empty) pipeline that carries the work.
        overwrite: replace a dataset that is already there.
        progress: is told how far the run is.

    Raises: as :func:`convert`.
    """
    return convert_source(
        Source.of_files(files),
        output,
        options,
        new_pipeline=new_pipeline,
        overwrite=overwrite,
        progress=progress,
    )


def convert_source(
    source: Source,
    output: str,
    options: ConvertOptions,
    *,
    new_pipeline: NewPipeline,
    overwrite: bool,
    progress: Progress | None,
) -> ConversionResult:
    """Convert an opened source; what :func:`convert` and :func:`convert_files` share."""
    started = time.monotonic()
    pipeline = new_pipeline()
    staging = open_staging(output, overwrite=overwrite)
    with _running(pipeline, staging, progress):
        planned, the_plan = transforms.plan_rows(pipeline, source, options, staging)
        tasks = transforms.cut_into_shards(planned, the_plan, options)
        transforms.write_shards(tasks, options, staging)
    staged, results = _read_outcome(staging, options)
    rejects = _all_rejects(staged, results)
    _stop_unless_usable(staged, results, rejects, output, options)
    dataset = _to_dataset(source, staged, results, options)
    commit(staging, output, dataset, rejects)
    return ConversionResult(output, dataset, rejects, time.monotonic() - started)


def make_options(values: dict[str, Any]) -> ConvertOptions:
    """Decode keyword options. Raises: UsageError for an unknown name or a wrong value."""
    check_names(values, [item.name for item in fields(ConvertOptions)])
    fractions = values.get("split_fractions")
    if isinstance(fractions, str):
        values = {**values, "split_fractions": SplitFractions.parse(fractions)}
    elif isinstance(fractions, Sequence):
        text = ",".join(map(str, fractions))
        values = {**values, "split_fractions": SplitFractions.parse(text)}
    return ConvertOptions(**values)


def open_source(source: AnySource) -> Source:
    """Find the import files, or take the rows of a DataFrame. Raises: SourceError, UsageError."""
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        from recordgen.sources.dataframe import dataframe_rows

        return Source.of_rows(dataframe_rows(source))
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str) or (isinstance(source, Sequence) and source):
        return Source.of_files(find_import_files(source))
    raise UsageError(f"source must be a path, several paths or a DataFrame (got {source!r})")


@contextmanager
def _running(
    pipeline: beam.Pipeline, staging: Staging, progress: Progress | None
) -> Iterator[beam.Pipeline]:
    """Give the pipeline to build, then run it; what workers left as their error is raised."""
    yield pipeline
    running: PipelineResult | None = None
    # A million objects of Beam and its libraries are there to stay: collections while rows are
    # planned need not look at each of them again and again.
    gc.freeze()
    try:
        with watching(staging, progress), dying_with_workers():
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
        gc.unfreeze()
        release(running)


def _read_plan(staging: Staging) -> StagedPlan:
    staged = staging.read_plan()
    if staged is None:
        raise RunnerError(f"the run ended without a plan in {staging.root}")
    return staged


def _read_outcome(
    staging: Staging, options: ConvertOptions
) -> tuple[StagedPlan, list[ShardResult]]:
    """Return the plan and the result of every shard that it names.

    Raises:
        RunnerError: a shard or a row is missing.
    """
    staged = _read_plan(staging)
    results = staging.read_results()
    planned = {
        shard_file(split, index, numbers["shards"], options.compression)
        for split, numbers in staged.splits.items()
        for index in range(numbers["shards"])
    }
    if too_many(len(staged.rejects), staged.read, options):
        planned = set()  # then nothing is written
    found = {result.shard.file for result in results}
    if found != planned:
        odd = sorted(found ^ planned)
        raise RunnerError(
            f"the run ended with {len(found)} of {len(planned)} shards (such as {odd[0]}); "
            f"run it again"
        )
    done = sum(result.shard.examples + len(result.rejects) for result in results)
    rows = staged.rows if planned else 0
    if done != rows:
        raise RunnerError(f"the run ended with {done} of {rows} planned rows; run it again")
    return staged, results


def _all_rejects(staged: StagedPlan, results: Sequence[ShardResult]) -> tuple[Reject, ...]:
    rejects = [*staged.rejects, *(item for result in results for item in result.rejects)]
    return tuple(sorted(rejects))


def _stop_unless_usable(
    staged: StagedPlan,
    results: Sequence[ShardResult],
    rejects: Sequence[Reject],
    output: str,
    options: ConvertOptions,
) -> None:
    """Raise unless there are examples and few enough rejects; rejects are written either way."""
    examples = sum(result.shard.examples for result in results)
    failed = too_many(len(rejects), staged.read, options)
    if examples and not failed:
        return
    path = abandon(output, rejects)
    if failed:
        raise TooManyRejectsError(
            f"{len(rejects)} of {staged.read} rows were rejected, more than the allowed "
            f"{options.max_reject_fraction:.2%} ({_by_reason(rejects)}); mend them or raise "
            f"max_reject_fraction",
            rejects=rejects,
            rejects_file=path,
        )
    raise NothingToConvertError(
        f"nothing to convert: {staged.read} rows read, {len(rejects)} rejected "
        f"({_by_reason(rejects)}), {staged.dropped} dropped for want of a split",
        rejects=rejects,
        rejects_file=path if rejects else None,
    )


def _by_reason(rejects: Sequence[Reject]) -> str:
    counts = Counter(item.code for item in rejects).most_common()
    return ", ".join(f"{code} {count}" for code, count in counts) or "none"


def _to_dataset(
    source: Source,
    staged: StagedPlan,
    results: Sequence[ShardResult],
    options: ConvertOptions,
) -> Dataset:
    splits: dict[str, Split] = {}
    for name in staged.splits:
        mine = [result for result in results if result.split == name]
        labels: Counter[str] = Counter()
        for result in mine:
            labels.update(result.labels)
        shards = tuple(result.shard for result in mine)
        examples = sum(shard.examples for shard in shards)
        if examples:
            size = sum(shard.bytes for shard in shards)
            # A shard whose rows were all rejected has no images to speak of.
            images = ImageStats.merge(item.images for item in mine if item.shard.examples)
            splits[name] = Split(examples, size, dict(sorted(labels.items())), shards, images)
    reencoded: Counter[str] = Counter()
    for result in results:
        reencoded.update(result.reencoded)
    rejects = _all_rejects(staged, results)
    rows = RowCounts(
        read=staged.read,
        examples=sum(split.examples for split in splits.values()),
        duplicates=staged.duplicates,
        dropped=staged.dropped,
        assigned=sum(result.drawn for result in results),
        rejected=dict(sorted(Counter(item.code for item in rejects).items())),
    )
    return Dataset(
        task=TASK,
        recordgen_version=__version__,
        source=source.names,
        seed=options.seed,
        options=options.recorded(),
        compression=options.compression,
        label_kind=staged.vocabulary.kind,
        labels=staged.vocabulary.names,
        splits=splits,
        rows=rows,
        reencoded=dict(sorted(reencoded.items())),
        warnings=advice(staged.vocabulary, splits, rows),
        digest=dataset_digest([shard for split in splits.values() for shard in split.shards]),
    )
