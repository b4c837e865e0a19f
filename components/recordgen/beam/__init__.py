"""Names, flags and checks of Beam's runners."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from recordgen import storage
from recordgen.console import logs
from recordgen.console.quiet import quiet_imports, waiting
from recordgen.core.flow.graph import NewRunner
from recordgen.core.flow.runner import LocalRunner
from recordgen.errors import RunnerError, UsageError, install

# A class path: newer versions of Beam start or even download another runner for "DirectRunner".
IN_MEMORY_RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"

_DATAFLOW = "DataflowRunner"
_DASK = "apache_beam.runners.dask.dask_runner.DaskRunner"

# Names in lower case, and the names or class paths that Beam accepts.
_RUNNERS = {
    "directrunner": IN_MEMORY_RUNNER,
    "fnapirunner": IN_MEMORY_RUNNER,
    "daskrunner": _DASK,
    **{
        name.lower(): name
        for name in (_DATAFLOW, "PortableRunner", "FlinkRunner", "SparkRunner", "PrismRunner")
    },
}

# Runners whose flags Beam knows in advance. Other runners' job servers define further flags.
_CLOSED_RUNNERS = frozenset({IN_MEMORY_RUNNER, _DATAFLOW, _DASK})

#: Limit for a first connection; Beam waits for five minutes, Dask for half a minute.
CONNECT_SECONDS = 10

# Partitions of reading on Dask's runner; writing has three times as many. Each costs some
# milliseconds.
_DASK_PARTS = 8

# Flags that install this package on Dataflow's workers.
_PACKAGE_FLAGS = (
    "--setup_file",
    "--sdk_container_image",
    "--extra_package",
    "--extra_packages",
    "--requirements_file",
    "--prebuild_sdk_container_engine",
)


def beam_flags(beam_args: Sequence[str]) -> list[str]:
    """Return Beam's command-line flags with the runner's exact name, and with our defaults.

    ``["--runner", "dataFlowRunner"]`` → ``["--runner=DataflowRunner"]``. Without ``--runner``, the
    in-memory runner is added.
    """
    flags: list[str] = []
    waiting = iter(beam_args)
    for flag in waiting:
        if flag == "--runner":
            flag = f"--runner={next(waiting, '')}"
        if flag.startswith("--runner="):
            name = flag.removeprefix("--runner=")
            flag = f"--runner={_RUNNERS.get(name.lower(), name)}"
        flags.append(flag)
    if not _has(flags, "--runner"):
        flags.append(f"--runner={IN_MEMORY_RUNNER}")
    if _has(flags, "--direct_num_workers") and not _has(flags, "--direct_running_mode"):
        # Beam's default runs several workers on one thread.
        flags.append("--direct_running_mode=multi_threading")
    if _value(flags, "--runner") == _DASK and not _has(
        flags, "--dask_npartitions", "--dask_partition_size"
    ):
        flags.append(f"--dask_npartitions={_DASK_PARTS}")
    return flags


def runner_factory(beam_args: Sequence[str] = ()) -> NewRunner:
    """Return a function that makes a runner.

    Without flags, and with only ``--runner=DirectRunner``, the runner is this process.

    Raises:
        UsageError: Beam is not installed, or is to start processes here. The function raises as in
            :func:`pipeline_factory`.
    """
    if " ".join(beam_args).replace(" ", "=").lower() in ("", "--runner=directrunner"):
        return LocalRunner
    if _value(beam_args, "--direct_running_mode") == "multi_processing":
        raise UsageError(
            "on this machine Recordgen starts processes of its own: remove --direct_running_mode, "
            "or choose threads=N for all of them together"
        )
    try:
        with quiet_imports(), waiting("loading Beam", logs.said):
            from recordgen.beam.beam_runner import BeamRunner
    except ImportError as exc:
        raise UsageError(
            f"{' '.join(beam_args)} needs Beam, which is not installed: {install('beam')}"
        ) from exc
    new_pipeline = pipeline_factory(beam_args)
    return lambda: BeamRunner(new_pipeline())


def pipeline_factory(beam_args: Sequence[str]) -> Callable[[], Any]:
    """Return a function that makes a Beam pipeline for command-line flags.

    The function raises UsageError if Beam does not accept the flags or the runner, and RunnerError
    if no scheduler or job server answers at the address in the flags.
    """
    flags = beam_flags(beam_args)
    runner = _value(flags, "--runner")

    def new_pipeline() -> Any:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions

        if runner == _DATAFLOW:
            check_dataflow(flags)
        if runner == _DASK:
            _check_dask(flags)
        endpoint = _value(flags, "--job_endpoint")
        if endpoint not in ("", "embed"):
            _check_job_server(endpoint)
        try:
            if runner in _CLOSED_RUNNERS:
                check_flags(flags)
            return beam.Pipeline(options=PipelineOptions(flags))
        except UsageError:
            raise
        except (ValueError, ImportError, AttributeError, argparse.ArgumentError) as exc:
            raise UsageError(f"Beam does not accept {' '.join(flags)}: {exc}") from exc
        except _google_errors() as exc:
            raise RunnerError(f"Google Cloud refused what Dataflow needs: {exc}") from exc

    return new_pipeline


def _google_errors() -> tuple[type[Exception], ...]:
    """Return the errors of Google's clients; empty without the extra gcp, which installs them."""
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
    except ImportError:
        return ()
    return (GoogleAPIError, GoogleAuthError)


