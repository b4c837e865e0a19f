"""Other processes of the Python that runs this one, if it can be started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def _status(name: str) -> int | None:
    """Return the status of a process that a signal ended; None if this system has none such."""
    number = getattr(signal, name, None)
    return None if number is None else -int(number)


#: Exit statuses of processes that the system killed, whose timer ended, or that people or systems
#: stopped; all other signals come from the process itself.
KILLED, OUT_OF_TIME = _status("SIGKILL"), _status("SIGPROF")
STOPPED = frozenset(map(_status, ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")))


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
