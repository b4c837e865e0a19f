"""Runs that write nothing: they check a source, or compare it with a finished dataset."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from recordgen.beam.runners import need_local_workers, runner_factory
from recordgen.checks.selection import Selection
from recordgen.conversion.dataset import to_dataset
from recordgen.conversion.examination import examination_of
from recordgen.conversion.examining import examine
from recordgen.conversion.finalize import all_rejects, first_findings, indexed, linted, read_outcome
from recordgen.conversion.results import CheckResult, ConversionResult
from recordgen.conversion.settings import conversion_of
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.manifest import Dataset, read_dataset
from recordgen.core.flow import graph
from recordgen.core.flow.runner import Runner
from recordgen.core.flow.running import running
from recordgen.core.progress import SHARDS, Progress
from recordgen.core.runs.commit import open_run, ways_on
from recordgen.core.runs.counters import total_counts
from recordgen.core.runs.phases import Phases
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.core.shards.task import SplitSum
from recordgen.errors import OutputExistsError
from recordgen.formats.source import Source
from recordgen.messages.masking import masked
from recordgen.options import ConvertOptions, differing, recorded_there
from recordgen.version import __version__

_log = logging.getLogger(__name__)


def check_opened(
    opened: Source, options: ConvertOptions, beam_args: Sequence[str], progress: Progress | None
) -> CheckResult:
    """Check an opened source. Raises: as :func:`check`."""
    started = time.monotonic()
    # Check all rows, however many rejects, and without eval.
    conversion, selection = conversion_of(options), options.selection
    splits = replace(conversion.splits, without_eval="")
    conversion = replace(conversion, max_reject_fraction=1.0, splits=splits)
    need_local_workers(beam_args, "check")
    prefix = "recordgen-check-"
    with tempfile.TemporaryDirectory(prefix=prefix) as folder, Phases(progress) as phases:
        staging, runner = Staging(folder), runner_factory(beam_args)()
        shared, noun = examination_of(opened, conversion, selection, staging), conversion.task.noun
        with phases.during(SHARDS), running(runner, staging, progress, noun):
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
    results: Mapping[str, SplitSum],
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
        counts=total_counts(staged, results.values()),
        findings=findings,
        detection=source.detection,
        lint=lint,
        phases=phases.seconds,
    )


def confirm(
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

    Raises: OutputExistsError: it is a different dataset.
    """
    there = read_dataset(output)
    there = replace(there, options=recorded_there(there.options))
    known = {
        "task": conversion.task.name,
        "recordgen_version": __version__,
        "source": source.names,
    }
    options = dict.fromkeys((*conversion.recorded, *there.options))
    other = [name for name in known if getattr(there, name) != known[name]]
    _refuse_other(output, [*other, *differing(there.options, conversion.recorded, options)])
    _log.info(
        "%s is finished; reading all payloads to check that they are unchanged", masked(output)
    )
    with open_run(output, overwrite=True, resume=True) as run:
        noun, staging = conversion.task.noun, run.staging
        shared = examination_of(source, conversion, selection, staging)
        with phases.during(SHARDS), running(runner, staging, phases.progress, noun):
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
            f"{output}: there is another finished dataset already ({', '.join(differences)}); "
            f"{ways_on(output)} (with --resume if a run was interrupted)"
        )
