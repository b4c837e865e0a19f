"""Make this process look as on Windows: what only POSIX or Linux has is gone.

The interpreter and the libraries stay those of Linux, and must be loaded before.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# Python's manual marks them "Availability: Unix" or "not Windows"; not all have a caller here.
MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
FUNCTIONS = """
    O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK chown fchmod fork forkpty getegid geteuid getgid
    getloadavg getpgid getuid killpg mkfifo nice posix_fadvise pread preadv pwrite readv
    register_at_fork sched_getaffinity sendfile setsid statvfs sysconf uname wait3 wait4
    kill
"""  # Windows has a kill, but signal 0 interrupts the process there
SIGNALS = """
    ITIMER_PROF SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGPROF SIGQUIT SIGUSR1 SIGUSR2 alarm
    getitimer pthread_kill pthread_sigmask setitimer
"""


class _Refused:
    """Finds no module that Windows lacks."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def leave_linux() -> None:
    """Take away modules, functions and signals, and refuse to replace or remove an open file."""
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Refused())  # type: ignore[arg-type]
    for module, names in ((os, FUNCTIONS), (signal, SIGNALS)):
        for name in names.split():
            with suppress(AttributeError):
                delattr(module, name)
    for name in ("remove", "rename", "replace", "unlink"):
        setattr(os, name, _unless_open(getattr(os, name)))
    sys.platform = "win32"


def _unless_open(function: Callable[..., None]) -> Callable[..., None]:
    def checked(*paths: Any, dir_fd: int | None = None, **settings: Any) -> None:
        folder = "." if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
        for path in paths:
            if (place := os.path.realpath(os.path.join(folder, os.fspath(path)))) in _open_files():
                raise PermissionError(13, "another program uses this file", place)
        function(*paths, **({} if dir_fd is None else {"dir_fd": dir_fd}), **settings)

    return checked


def _open_files() -> set[str]:
    """Return the files that this process has opened or mapped."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        found = {line.split(maxsplit=5)[-1].strip() for line in file}
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return found
