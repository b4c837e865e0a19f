"""Stop a command soon, by Ctrl-C and by SIGTERM.

Kubernetes, systemd and batch systems end a process with SIGTERM, and kill it some seconds later. As
the first process of a container, one without a handler would not even notice.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from recordgen.console import logs

# Who presses Ctrl-C waits; `docker stop` kills after ten seconds.
_STOP_SECONDS = {signal.SIGINT: 1.5, signal.SIGTERM: 8.0}

_stopped_by: list[signal.Signals] = []


@contextmanager
def stopping() -> Iterator[None]:
    """Raise KeyboardInterrupt for Ctrl-C and SIGTERM; end the process if the block does not end.

    A decoder that does not return, or storage that does not answer, may hold the block: the process
    then ends 1.5 seconds after Ctrl-C, or eight after SIGTERM, as if it were killed. A signal that
    is ignored or that somebody else handles is left alone, and so are all outside the main thread.
    """
    _stopped_by.clear()
    before: dict[signal.Signals, object] = {}
    deadlines: list[threading.Timer] = []
    on_main = threading.current_thread() is threading.main_thread()
    interrupt = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        by = signal.Signals(number)
        if by == signal.SIGTERM and _stopped_by:
            return  # it is stopping
        if not _stopped_by:
            _stopped_by.append(by)
            deadlines.append(threading.Timer(_STOP_SECONDS[by], _end))
            deadlines[0].daemon = True
            deadlines[0].start()
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        raise KeyboardInterrupt  # Ctrl-C is ignored in background jobs

    if on_main and callable(interrupt):
        before[signal.SIGINT] = signal.signal(signal.SIGINT, stop)
    if on_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        for deadline in deadlines:
            deadline.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


def stopped_by() -> signal.Signals:
    """Return the signal that a KeyboardInterrupt stands for: SIGTERM or SIGINT."""
    return _stopped_by[0] if _stopped_by else signal.SIGINT


def _end() -> None:
    os._exit(logs.interrupted(KeyboardInterrupt(), stopped_by(), traceback=False))


def exit_now(code: int) -> NoReturn:
    """End the process; Beam's and gRPC's worker threads may outlive the work: do not wait."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
