"""Hide lines that C++ libraries write to this process's stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from recordgen.core.interpreter import has_python

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
