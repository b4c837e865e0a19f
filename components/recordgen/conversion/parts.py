"""A conversion in parts: plan, work on each part, commit, each in a process of its own.

:func:`recordgen.conversion.api.convert` does the same in one graph of steps, since a second job
takes some runners minutes. All three functions are that graph's and that commit's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from recordgen import storage
from recordgen.beam import runner_factory
from recordgen.console.terminal import AUTO, progress_for
from recordgen.conversion.api import conversion_of, open_for
from recordgen.conversion.appending import find_existing
from recordgen.conversion.results import ConversionResult, PartResult, PartsResult, warn_about
from recordgen.conversion.work import (
    Mode,
    Work,
    committed,
    facets_of,
    opened_run,
    read_plan,
    stop_unless_usable,
)
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.counts import Shard
from recordgen.core.dataset.manifest import REJECTS_FILE, read_dataset
from recordgen.core.flow import graph
from recordgen.core.flow.graph import running
from recordgen.core.flow.runner import LocalRunner
from recordgen.core.flow.steps import ShardKey
from recordgen.core.ordered import map_in_order
from recordgen.core.planning.appending import Existing
from recordgen.core.planning.plan import ShardOutline
from recordgen.core.progress import Phases, Progress
from recordgen.core.rows.row import ROW_BYTES
from recordgen.core.runs import commit as runs
from recordgen.core.runs import lease
from recordgen.core.runs.staging import Staging, decoding
from recordgen.errors import RunnerError, SourceError, StorageError, UsageError, check_at_least
from recordgen.exports.export import read_lines
from recordgen.formats.detect import Detection
from recordgen.formats.import_file import ImportFile
from recordgen.formats.source import AnySource, Source
from recordgen.lineage import conversion_events
from recordgen.messages import listed
from recordgen.options import (
    OPTIONS,
    ConvertOptions,
    OptionValues,
    make_options,
    option_text,
    takes_options,
)
from recordgen.rejects import Reject

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Fields of the options that are not options: what a door or detection has decided.
_DECIDED = ("confined", "table")


def saved(options: ConvertOptions) -> dict[str, Any]:
    """Return all options as JSON."""
    values = {name: option_text(name, getattr(options, name)) for name in OPTIONS}
    return values | {name: getattr(options, name) for name in _DECIDED}


def options_of(planned: lease.PlannedParts) -> ConvertOptions:
    """Return the options of a planned run. Raises: RunnerError: they were changed."""
    with decoding("parts.json: options"):
        lists = {name: tuple(planned.options[name]) for name in OPTIONS if OPTIONS[name].several}
        return ConvertOptions(**{**planned.options, **lists})


def source_of(planned: lease.PlannedParts, options: ConvertOptions, examples: int) -> Source:
    """Return what ``dataset.json`` says about the source, and its size: the rows are staged."""
    files = tuple(map(ImportFile, planned.sources))
    detection = Detection(options, keypoints=planned.keypoints)
    return Source(files, bytes=examples * ROW_BYTES, detection=detection)


def digest_of(existing: Existing | None) -> str:
    """Return the digest of the dataset that a run appends to; empty if there is none yet."""
    return existing.dataset.digest if existing is not None else ""


def existing_of(
    planned: lease.PlannedParts, output: str, staging: Staging, conversion: Conversion
) -> Existing | None:
    """Return the dataset that the run appends to, if any. Raises: RunnerError if it changed."""
    if planned.base is None:
        return None
    existing = find_existing(output, conversion)
    if staging.moving or digest_of(existing) != planned.base:
        raise RunnerError(
            f"{output}: the dataset that this run appends to has changed since it was planned; "
            f"plan again with --append --resume"
        )
    return existing


def versions_of(paths: Iterable[str]) -> dict[str, str]:
    """Return the version of each import file by path; empty for a folder."""
    given = list(paths)
    versions = map_in_order(_version, given, threads=storage.threads(given))
    return dict(zip(given, versions, strict=True))


def _version(path: str) -> str:
    with suppress(OSError, StorageError):
        return storage.version(path)
    return ""


def check_sources(planned: lease.PlannedParts) -> None:
    """Check that the import files are as they were planned. Raises: SourceError."""
    there = {path: known for path, known in planned.sources.items() if known}
    for path, now in versions_of(there).items():
        if not now:
            raise SourceError(
                f"{path}: not found from {os.getcwd()}; the parts need the same paths as the plan: "
                f"start them in the same folder, or plan with whole paths"
            )
        if now != there[path]:
            raise SourceError(
                f"{path}: has changed since the run was planned; plan again with --resume, which "
                f"keeps the shards that stay the same"
            )


#: Variable with the number of the part, if none is given: Kubernetes sets it in indexed jobs.
PART_VARIABLE = "JOB_COMPLETION_INDEX"


@takes_options
def plan(
    source: AnySource,
    output: str | os.PathLike[str],
    parts: int,
    *,
    overwrite: bool = False,
    append: bool = False,
    resume: bool = False,
    beam_args: Sequence[str] = (),
    progress: Progress | Literal["auto"] | None = AUTO,
    **options: Unpack[OptionValues],
) -> PartsResult:
    """Plan a conversion for workers that are started by a scheduler, see :func:`work`.

    The plan waits in the staging folder of ``output``, with all options.

    Args and Raises: as :func:`recordgen.convert`; ``parts`` is the number of workers. With
        ``resume``, workers keep the finished shards of an earlier plan, which is replaced.
    """
    check_at_least(1, parts=parts)
    target, shown = storage.normal(os.fspath(output)), progress_for(progress)
    mode = Mode(overwrite, append, resume)
    opened, decided = open_for(source, target, make_options(options), mode, beam_args, shown)
    if not opened.files:
        raise UsageError(
            "parts need import files: write the DataFrame to a file, and give its path"
        )
    opened.check_apart(target)
    storage.check_writable(target)
    conversion = conversion_of(decided, opened.files)
    versions = versions_of(file.path for file in opened.files)  # before rows are read
    with opened_run(opened, target, conversion, mode, in_parts=True) as (run, existing):
        runner = runner_factory(beam_args)()
        with running(runner, run.staging, shown, conversion.task.noun):
            graph.plan_rows(runner, opened, conversion, run.staging, existing, parts)
        staged = read_plan(run.staging)
        most = conversion.max_reject_fraction
        stop_unless_usable(staged, staged.rows, staged.rejects, target, most)
        planned = lease.PlannedParts(
            parts=parts,
            shards=staged.shards,
            options=saved(decided),
            sources=versions,
            keypoints=opened.keypoints,
            base=digest_of(existing) if append else None,
        )
        lease.write_planned(run.staging, planned)
    result = PartsResult(**vars(staged), detection=opened.detection, output=target, parts=parts)
    warn_about(result)
    return result


def work(
    output: str | os.PathLike[str],
    part: int | None = None,
    *,
    said: Callable[[str], None] | None = None,
) -> PartResult:
    """Write the shards of one part of a planned run.

    It may be repeated, also after the commit, and run several times at once, with the same bytes: a
    finished part is left as it is, and finished shards of an unfinished part are kept.

    Args:
        output: as in :func:`plan`, perhaps mounted elsewhere.
        part: number of the part, from 0; by default, the environment has it in
            ``JOB_COMPLETION_INDEX``, as in Kubernetes' indexed jobs.
        said: receives a line about each shard.

    Raises:
        UsageError: there is no such part.
        RunnerError: no run is planned there, or another version of Recordgen planned it, or
            another run took it over meanwhile.
        SourceError: an import file has changed since, or is not found.
        StorageError: storage failed.
    """
    started, target = time.monotonic(), storage.normal(os.fspath(output))
    try:
        result = _worked(target, part, said)
    except RunnerError:  # perhaps because a commit removed the plan, before or meanwhile
        if not runs.is_published(target):
            raise
        result = PartResult(output=target, was_done=True, is_committed=True)
    return replace(result, seconds=time.monotonic() - started)


def _worked(output: str, part: int | None, said: Callable[[str], None] | None) -> PartResult:
    staging = runs.find_planned(output)
    planned = lease.read_planned(staging)
    number = _number(part, planned.parts)
    outlines = []
    if number in planned.filled:
        lease.check_plan(staging, planned)
        outlines = staging.read_outlines(number)
    is_done = not outlines or number in lease.finished_parts(staging)
    if not is_done:
        check_sources(planned)
        with lease.held(lease.worker_lease(staging, number)), lease.naming_end(output, staging):
            _write(output, staging, planned, outlines, f"part {number} of {planned.parts}", said)
            lease.finish_part(staging, number)
    return PartResult(
        output=output, part=number, parts=planned.parts, shards=len(outlines), was_done=is_done
    )


def _write(
    output: str,
    staging: Staging,
    planned: lease.PlannedParts,
    outlines: Sequence[ShardOutline],
    name: str,
    said: Callable[[str], None] | None,
) -> None:
    conversion = conversion_of(options_of(planned))

    def elements() -> Iterator[tuple[ShardKey, list[ShardOutline]]]:
        for index, outline in enumerate(outlines, start=1):
            lease.check_planned(output, staging)
            if said is not None:
                said(f"{name}: shard {index} of {len(outlines)}")
            yield (outline.split, outline.index), [outline]

    run = runs.Run(staging, runs.find_leftovers(output, staging), in_parts=True)
    runner = LocalRunner()
    with running(runner, staging, None, conversion.task.noun):
        graph.write_shards(runner.start("ListShards", elements()), conversion, run)
    lease.check_planned(output, staging)


def commit(
    output: str | os.PathLike[str], *, progress: Progress | Literal["auto"] | None = AUTO
) -> ConversionResult:
    """Check and commit a planned run whose parts are all written.

    It may be repeated: if a dataset is there and no run is planned, the result is ``unchanged``,
    without ``counts``.

    Args:
        output: as in :func:`plan`.
        progress: as in :func:`recordgen.convert`.

    Raises:
        UsageError: another process commits the run, or writes to ``output``.
        RunnerError: a part is not written; or as :func:`work`.
        DataError, StorageError: as :func:`recordgen.convert`.
    """
    started, target = time.monotonic(), storage.normal(os.fspath(output))
    if runs.is_published(target):
        return _there(target, {})
    with runs.open_planned(target) as staging, Phases(progress_for(progress)) as phases:
        planned = lease.read_planned(staging)
        lease.check_plan(staging, planned)
        if runs.is_committed(target, staging):
            counts = read_plan(staging).totals(staging.read_results().values())
            result = _there(target, counts)
        else:
            result = _published(target, staging, planned, phases)
    result = replace(result, detection=None, seconds=time.monotonic() - started)
    warn_about(result)
    return result


def _check_sizes(staging: Staging, shards: Iterable[Shard]) -> None:
    """Check that written shards are as long as their results say. Raises: RunnerError."""

    def check(shard: Shard) -> None:
        path = staging.path(shard.file)
        if (size := storage.size(path)) != shard.bytes:
            raise RunnerError(
                f"{path}: has {size:,} bytes instead of {shard.bytes:,}; plan again with --resume, "
                f"which keeps the shards that are whole"
            )

    list(map_in_order(check, shards, threads=storage.threads([staging.root])))


def _published(
    output: str, staging: Staging, planned: lease.PlannedParts, phases: Phases
) -> ConversionResult:
    missing = sorted(set(planned.filled) - lease.finished_parts(staging))
    if missing:
        raise RunnerError(
            f"{output}: {len(missing):,} of {len(planned.filled):,} parts are not written: "
            f"{listed(missing, str)}; run recordgen parts work for each, then commit again"
        )
    check_sources(planned)
    options = options_of(planned)
    conversion = conversion_of(options)
    run = runs.Run(staging, runs.find_leftovers(output, staging), in_parts=True)
    results = staging.read_results()
    examples = sum(each.examples for each in results.values())
    source = source_of(planned, options, examples)
    existing = existing_of(planned, output, staging, conversion)
    work = Work(source, conversion, options.selection, phases, staging, existing, output)
    with conversion_events(source.names, output) as events:
        shards = [shard for each in results.values() for shard in each.shards]
        files = [shard.file for shard in shards]
        runs.take_back(output, staging, files)
        _check_sizes(staging, shards)
        runner = LocalRunner()
        with work.running(runner):
            work.examine(runner, runner.start("ListShards", files))
        result = committed(work, run, output)
        events.emit("COMPLETE", partial(facets_of, result.dataset))
    return result


def _there(output: str, counts: Mapping[str, int]) -> ConversionResult:
    """Return the result of a commit whose dataset was in the output already."""
    rejects = tuple(read_lines(storage.join(output, REJECTS_FILE), Reject))
    return ConversionResult(
        output=output,
        dataset=read_dataset(output),
        rejects=rejects,
        seconds=0.0,
        counts=counts,
        unchanged=True,
    )


def _number(part: int | None, parts: int) -> int:
    """Return the number of a part, given or from the environment. Raises: UsageError."""
    given: object = os.environ.get(PART_VARIABLE) if part is None else part
    if given is None:
        raise UsageError(f"give the number of the part, or set {PART_VARIABLE}")
    number = int(str(given)) if str(given).isdecimal() else -1
    if not 0 <= number < parts:
        raise UsageError(f"the part must be from 0 to {parts - 1} (got {given!r})")
    return number
