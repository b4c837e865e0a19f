"""Other processes of the Python that runs this one, if it can be started: one filters stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

# Copies stdin to stderr, except lines that begin with a pattern.
_FILTER = """
import re, sys
unwanted = re.compile(sys.argv[1].encode())
for line in sys.stdin.buffer:
    if not unwanted.match(line):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
"""

_LAST_SECONDS = 1.0


def has_python() -> bool:
    """Return whether ``sys.executable`` is a Python.

    In uWSGI, in a frozen program and in one that embeds Python, it is that program, or empty.
    """
    path = sys.executable or ""
    is_python = os.path.basename(os.path.realpath(path)).startswith(("python", "pypy", "graalpy"))
    return is_python and not getattr(sys, "frozen", False) and os.access(path, os.X_OK)


def start_main(module: str) -> subprocess.Popen[bytes]:
    """Start ``main`` of a module of this package, with pipes for stdin and stdout."""
    # It must import the package from the same place.
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@contextmanager
def without_lines(patterns: Sequence[str]) -> Iterator[None]:
    """Hide lines that begin with a pattern and that the block writes to file descriptor 2.

    The filter is another process: it passes on the last lines even if the block aborts this one.
    """
    if not (patterns and has_python()):
        yield
        return
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
        stderr = os.dup(2)
    except (OSError, ValueError):  # closed: there is nothing to filter
        yield
        return
    command = [sys.executable, "-I", "-S", "-c", _FILTER, "|".join(patterns)]
    read_end, write_end = os.pipe()
    lines = subprocess.Popen(command, stdin=read_end)
    os.close(read_end)
    os.dup2(write_end, 2)
    os.close(write_end)
    try:
        yield
    finally:
        with suppress(AttributeError, OSError, ValueError):
            sys.stderr.flush()
        os.dup2(stderr, 2)  # closes the last write end, so the filter ends
        os.close(stderr)
        # Unless another thread has meanwhile started a process, whose stderr goes through it.
        with suppress(subprocess.TimeoutExpired):
            lines.wait(_LAST_SECONDS)
