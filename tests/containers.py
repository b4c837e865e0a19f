"""The container engine of this machine, for tests that run the image.

    def test_it(engine: Engine) -> None:
        done = engine.run(command=["recordgen", "--version"])

`make image` builds the image; `RECORDGEN_IMAGE` names another image, which must then exist when the
process with the number `RECORDGEN_PREPARING` has ended.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from recordgen.version import __version__

ROOT = Path(__file__).resolve().parents[1]
IMAGE = os.environ.get("RECORDGEN_IMAGE") or f"recordgen:{__version__}"


@dataclasses.dataclass(frozen=True)
class Engine:
    """docker or podman, with the settings that it needs on this machine.

    Attributes:
        program: ``docker`` or ``podman``.
        environment: All variables that the program needs.
        image: The image under test, under its name in the engine's API.
        docker_host: The ``unix://`` address of the engine's Docker API.
    """

    program: str
    environment: Mapping[str, str]
    image: str
    docker_host: str

    def run(
        self,
        *args: str,
        command: Sequence[str],
        mounts: Mapping[str | Path, str | Path] | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run ``command`` in a new container of the image and return its output.

        Args:
            *args: More options of ``docker run``.
            command: The container's command, after its ENTRYPOINT.
            mounts: Folders of this machine, and their paths in the container.
            env: Variables inside the container.
            user: User or ``uid:gid``; by default the image's own.
            timeout: Seconds after which the run fails.
        """
        options = [f"--volume={outside}:{inside}" for outside, inside in (mounts or {}).items()]
        options += [f"--env={name}={value}" for name, value in (env or {}).items()]
        options += [f"--user={user}"] if user else []
        return self.call("run", "--rm", *options, *args, self.image, *command, timeout=timeout)

    def call(self, *args: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run the engine's program and return its output."""
        how: Any = {"capture_output": True, "text": True, "env": dict(self.environment)}
        return subprocess.run([self.program, *args], timeout=timeout, check=False, **how)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Yield the engine; if it cannot run the image, skip, or fail if RECORDGEN_IMAGE is set."""
    preparing = os.environ.get("RECORDGEN_PREPARING", "none")
    while Path("/proc", preparing).exists():
        time.sleep(1)
    found = subprocess.run(
        [ROOT / "scripts" / "image", "env"], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        _give_up(f"no container engine: {found.stderr.strip()}")
    # export NAME=value
    settings = dict(word.split("=", 1) for word in shlex.split(found.stdout) if "=" in word)
    environment = {**os.environ, **settings}
    bare = Engine(settings["ENGINE"], environment, IMAGE, "")
    listed = bare.call("image", "inspect", '--format={{join .RepoTags " "}}', IMAGE)
    names = [name for name in listed.stdout.split() if f"/{name}".endswith(f"/{IMAGE}")]
    if not names:
        _give_up(f"no image {IMAGE}: make image builds it")
    named = dataclasses.replace(bare, image=names[0])
    # An image that another checkout built may need the settings that only `make image` writes here.
    tried = named.run(command=["true"])
    if tried.returncode != 0:
        _give_up(f"{IMAGE} does not run here, make image may help: {tried.stderr.strip()[-500:]}")
    if named.program == "docker":
        address = bare.call("context", "inspect", "--format={{.Endpoints.docker.Host}}")
        yield dataclasses.replace(named, docker_host=address.stdout.strip())
        return
    # Paths of sockets must be short; pytest's tmp_path may be too long.
    with tempfile.TemporaryDirectory(prefix="recordgen-") as folder:
        socket = Path(folder, "engine.sock")
        address = f"unix://{socket}"
        with subprocess.Popen(
            ["podman", "system", "service", "--time=0", address], env=environment
        ) as service:
            try:
                _wait_for(socket, service)
                yield dataclasses.replace(named, docker_host=address)
            finally:
                service.terminate()


def _wait_for(socket: Path, service: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while not socket.exists():
        assert service.poll() is None, "podman's service ended"
        assert time.monotonic() < deadline, "podman's service does not listen"
        time.sleep(0.05)


def _give_up(reason: str) -> None:
    if os.environ.get("RECORDGEN_IMAGE"):
        pytest.fail(reason)
    pytest.skip(reason)
