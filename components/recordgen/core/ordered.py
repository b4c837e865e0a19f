"""Threads that process items in order or work beside a block; signals; other processes."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import subprocess
    from concurrent.futures import Future
    from threading import BoundedSemaphore, Event

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Items in flight per thread: enough to keep it busy while the caller waits for the oldest one.
_AHEAD_PER_THREAD = 3


def default_threads(group: str = "/sys/fs/cgroup") -> int:
    """Return one thread per core, at least two: decoders release the interpreter's lock.

    The cores are those that this process may use, and that its control group, the container, has
    processor time for.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, min(cores or 2, _cores_of_group(group)))


@cache  # a run asks for each pool of threads
def _cores_of_group(folder: str) -> int:
    """Return the cores that a control group (version 2 or 1) has time for, rounded up."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = map(int, " ".join(_text(folder, name) for name in names).split())
        except (OSError, ValueError):
            continue  # no such file, or the quota is "max"
        if quota > 0:
            return -(-quota // period)
    return sys.maxsize


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name)) as file:
        return file.read()


def threads_here(given: int | None) -> int:
    """Return the threads of this process, one of those that share ``given`` or the default."""
    return max(1, (given or default_threads()) // _processes)


def share_threads(processes: int) -> None:
    """Note that this process is one of several that share the threads of a run."""
    global _processes
    _processes = processes


_processes = 1


def map_in_order(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    threads: int,
    ahead: int | None = None,
    bytes_of: Callable[[_Item], int] | None = None,
    max_bytes: int = 0,
    on_leave: Callable[[], object] | None = None,
) -> Generator[_Result, None, None]:
    """Yield ``function(item)`` for each item, in the items' order, computed by threads.

    The calling thread takes an item whenever there is room. If it stops early, or if the function
    raises, no further item is started, and the items in flight are awaited.

    Args:
        function: runs in a thread, unless there is a single item, or there are no threads.
        items: taken one by one.
        threads: number of threads; 0: the calling one.
        ahead: most items in flight; None for three per thread.
        bytes_of: returns the memory that an item and its result take, in bytes.
        max_bytes: limit for the bytes of the items in flight; needs ``bytes_of``.
        on_leave: called at the end, before the wait, so that running functions can return early.

    Raises: Exception: raised by the function or the items, at its place in the order.
    """
    if not threads:
        try:
            yield from map(function, items)
        finally:
            if on_leave is not None:
                on_leave()
        return
    from concurrent.futures import ThreadPoolExecutor  # whoever needs no threads does not load it
    from sys import is_finalizing  # at the end of the process, globals are gone

    ahead = ahead or threads * _AHEAD_PER_THREAD
    waiting: deque[tuple[Future[_Result], int]] = deque()
    held = 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="recordgen")
    items = iter(items)
    try:
        first = list(islice(items, 2))
        if len(first) == 1:  # as most often in small runs
            yield function(first[0])
            return
        for item in chain(first, items):
            size = 0 if bytes_of is None else bytes_of(item)
            waiting.append((pool.submit(function, item), size))
            held += size
            while waiting and (len(waiting) >= ahead or (bytes_of and held >= max_bytes)):
                future, size = waiting.popleft()
                yield future.result()
                held -= size
        while waiting:
            yield waiting.popleft()[0].result()
    finally:
        if on_leave is not None:
            on_leave()
        if not is_finalizing():  # its threads have ended, and so have the modules that it needs
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def beside(work: Callable[[Event], object]) -> Iterator[None]:
    """Run ``work`` in a thread while the block runs; the event that it takes is set at the end."""
    from threading import Event, Thread

    done = Event()
    thread = Thread(target=work, args=(done,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def slot(work: str, most: int) -> BoundedSemaphore:
    """Return the limit on some work of this process, which may be at many shards concurrently."""
    from threading import BoundedSemaphore

    return _slots.setdefault((os.getpid(), work), BoundedSemaphore(most))


# By process: a slot held during a fork would never be released in the child.
_slots: dict[tuple[int, str], BoundedSemaphore] = {}


# --- signals -------------------------------------------------------------------------------------

#: The signal that stops the command that runs (:mod:`recordgen.console.stopping`).
STOPPING: list[signal.Signals] = []


def check_stopped() -> None:
    """Raise KeyboardInterrupt if a signal has stopped the command, but some library swallowed it.

    Modules in C do so while they import others, such as pandas.
    """
    if STOPPING:
        raise KeyboardInterrupt


# --- processes -----------------------------------------------------------------------------------


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
    import subprocess

    # It must import the package from the same place.
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
