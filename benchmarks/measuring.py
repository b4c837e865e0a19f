"""What benchmarks share: memory of all processes, and imports.

Memory is that of a process with all its descendants, sampled from outside: proportional set size
(PSS) as in Linux's ``/proc/PID/smaps_rollup``, where memory that processes share counts once.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

_Result = TypeVar("_Result")

INTERVAL_SECONDS = 0.1  # a sample blocks the process's memory for milliseconds


class PeakMemory:
    """A sampler of a process and its descendants during the block; ``peak_mb`` is the largest sum.

    Peaks shorter than ``INTERVAL_SECONDS`` may be missed.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.peak_mb = 0.0

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        last = False
        while not last:
            last = self._done.wait(INTERVAL_SECONDS)
            size = sum(map(pss_bytes, tree(self._pid)))
            self.peak_mb = max(self.peak_mb, size / 1e6)


def run_apart(function: Callable[..., _Result], *args: object) -> tuple[_Result, float]:
    """Call a function in a new process; return its result and its peak memory in MB."""
    # Child processes inherit it: libraries' banners and hints do not belong in a table.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pid = pool.submit(os.getpid).result()
        with PeakMemory(pid) as memory:
            result = pool.submit(function, *args).result()
    return result, memory.peak_mb


def tree(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    waiting = [pid]
    while waiting:
        yield (found := waiting.pop())
        with suppress(OSError):  # the process has ended meanwhile
            for task in Path(f"/proc/{found}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def pss_bytes(pid: int) -> int:
    """Return the proportional set size of one process; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def import_first() -> None:
    """Import what a conversion imports when it is first used: imports are not the work."""
    from recordgen.exports.export import CONVERTED
    from recordgen.registry import CHECKS, EXPORTS

    with suppress(ImportError):  # PyArrow imports pandas for its first array, if it is there
        import pandas as pd  # noqa: F401
    list(CHECKS.values())
    [EXPORTS[name]() for name in CONVERTED]