def need_local_workers(beam_args: Sequence[str], what: str) -> None:
    """Raise UsageError if the runner's workers cannot access this machine's files."""
    if _value(beam_flags(beam_args), "--runner") == _DATAFLOW:
        raise UsageError(
            f"{what} needs workers on this machine, but Dataflow's workers are on others: use a "
            f"bucket (gs://…), or remove --runner"
        )


def need_reachable(beam_args: Sequence[str], paths: Iterable[str]) -> None:
    """Raise UsageError if paths are local and the workers are on other machines."""
    for path in filter(storage.is_local, paths):
        need_local_workers(beam_args, f"the local file {path}")


def check_dataflow(flags: Sequence[str]) -> None:
    """Check the flags for Dataflow, whose client would fail much later or after cloud requests."""
    if not _google_errors():
        raise UsageError(f"DataflowRunner needs packages that are not installed: {install('gcp')}")
    missing = [
        name for name in ("--project", "--region", "--temp_location") if not _value(flags, name)
    ]
    if missing:
        raise UsageError(
            f"Dataflow needs --project=…, --region=… and --temp_location=gs://… (missing: "
            f"{', '.join(missing)})"
        )
    if not _value(flags, "--temp_location").startswith("gs://"):
        raise UsageError(
            f"Dataflow needs --temp_location in a bucket, gs://… (got "
            f"{_value(flags, '--temp_location')})"
        )
    if _has(flags, "--template_location", "--dry_run"):
        raise UsageError(
            "a job cannot be started later, because the process that starts it also commits its "
            "output: remove --template_location and --dry_run; recordgen has its own --dry-run"
        )
    if not _has(flags, *_PACKAGE_FLAGS):
        raise UsageError(
            "Dataflow's workers need this package: add --sdk_container_image=IMAGE, or "
            "--setup_file=./setup.py in a copy of the repository"
        )


def _check_dask(flags: Sequence[str]) -> None:
    if find_spec("distributed") is None:
        raise UsageError(f"DaskRunner needs packages that are not installed: {install('dask')}")
    import apache_beam.runners.dask.dask_runner  # noqa: F401  # Beam then knows its flags

    address = _value(flags, "--dask_client_address")
    where = urlsplit(address if "://" in address else f"tcp://{address}")
    if where.scheme in ("tcp", "tls") and where.hostname and where.port:
        try:
            socket.create_connection((where.hostname, where.port), CONNECT_SECONDS).close()
        except OSError as exc:
            raise RunnerError(f"no Dask scheduler answers at {address}: {exc}") from exc


def _check_job_server(endpoint: str) -> None:
    import grpc

    with grpc.insecure_channel(endpoint) as channel:
        try:
            grpc.channel_ready_future(channel).result(CONNECT_SECONDS)
        except grpc.FutureTimeoutError as exc:
            raise RunnerError(
                f"no job server answers at --job_endpoint={endpoint} (waited {CONNECT_SECONDS} s)"
            ) from exc


def check_flags(flags: Sequence[str]) -> None:
    """Raise UsageError for unknown flags, which Beam would ignore with at most a log line."""
    from apache_beam.options.pipeline_options import PipelineOptions

    unknown: list[str] = []

    def parse(parser: argparse.ArgumentParser) -> None:
        parser.exit_on_error = False
        unknown.extend(parser.parse_known_args(list(flags))[1])

    PipelineOptions([]).get_all_options(add_extra_args_fn=parse)
    if unknown:
        raise UsageError(f"Beam does not know {' '.join(unknown)}")


def _value(flags: Sequence[str], name: str) -> str:
    """Return the last value of ``--name=value`` or ``--name value``, or ""."""
    found = ""
    for flag, following in zip(flags, [*flags[1:], ""], strict=True):
        if flag == name:
            found = following
        elif flag.startswith(f"{name}="):
            found = flag.removeprefix(f"{name}=")
    return found


def _has(flags: Sequence[str], *names: str) -> bool:
    return any(flag.split("=", 1)[0] in names for flag in flags)
