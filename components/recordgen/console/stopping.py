"""Let SIGTERM stop a command as Ctrl-C does.

Kubernetes, systemd and batch systems end a process with it, and kill it some seconds later. As the
first process of a container, one without a handler would not even notice.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

# `docker stop` kills after ten.
_STOP_SECONDS = 8.0

_terminated = threading.Event()


def stop_on_sigterm() -> None:
    """Raise KeyboardInterrupt for the first SIGTERM, and end the process eight seconds later.

    Does nothing where SIGTERM is ignored or somebody else handles it.
    """
    _terminated.clear()
    on_main = threading.current_thread() is threading.main_thread()
    if on_main and signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _stop):
        signal.signal(signal.SIGTERM, _stop)


def interrupted_by() -> signal.Signals:
    """Return the signal that a KeyboardInterrupt stands for: SIGTERM or SIGINT."""
    return signal.SIGTERM if _terminated.is_set() else signal.SIGINT


def _stop(number: int, frame: FrameType | None) -> None:
    if _terminated.is_set():
        return  # it is stopping
    _terminated.set()
    # Storage that does not answer may hold the end.
    deadline = threading.Timer(_STOP_SECONDS, os._exit, [128 + number])
    deadline.daemon = True
    deadline.start()
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):
        interrupt(signal.SIGINT, frame)
    raise KeyboardInterrupt  # Ctrl-C is ignored in background jobs
