"""Processes that have loaded what takes long to load: each is forked off one that has.

    done = WITH_BEAM.run("-m", "recordgen.cli", "convert", source, output)

What a program does while it is loaded is not seen here: other tests see to that, in processes of
their own.
"""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess

from tests.conftest import COMPONENTS

ROOT = Path(__file__).parents[1]

_TIMEOUT_SECONDS = 600


class Preloaded:
    """A process that has loaded ``modules``, from when it is first asked for a copy of itself."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> CompletedProcess[str]:
        """Do what ``python WORDS…`` would do.

        Args:
            *words: ``-m MODULE ARGUMENT…``, ``-c CODE ARGUMENT…`` or ``FILE ARGUMENT…``.
            env: all variables; those of this process without, which find the package.
        """
        stdin, stdout = self._server.stdin, self._server.stdout
        assert stdin is not None
        assert stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, errors = Path(folder, "out"), Path(folder, "errors")
            asked = [words, dict(_environment() if env is None else env), str(out), str(errors)]
            stdin.write(json.dumps(asked) + "\n")
            stdin.flush()
            code = int(stdout.readline())
            return CompletedProcess(words, code, out.read_text(), errors.read_text())

    @cached_property
    def _server(self) -> subprocess.Popen[str]:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.preloaded", *self._modules],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(server.kill)
        return server


#: What a conversion loads.
BEAM_MODULES = (
    "recordgen.conversion.api",
    "recordgen.writing.api",
    "recordgen.report",
    "apache_beam.runners.portability.fn_api_runner",
)

WITH_BEAM = Preloaded(*BEAM_MODULES)
WITH_TENSORFLOW = Preloaded("tensorflow", "recordgen.training.run")
WITH_TFX = Preloaded("tfx.v1", "tensorflow_model_analysis", "pipelines.pipeline")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{COMPONENTS}{os.pathsep}{ROOT}"}


def _serve(modules: Sequence[str]) -> None:
    for module in modules:
        import_module(module)
    processes = multiprocessing.get_context("fork")
    for line in sys.stdin:
        process = processes.Process(target=_run, args=json.loads(line))
        process.start()
        process.join(_TIMEOUT_SECONDS)
        process.kill()
        process.join()
        print(process.exitcode, flush=True)


def _run(words: Sequence[str], variables: Mapping[str, str], out: str, errors: str) -> None:
    for stream, path in ((1, out), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.environ.clear()
    os.environ.update(variables)
    first, *arguments = words
    if first == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = list(words)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    _serve(sys.argv[1:])
