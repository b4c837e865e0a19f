"""The Python that runs this process: other processes of it, and what a command loads into it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.machinery import ModuleSpec
from operator import itemgetter
from traceback import walk_stack
from types import FrameType


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


# Modules between the code that makes an array and the import.
_BETWEEN = (__name__, "traceback", "pyarrow.", "importlib._bootstrap", "_frozen_importlib")

# How often Arrow asks for pandas in a process; PyArrow 10 asks at every array.
_ASKED = 2


class _Importer:
    """Finds no pandas for Arrow that works for this package; other code imports what it names."""

    def __init__(self) -> None:
        self._refused = 0

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "pandas" and self._refused < _ASKED:
            callers = map(itemgetter(0), walk_stack(None))
            asking = next(it for it in callers if not _module(it).startswith(_BETWEEN))
            if _module(asking).startswith("recordgen.") and name not in asking.f_code.co_names:
                self._refused += 1
                raise ModuleNotFoundError("this command has no DataFrames", name=name)
        return None


def _module(frame: FrameType) -> str:
    return str(frame.f_globals["__name__"])


def spare_pandas() -> None:
    """Keep Arrow from importing pandas, which takes a process 0.2 s; a command has no DataFrames.

    Arrow tries it before it makes its first array, to learn whether it was given a Series. It hides
    an interrupt that comes meanwhile, so a version that goes on asking gets pandas.
    """
    sys.meta_path.insert(0, _Importer())
