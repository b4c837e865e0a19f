"""Stop a command quickly on Ctrl-C and SIGTERM.

Kubernetes, systemd and batch systems end a process with SIGTERM, and kill it some seconds later.
Without a handler, the first process of a container would ignore the signal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from recordgen.console import logs
from recordgen.core.ordered import STOPPING, check_stopped
from recordgen.errors import RecordgenError

# After Ctrl-C a user is waiting; `docker stop` kills after ten seconds.
STOP_SECONDS = {signal.SIGINT: 1.5, signal.SIGTERM: 8.0}

# A signal to a group of processes comes twice: also from the parent, which passes it on.
_SAME_SECONDS = 0.3

_stopped_by: list[signal.Signals] = []
_hints = [""]  # the hint of the running command


@contextmanager
def stopping(hint: str = "") -> Iterator[None]:
    """Raise KeyboardInterrupt for Ctrl-C and SIGTERM; end the process if the block does not end.

    A decoder or storage may hang: the process then ends 1.5 seconds after Ctrl-C, or eight after
    SIGTERM, as if it were killed. An import ends it at once: code in C may swallow an exception,
    and half of a module is of no use to the rest. Signals that are ignored or have another handler
    are not changed; outside the main thread, no signal is. What threads and finalizers raise after
    a signal is not shown. ``hint`` says, behind "interrupted", what was kept and how to go on.
    """
    _stopped_by.clear()
    _hints[:] = [hint]
    before: dict[signal.Signals, object] = {}
    deadlines: list[threading.Timer] = []
    began: list[float] = []
    hooks = threading.excepthook, sys.unraisablehook
    threading.excepthook = _until_stopped(threading.excepthook)
    sys.unraisablehook = _until_stopped(sys.unraisablehook)
    on_main = threading.current_thread() is threading.main_thread()
    interrupt = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        by = signal.Signals(number)
        if _stopped_by and (by == signal.SIGTERM or time.monotonic() < began[0] + _SAME_SECONDS):
            return  # already stopping
        if not _stopped_by:
            began.append(time.monotonic())
            _stopped_by.append(by)
            STOPPING.append(by)
            deadlines.append(threading.Timer(STOP_SECONDS[by], _end))
            deadlines[0].daemon = True
            deadlines[0].start()
        if _is_importing(frame):
            _end()
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        raise KeyboardInterrupt  # background jobs ignore Ctrl-C, but must stop on SIGTERM

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
        STOPPING.clear()
        if not _stopped_by:
            threading.excepthook, sys.unraisablehook = hooks


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether the frame, or one that called it, imports a module."""
    while frame is not None and "importlib._bootstrap" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


def _until_stopped(hook: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda unhandled: bool(_stopped_by) or hook(unhandled)


def stopped_by() -> signal.Signals:
    """Return the signal that caused a KeyboardInterrupt: SIGTERM or SIGINT."""
    return _stopped_by[0] if _stopped_by else signal.SIGINT


def interrupted(error: BaseException, *, traceback: bool = False) -> int:
    """Log that the command was stopped; return its exit code."""
    return logs.interrupted(error, stopped_by(), _hints[0], traceback=traceback)


def _end() -> None:
    os._exit(interrupted(KeyboardInterrupt()))


def exit_code_of(run: Callable[[], object], hint: str = "") -> int:
    """Run a command until it ends or is stopped; log why it failed, and return its exit code."""
    try:
        with stopping(hint):
            run()
            check_stopped()
    except RecordgenError as exc:
        logs.failed(exc, exc.exit_code, traceback=False)
        return exc.exit_code
    except KeyboardInterrupt as exc:
        return interrupted(exc)
    return 0


def exit_now(code: int) -> NoReturn:
    """End the process without waiting for worker threads of Beam and gRPC."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # it was closed before the process began
            stream.flush()
    from recordgen.storage import copies  # the help needs none

    copies.remove_own()  # atexit does not run
    os._exit(code)
