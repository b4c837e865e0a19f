"""The phases of a run: which one is at work, how far it is, and how long each took.

Rows and shards have a progress of their own (:mod:`recordgen.core.progress`). The launcher
alone does what follows: it collects the findings of the checks, and commits the output.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Event

from recordgen.core.ordered import beside
from recordgen.core.progress import SHARDS, Phase, PhaseProgress, Progress

# Short phases are not shown.
_POLL_SECONDS = 0.5


class Phases(ExitStack):
    """Measures phases, and reports them to a Progress from a thread of its own.

    Attributes:
        progress: where phases are reported, if it has the method.
        seconds: how long each finished phase took, in their order.
    """

    def __init__(
        self, progress: Progress | None = None, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}
        self.progress = progress
        self._poll_seconds = poll_seconds
        self._now: tuple[str, float] | None = None
        self._reports = False

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Measure a phase, and report it."""
        started = time.monotonic()
        self._now = name, started
        if name != SHARDS and not self._reports and isinstance(self.progress, PhaseProgress):
            self._reports = True
            self.enter_context(beside(partial(self._report, self.progress)))
        try:
            yield
        finally:
            self._now = None
            self.seconds[name] = time.monotonic() - started

    def _report(self, progress: PhaseProgress, done: Event) -> None:
        is_shown = False
        while not done.wait(self._poll_seconds):
            if (now := self._now) is not None:
                is_shown = True
                progress.phase(Phase(now[0], time.monotonic() - now[1]))
        if is_shown:
            progress.finished()
