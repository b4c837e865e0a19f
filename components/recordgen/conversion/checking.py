"""Runs that write nothing: they check a source, or compare it with a finished dataset."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

from recordgen.beam.runners import need_local_workers, runner_factory
from recordgen.conversion.results import CheckResult, ConversionResult
from recordgen.conversion.settings import conversion_of
from recordgen.conversion.work import Work, checked, read_outcome
from recordgen.core.dataset.manifest import Dataset, read_dataset
from recordgen.core.flow import graph
from recordgen.core.flow.runner import Runner
from recordgen.core.progress import Phases, Progress
from recordgen.core.runs.commit import ways_on
from recordgen.core.runs.staging import Staging
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
    conversion = conversion_of(options)
    splits = replace(conversion.splits, without_eval="")
    conversion = replace(conversion, max_reject_fraction=1.0, splits=splits)
    need_local_workers(beam_args, "check")
    prefix = "recordgen-check-"
    with tempfile.TemporaryDirectory(prefix=prefix) as folder, Phases(progress) as phases:
        staging = Staging(folder)
        work = Work(opened, conversion, options.selection, phases, staging)
        check_shards = partial(graph.check_shards, conversion=conversion, staging=staging)
        work.run(runner_factory(beam_args)(), check_shards)
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
