"""Processes that have loaded what takes long to load: each is forked off one that has.

    with preloaded("tfx.v1") as run:
        done = run(["-m", "recordgen.examplegen.vertex_driver", "--help"], environment)

What a program does while it is loaded is not seen here: one test of each program starts a process
of its own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess

from tests.clusters import ROOT
from tests.conftest import COMPONENTS

Run = Callable[[Sequence[str], Mapping[str, str]], "CompletedProcess[str]"]


@contextmanager
def preloaded(*modules: str) -> Iterator[Run]:
    """Load modules in a process; give what runs ``-m NAME ARGUMENT…`` in copies of it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-m", "tests.preloaded", *modules],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{COMPONENTS}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server,
    ):

        def run(words: Sequence[str], variables: Mapping[str, str]) -> CompletedProcess[str]:
            assert server.stdin is not None
            assert server.stdout is not None
            out, errors = Path(folder, "out"), Path(folder, "errors")
            asked = [list(words), dict(variables), str(out), str(errors)]
            server.stdin.write(json.dumps(asked) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
            return CompletedProcess(words, code, out.read_text(), errors.read_text())

        yield run
        server.kill()


def _serve(modules: Sequence[str]) -> None:
    for module in modules:
        import_module(module)
    processes = multiprocessing.get_context("fork")
    for line in sys.stdin:
        process = processes.Process(target=_run, args=json.loads(line))
        process.start()
        process.join()
        print(process.exitcode, flush=True)


def _run(words: Sequence[str], variables: Mapping[str, str], out: str, errors: str) -> None:
    """Do what the process that was asked for would do."""
    for stream, path in ((1, out), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.environ.clear()
    os.environ.update(variables)
    flag, module, *arguments = words
    assert flag == "-m"
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(sys.argv[1:])
