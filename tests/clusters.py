"""Local job servers, worker pools and emulated services for runners, all on 127.0.0.1.

Each ends with its ``with`` block.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import python_environment


def environment(**more: str) -> dict[str, str]:
    """Return environment variables for a process that uses this Python, package and tests."""
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return python_environment(**{"PATH": path, "PYTHONWARNINGS": "ignore", **more})


def free_port() -> int:
    """Return a port that nothing takes before a server that is started now listens on it.

    The system gives the servers and connections of other tests ports above 32,767, at any time.
    """
    while True:
        port = random.SystemRandom().randrange(15_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def process(command: Sequence[str], port: int, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in its own process group; wait until it listens on ``port``."""
    with subprocess.Popen(
        [sys.executable, *command],
        env=environment(**more),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        try:
            deadline = time.monotonic() + 60
            while not _listens(port):
                assert running.poll() is None, f"{command} ended"
                assert time.monotonic() < deadline, f"{command} does not listen"
                time.sleep(0.05)
            yield running
        finally:
            with suppress(ProcessLookupError):  # the test may have killed it
                os.killpg(running.pid, signal.SIGKILL)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def job_server() -> Iterator[tuple[str, int]]:
    """Run Beam's own job service; yield its endpoint and process id."""
    port = free_port()
    module = "apache_beam.runners.portability.local_job_service_main"
    with process(["-m", module, f"--port={port}"], port) as running:
        yield f"localhost:{port}", running.pid


@contextmanager
def worker_pool() -> Iterator[str]:
    """Run a pool that starts the worker processes that jobs request; yield its address."""
    port = free_port()
    module = "apache_beam.runners.worker.worker_pool_main"
    with process(["-m", module, f"--service_port={port}"], port):
        yield f"localhost:{port}"


@contextmanager
def object_store(bucket: str) -> Iterator[str]:
    """Emulate Google Cloud Storage with one bucket; yield its base URL."""
    port = free_port()
    command = ["-m", "gcp_storage_emulator", "start", "--in-memory", "--host=127.0.0.1"]
    with process([*command, f"--port={port}", f"--default-bucket={bucket}"], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def dataflow(store: str, requests: Path) -> Iterator[str]:
    """Emulate Dataflow, see :mod:`tests.dataflow_service`; yield its endpoint.

    Args:
        store: base URL of the object store.
        requests: a folder for the requested jobs, as JSON.
    """
    port = free_port()
    command = ["-m", "tests.dataflow_service", str(port), str(requests)]
    with process(command, port, **emulated(store)):
        yield f"http://localhost:{port}"


def emulated(store: str) -> dict[str, str]:
    """Return environment variables that make libraries use an emulated store."""
    return {
        "STORAGE_EMULATOR_HOST": store,
        "NO_GCE_CHECK": "true",  # or google-auth looks for a server that hands out credentials
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # or gcsfs asks over gRPC what a bucket can
    }
