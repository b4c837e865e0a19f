"""Processes that have loaded what takes long to load: each is forked off one that has.

    done = WITH_BEAM.run("-m", "recordgen.cli", "convert", source, output)

What a program does while it is loaded is not seen here: other tests see to that, in processes of
their own.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from subprocess import CompletedProcess

from tests.conftest import COMPONENTS

ROOT = Path(__file__).parents[1]

FORK_SERVER = ROOT / "tests" / "fork_server.py"

_LAST_SECONDS = 30


class Preloaded:
    """A process that has loaded ``modules``, from when it is first asked for a copy of itself."""

    def __init__(
        self,
        *modules: str,
        server: Sequence[str] = (sys.executable, "-m", "tests.fork_server"),
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            *modules: what it loads.
            server: what starts ``tests/fork_server.py``.
            environment: all variables of ``server``, which starts it where others hold.
            folder: a folder that is also seen there.
        """
        self._command = (*server, *modules)
        self._environment = environment
        self._folder = folder

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> CompletedProcess[str]:
        """Do what ``python WORDS…`` would do.

        Args:
            *words: ``-m MODULE ARGUMENT…``, ``-c CODE ARGUMENT…`` or ``FILE ARGUMENT…``.
            env: all variables; those of this process without, which find the package, or those that
                hold elsewhere.
        """
        if env is None and self._environment is None:
            env = _environment()
        stdin, stdout = self._server.stdin, self._server.stdout
        assert stdin is not None
        assert stdout is not None
        with tempfile.TemporaryDirectory(dir=self._folder) as printed:
            out, errors = Path(printed, "out"), Path(printed, "errors")
            asked = [words, None if env is None else dict(env), str(out), str(errors)]
            stdin.write(json.dumps(asked) + "\n")
            stdin.flush()
            code = int(stdout.readline())
            return CompletedProcess(words, code, out.read_text(), errors.read_text())

    @cached_property
    def _server(self) -> subprocess.Popen[str]:
        server = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=_environment() if self._environment is None else dict(self._environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)
        return server

    def close(self) -> None:
        """End it, if it was started."""
        if (server := self.__dict__.pop("_server", None)) is None:
            return
        atexit.unregister(self.close)
        with server:
            server.stdin.close()  # it reads to the end
            try:
                server.wait(_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


#: What a conversion loads.
BEAM_MODULES = (
    "recordgen.conversion.api",
    "recordgen.writing.api",
    "recordgen.report",
    "apache_beam.runners.portability.fn_api_runner",
)

#: What the containers of a pipeline load.
TFX_MODULES = ("tfx.v1", "tensorflow_model_analysis")

WITH_BEAM = Preloaded(*BEAM_MODULES)
WITH_TENSORFLOW = Preloaded("tensorflow", "recordgen.training.run")
WITH_TFX = Preloaded(*TFX_MODULES, "pipelines.pipeline")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{COMPONENTS}{os.pathsep}{ROOT}"}
