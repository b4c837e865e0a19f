"""Load modules, then run the command in each line of standard input, in a copy of this process.

    python tests/fork_server.py MODULE…

It imports nothing of the tests, because it also runs inside the image, without them.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

_TIMEOUT_SECONDS = 600


def serve(modules: Sequence[str]) -> None:
    """Run each command, ``[words, variables, out, errors]``, and print its exit code."""
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


def _run(words: Sequence[str], variables: Mapping[str, str] | None, out: str, errors: str) -> None:
    for stream, path in ((1, out), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    if variables is not None:
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
    serve(sys.argv[1:])
