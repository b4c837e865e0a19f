"""Beam's runners by the names people give them."""

from __future__ import annotations

import argparse
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


# Job servers of other runners have options of their own, which Beam learns from them.
_DATAFLOW = "--runner=DataflowRunner"
_CLOSED_RUNNERS = frozenset({f"--runner={IN_MEMORY_RUNNER}", _DATAFLOW})


def runner_name(name: str) -> str:
    """Return the runner that Beam knows for a name in any case: ``DataFlowRunner`` is one."""
    return _RUNNERS.get(name.lower(), name)


def beam_flags(beam_args: Sequence[str]) -> list[str]:
    """Return command-line flags for Beam with the runner's own name in them, and its defaults.

    ``["--runner", "dataFlowRunner"]`` → ``["--runner=DataflowRunner"]``. Without ``--runner`` the
    work is done in this process.
    """
    flags: list[str] = []
    waiting = iter(beam_args)
    for flag in waiting:
        if flag == "--runner":
            flag = f"--runner={next(waiting, '')}"
        if flag.startswith("--runner="):
            flag = f"--runner={runner_name(flag.removeprefix('--runner='))}"
        flags.append(flag)
    if not _has(flags, "--runner"):
        flags.append(f"--runner={IN_MEMORY_RUNNER}")
    if _has(flags, "--direct_num_workers") and not _has(flags, "--direct_running_mode"):
        # Beam's own default keeps several workers on one thread; processes take 10 s to start.
        flags.append("--direct_running_mode=multi_threading")
    return flags


def pipeline_factory(beam_args: Sequence[str] = ()) -> Callable[[], beam.Pipeline]:
    """Return a function that makes a Beam pipeline for command-line flags.

    The function raises UsageError for flags or a runner that Beam does not take.
    """
    flags = beam_flags(beam_args)

    def new_pipeline() -> beam.Pipeline:
        try:
            if not _CLOSED_RUNNERS.isdisjoint(flags):
                _check_flags(flags)
            return beam.Pipeline(options=PipelineOptions(flags))
        except (ValueError, ImportError, AttributeError, argparse.ArgumentError) as exc:
            raise UsageError(f"Beam does not take {' '.join(flags)}: {exc}") from exc

    return new_pipeline


def need_local_workers(beam_args: Sequence[str], what: str) -> None:
    """Refuse a runner whose workers cannot reach this machine's files. Raises: UsageError."""
    if _DATAFLOW in beam_flags(beam_args):
        raise UsageError(
            f"{what} needs workers on this machine, and Dataflow's are elsewhere: write to a "
            f"bucket (gs://…), or leave the runner out"
        )


def _check_flags(flags: Sequence[str]) -> None:
    """Refuse flags that Beam does not know: it would ignore them, with a log line at best."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for group in PipelineOptions.__subclasses__():
        group._add_argparse_args(parser)
    _, unknown = parser.parse_known_args(list(flags))
    if unknown:
        raise UsageError(f"Beam does not know {' '.join(unknown)}")


def _has(flags: Sequence[str], name: str) -> bool:
    return any(flag == name or flag.startswith(f"{name}=") for flag in flags)
