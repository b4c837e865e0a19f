"""Beam's runners by the names people give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from recordgen.errors import UsageError

# By class path: newer Beams start or even download another runner for "DirectRunner".
IN_MEMORY_RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"

_RUNNERS = {
    "directrunner": IN_MEMORY_RUNNER,
    "fnapirunner": IN_MEMORY_RUNNER,
    "dataflowrunner": "DataflowRunner",
    "portablerunner": "PortableRunner",
    "flinkrunner": "FlinkRunner",
    "sparkrunner": "SparkRunner",
    "prismrunner": "PrismRunner",
    "daskrunner": "apache_beam.runners.dask.dask_runner.DaskRunner",
}


def runner_name(name: str) -> str:
    """Return the runner that Beam knows for a name in any case: ``DataFlowRunner`` is one."""
    return _RUNNERS.get(name.lower(), name)


def pipeline_factory(beam_args: Sequence[str] = ()) -> Callable[[], beam.Pipeline]:
    """Return a function that makes a Beam pipeline for command-line flags.

    Without ``--runner`` it works in this process.

    The function raises UsageError for flags or a runner that Beam does not take.
    """
    flags: list[str] = []
    named = False
    waiting = iter(beam_args)
    for flag in waiting:
        if flag == "--runner":
            flag = f"--runner={next(waiting, '')}"
        if flag.startswith("--runner="):
            flag = f"--runner={runner_name(flag.removeprefix('--runner='))}"
            named = True
        flags.append(flag)
    if not named:
        flags.append(f"--runner={IN_MEMORY_RUNNER}")
    if _has(flags, "--direct_num_workers") and not _has(flags, "--direct_running_mode"):
        # Beam's own default keeps several workers on one thread; processes take 10 s to start.
        flags.append("--direct_running_mode=multi_threading")

    def new_pipeline() -> beam.Pipeline:
        try:
            return beam.Pipeline(options=PipelineOptions(flags))
        except (ValueError, ImportError, AttributeError) as exc:
            raise UsageError(f"Beam does not take {' '.join(flags)}: {exc}") from exc

    return new_pipeline


def _has(flags: Sequence[str], name: str) -> bool:
    return any(flag == name or flag.startswith(f"{name}=") for flag in flags)
