"""Beam's runners by the names people give them, and what each must be told."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from recordgen import storage
from recordgen.errors import RunnerError, UsageError
from recordgen.flow.in_process import InProcess
from recordgen.flow.running import NewCarrier

# By class path: newer Beams start or even download another runner for "DirectRunner".
IN_MEMORY_RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"

_DATAFLOW = "DataflowRunner"
_DASK = "apache_beam.runners.dask.dask_runner.DaskRunner"

# Names in lower case, and the runners that Beam knows for them.
_RUNNERS = {
    "directrunner": IN_MEMORY_RUNNER,
    "fnapirunner": IN_MEMORY_RUNNER,
    "dataflowrunner": _DATAFLOW,
    "portablerunner": "PortableRunner",
    "flinkrunner": "FlinkRunner",
    "sparkrunner": "SparkRunner",
    "prismrunner": "PrismRunner",
    "daskrunner": _DASK,
}

# Job servers of other runners have options of their own, which Beam learns from them.
_CLOSED_RUNNERS = frozenset({IN_MEMORY_RUNNER, _DATAFLOW, _DASK})

#: Beam and Dask wait for five minutes, or half of one.
CONNECT_SECONDS = 10

# Parts that Dask's runner cuts reading into; writing has three times as many. Each costs it some
# milliseconds.
_DASK_PARTS = 8

# What brings this package to Dataflow's workers.
_PACKAGE_FLAGS = (
    "--setup_file",
    "--sdk_container_image",
    "--extra_package",
    "--extra_packages",
    "--requirements_file",
    "--prebuild_sdk_container_engine",
)


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
            name = flag.removeprefix("--runner=")
            flag = f"--runner={_RUNNERS.get(name.lower(), name)}"
        flags.append(flag)
    if not _has(flags, "--runner"):
        flags.append(f"--runner={IN_MEMORY_RUNNER}")
    if _has(flags, "--direct_num_workers") and not _has(flags, "--direct_running_mode"):
        # Beam's own default keeps several workers on one thread; processes take 10 s to start.
        flags.append("--direct_running_mode=multi_threading")
    if _value(flags, "--runner") == _DASK and not _has(
        flags, "--dask_npartitions", "--dask_partition_size"
    ):
        flags.append(f"--dask_npartitions={_DASK_PARTS}")
    return flags


def carrier_factory(beam_args: Sequence[str] = ()) -> NewCarrier:
    """Return a function that makes what carries a graph.

    This process does, without flags and with ``--runner=DirectRunner`` alone.

    Raises: UsageError: Beam is not installed. The function raises: as of :func:`pipeline_factory`.
    """
    if " ".join(beam_args).replace(" ", "=").lower() in ("", "--runner=directrunner"):
        return InProcess
    try:
        from recordgen.beam.carrier import BeamCarrier
    except ImportError as exc:
        raise UsageError(
            f"{' '.join(beam_args)} is for Beam, which is not installed: pip install "
            f"'recordgen[beam]'"
        ) from exc
    new_pipeline = pipeline_factory(beam_args)
    return lambda: BeamCarrier(new_pipeline())


def pipeline_factory(beam_args: Sequence[str]) -> Callable[[], Any]:
    """Return a function that makes a Beam pipeline for command-line flags.

    The function raises UsageError for flags or a runner that Beam does not take, and RunnerError
    if nothing answers where the flags say that workers are.
    """
    flags = beam_flags(beam_args)
    runner = _value(flags, "--runner")

    def new_pipeline() -> Any:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions

        if runner == _DATAFLOW:
            _check_dataflow(flags)
        if runner == _DASK:
            _check_dask(flags)
        endpoint = _value(flags, "--job_endpoint")
        if endpoint not in ("", "embed"):
            _check_job_server(endpoint)
        try:
            if runner in _CLOSED_RUNNERS:
                _check_flags(flags)
            return beam.Pipeline(options=PipelineOptions(flags))
        except UsageError:
            raise
        except (ValueError, ImportError, AttributeError, argparse.ArgumentError) as exc:
            raise UsageError(f"Beam does not take {' '.join(flags)}: {exc}") from exc
        except _google_errors() as exc:
            raise RunnerError(f"Google Cloud refused what Dataflow needs: {exc}") from exc

    return new_pipeline


def _google_errors() -> tuple[type[Exception], ...]:
    """Return what Google's clients raise; they are installed with the extra gcp alone."""
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
    except ImportError:
        return ()
    return (GoogleAPIError, GoogleAuthError)


def need_local_workers(beam_args: Sequence[str], what: str) -> None:
    """Refuse a runner whose workers cannot reach this machine's files. Raises: UsageError."""
    if _value(beam_flags(beam_args), "--runner") == _DATAFLOW:
        raise UsageError(
            f"{what} needs workers on this machine, and Dataflow's are elsewhere: use a bucket "
            f"(gs://…), or leave the runner out"
        )


def need_reachable(beam_args: Sequence[str], paths: Iterable[str]) -> None:
    """Refuse files of this machine where workers are on others. Raises: UsageError."""
    for path in filter(storage.is_local, paths):
        need_local_workers(beam_args, f"the local file {path}")


def _check_dataflow(flags: Sequence[str]) -> None:
    """Refuse what Dataflow's client would ask the cloud about first, or fail on much later."""
    if not _google_errors():
        raise UsageError(
            "DataflowRunner needs packages that are not installed: pip install 'recordgen[gcp]'"
        )
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
            "whoever starts the job waits for it and makes its output whole, so there is nothing "
            "to start later: leave --template_location and --dry_run out; recordgen has a "
            "--dry-run of its own"
        )
    if not _has(flags, *_PACKAGE_FLAGS):
        raise UsageError(
            "Dataflow's workers need this package: add --sdk_container_image=IMAGE, or "
            "--setup_file=./setup.py in a copy of the repository"
        )


def _check_dask(flags: Sequence[str]) -> None:
    if find_spec("distributed") is None:
        raise UsageError(
            "DaskRunner needs packages that are not installed: pip install 'recordgen[dask]'"
        )
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


def _check_flags(flags: Sequence[str]) -> None:
    """Refuse flags that Beam does not know: it would ignore them, with a log line at best."""
    from apache_beam.options.pipeline_options import PipelineOptions

    unknown: list[str] = []

    def parse(parser: argparse.ArgumentParser) -> None:
        parser.exit_on_error = False
        unknown.extend(parser.parse_known_args(list(flags))[1])

    PipelineOptions([]).get_all_options(add_extra_args_fn=parse)
    if unknown:
        raise UsageError(f"Beam does not know {' '.join(unknown)}")


def _value(flags: Sequence[str], name: str) -> str:
    """Return what ``--name=value`` or ``--name value`` says, at last; "" if nothing does."""
    found = ""
    for flag, following in zip(flags, [*flags[1:], ""], strict=True):
        if flag == name:
            found = following
        elif flag.startswith(f"{name}="):
            found = flag.removeprefix(f"{name}=")
    return found


def _has(flags: Sequence[str], *names: str) -> bool:
    return any(flag.split("=", 1)[0] in names for flag in flags)
