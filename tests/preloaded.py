"""Processes that have already loaded slow modules: each is forked from one that has.

    done = WITH_BEAM.run("-m", "recordgen.cli", "convert", source, output)

Effects of loading a program are not tested here, but by other tests, in processes of their own.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from subprocess import CompletedProcess

from tests.conftest import ROOT, python_environment

FORK_SERVER = ROOT / "tests" / "fork_server.py"

_LAST_SECONDS = 30


class Preloaded:
    """A process that loads ``modules`` when the first copy of it is requested."""

    def __init__(
        self,
        *modules: str,
        server: Sequence[str] = (sys.executable, "-m", "tests.fork_server"),
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Store the settings; the process is not started yet.

        Args:
            *modules: the modules to load.
            server: the command that starts ``tests/fork_server.py``.
            environment: all variables of ``server``.
            folder: a folder that the server can also see.
        """
        self._command = (*server, *modules)
        self._environment = environment
        self._folder = folder

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> CompletedProcess[str]:
        """Run ``python WORDS…`` in a copy of the process.

        Args:
            *words: ``-m MODULE ARGUMENT…``, ``-c CODE ARGUMENT…`` or ``FILE ARGUMENT…``.
            env: all variables; by default the variables of the server, or of this process and the
                path of the package.
        """
        if env is None and self._environment is None:
            env = python_environment()
        stdin, stdout = self._server.stdin, self._server.stdout
        assert stdin is not None
        assert stdout is not None
        with tempfile.TemporaryDirectory(dir=self._folder) as printed:
            out, errors = Path(printed, "out"), Path(printed, "errors")
            command = [words, None if env is None else dict(env), str(out), str(errors)]
            stdin.write(json.dumps(command) + "\n")
            stdin.flush()
            code = int(stdout.readline())
            return CompletedProcess(words, code, out.read_text(), errors.read_text())

    @cached_property
    def _server(self) -> subprocess.Popen[str]:
        server = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=python_environment() if self._environment is None else dict(self._environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)
        return server

    def close(self) -> None:
        """Stop the process, if it was started."""
        if (server := self.__dict__.pop("_server", None)) is None:
            return
        atexit.unregister(self.close)
        with server:
            server.stdin.close()  # the end of its input stops it
            try:
                server.wait(_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


#: The modules of a conversion.
BEAM_MODULES = (
    "recordgen.conversion.api",
    "recordgen.writing.api",
    "recordgen.exports.descriptions",
    "recordgen.exports.report.render",
    "apache_beam.runners.portability.fn_api_runner",
)

#: The modules of a pipeline's containers.
TFX_MODULES = ("tfx.v1", "tensorflow_model_analysis")

WITH_BEAM = Preloaded(*BEAM_MODULES)
WITH_TENSORFLOW = Preloaded("tensorflow", "recordgen.training.run")
WITH_TFX = Preloaded(*TFX_MODULES, "pipelines.pipeline")
