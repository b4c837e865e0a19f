"""Worker processes of Beam's in-memory runner, and the error messages of runners."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import grpc


@contextmanager
def dying_with_workers() -> Iterator[None]:
    """Raise RuntimeError in the block when a worker process of the in-memory runner dies.

    Beam notices the death in a separate thread, but waits for the worker's answer for ever. Then it
    waits for the other workers, one of which may wait for rows of the dead worker, so all workers
    are killed. Ctrl-C and a handled SIGTERM kill them, too: Beam would wait for their work. Outside
    the main thread, where signals cannot end the block, this does nothing. SIGUSR1 signals from
    elsewhere go to their own handler.
    """
    handlers = {number: signal.getsignal(number) for number in _HANDLED}
    # None means a handler in C, which could not be restored.
    if threading.current_thread() is not threading.main_thread() or None in handlers.values():
        yield
        return
    deaths: list[str] = []
    running = True
    lock = threading.Lock()
    hook = threading.excepthook

    def note(args: threading.ExceptHookArgs) -> None:
        if isinstance(args.exc_value, grpc.RpcError):
            return  # a stream to the worker that died
        if args.thread is None or args.thread.name != "run_worker":
            hook(args)
            return
        with lock:
            if running and not deaths:  # later deaths are our own kills
                deaths.append(str(args.exc_value))
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal running
        handler = handlers[signal.Signals(number)]
        if number == signal.SIGUSR1 and not (running and deaths):
            if not deaths and callable(handler):
                handler(number, frame)
            return
        running = False  # without the lock, which this thread may hold
        for worker in workers_below(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        if number == signal.SIGUSR1:
            raise RuntimeError(f"a worker process died ({deaths[0]}); run it again")
        if callable(handler):
            handler(number, frame)

    for number, handler in handlers.items():
        if number == signal.SIGUSR1 or callable(handler):
            signal.signal(number, end)
    threading.excepthook = note
    try:
        yield
    finally:
        threading.excepthook = hook
        with lock:
            running = False
        for number, handler in handlers.items():
            signal.signal(number, handler)


_HANDLED = (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM)


def workers_below(process: int) -> list[int]:
    """Return Beam's worker processes below a process, and itself if it is one."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        threads = list(Path(f"/proc/{process}/task").glob("*/children"))
    except OSError:
        return []  # it ended, or this is not Linux
    children: list[int] = []
    for thread in threads:
        with suppress(OSError):  # it ended, as the thread that noticed a worker's death does
            children.extend(map(int, thread.read_text().split()))
    is_worker = command[1:3] == [b"-m", b"apache_beam.runners.worker.sdk_worker_main"]
    below = [worker for child in children for worker in workers_below(child)]
    return [process, *below] if is_worker else below


def last_line(exc: Exception) -> str:
    """Return the last line of a runner's error, which follows its workers' tracebacks."""
    text = f"{exc.code().name}: {exc.details()}" if isinstance(exc, grpc.Call) else str(exc)
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(exc).__name__}: {lines[-1]}" if lines else type(exc).__name__
