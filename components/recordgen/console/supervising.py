"""Run a command in a process that may die: a library that crashes costs a sentence, not the shell.

The child does everything. The process that shells and schedulers know waits for it, passes signals
on, and tells how a child ended that could no longer tell. When it is killed, the kernel kills the
child, so that nothing writes beside a run that takes over.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

_PASSED_ON = {"SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"}

# <sys/prctl.h>, <malloc.h>
_PR_SET_PDEATHSIG, _M_ARENA_MAX = 1, -8


def supervised(command: Callable[[], object], set_up_logs: Callable[[], str]) -> None:
    """Run a command that ends its process, in a child where this system has what that takes.

    Args:
        command: it must end the process, or raise.
        set_up_logs: called if the child was killed; returns how to go on, for the message.
    """
    if sys.platform != "linux" or not _is_only_thread():
        command()  # locks of other threads would stay locked in a child
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would not say that the child ended
    waited_for = {signal.SIGCHLD, *(signal.Signals[name] for name in _PASSED_ON)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    this = os.getpid()
    child = os.fork()
    if child:
        _wait(child, waited_for, set_up_logs)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _set_up(this)
    command()


def _is_only_thread() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:  # nobody knows
        return False


def _wait(child: int, waited_for: set[signal.Signals], set_up_logs: Callable[[], str]) -> NoReturn:
    """End as the child does; pass on signals that only this process got."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else _log_death(signal.Signals(-code), set_up_logs()))
        info = signal.sigwaitinfo(waited_for)
        # A terminal, for which the kernel speaks, signals both processes.
        if info.si_signo != signal.SIGCHLD and info.si_code <= 0:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(child, info.si_signo)


def _log_death(by: signal.Signals, hint: str) -> int:
    """Log how the child died; return the exit code: that of shells if somebody else ended it."""
    from recordgen.console import logs
    from recordgen.errors import RecordgenError, SourceError

    if by.name in _PASSED_ON:  # before it had handlers
        return logs.interrupted(KeyboardInterrupt(), by, hint, traceback=False)
    if by == signal.SIGKILL:
        what = "the system killed the process, as it does when memory runs out"
        code, error = 128 + by, RecordgenError(what + hint)
    else:
        what = f"the process ended by {by.name}: a library crashed or took too long"
        way = "pass the files of the source one by one to find the one that is damaged"
        code, error = SourceError.exit_code, SourceError(f"{what}; {way}")
    logs.failed(error, code, traceback=False)
    return code


def _set_up(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, and all threads share one heap.

    In a heap of its own, a thread would keep what it has freed; so would Arrow.
    """
    import ctypes

    library = ctypes.CDLL(None)
    library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if hasattr(library, "mallopt"):  # glibc
        library.mallopt(_M_ARENA_MAX, 1)
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if os.getppid() != parent:  # it has ended already
        os._exit(128 + signal.SIGKILL)
