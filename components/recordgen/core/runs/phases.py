"""The phases of a run: which one is at work, how far it is, and how long each took.

Rows and shards have a progress of their own (:mod:`recordgen.core.progress`). The launcher
alone does what follows: it collects the findings of the checks, and commits the output.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from recordgen.core.progress import SHARDS, Phase, PhaseProgress, Progress

if TYPE_CHECKING:
    from typing_extensions import Self

# Short phases are not shown.
_POLL_SECONDS = 0.5


class Phases:
    """Measures phases, and reports them to a Progress from a thread of its own.

    Attributes:
        progress: where phases are reported, if it has the method.
        seconds: how long each finished phase took, in their order.
    """

    def __init__(
        self, progress: Progress | None = None, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        self.seconds: dict[str, float] = {}
        self.progress = progress
        self._poll_seconds = poll_seconds
        self._now: tuple[str, float] | None = None
        self._step = "", 0, 0
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Measure a phase, and report it."""
        started = time.monotonic()
        self._step, self._now = ("", 0, 0), (name, started)
        if name != SHARDS and self._thread is None and isinstance(self.progress, PhaseProgress):
            arguments = (self.progress,)
            self._thread = threading.Thread(target=self._report, args=arguments, daemon=True)
            self._thread.start()
        try:
            yield
        finally:
            self._now = None
            self.seconds[name] = time.monotonic() - started

    def move(self, start: str, end: str, seconds: float) -> None:
        """Count seconds of one phase, which did the work of the other, for the other."""
        moved = min(seconds, self.seconds[start])
        self.seconds[start] -= moved
        self.seconds[end] += moved

    def step(self, name: str, done: int, total: int) -> None:
        """Note the step of the phase that begins."""
        self._step = name, done, total

    def _report(self, progress: PhaseProgress) -> None:
        is_shown = False
        while not self._done.wait(self._poll_seconds):
            if (now := self._now) is not None:
                is_shown = True
                progress.phase(Phase(now[0], *self._step, time.monotonic() - now[1]))
        if is_shown:
            progress.finished()
