"""The phases of a run: which one is at work, how far it is, and how long each took.

Rows and shards have a progress of their own (:mod:`recordgen.core.runs.progress`). The launcher
alone does what follows: it examines all examples together, and commits the output.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from recordgen.core.runs.progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Self

#: Phases in their order. Rows are read, planned and written in one graph, so they are one phase.
SHARDS, FACTS, CHECKS, COMMIT = "shards", "facts", "checks", "commit"

# Short phases are not shown.
_POLL_SECONDS = 0.5


class Phase(NamedTuple):
    """A phase at work.

    Attributes:
        name: such as :data:`CHECKS`.
        step: the step at work, such as the code of a check; empty if it has no steps.
        done: steps done.
        total: all steps; 0 if it has none.
        seconds: since the phase began.
    """

    name: str
    step: str
    done: int
    total: int
    seconds: float

    def __str__(self) -> str:
        steps = f": {self.step} ({self.done + 1} of {self.total})" if self.total else ""
        return f"{self.name}{steps}, {self.seconds:.0f} s"


@runtime_checkable
class PhaseProgress(Progress, Protocol):
    """A Progress that also receives the launcher's own phases."""

    def phase(self, phase: Phase) -> None:
        """Called about twice a second in a phase after the shards; ``finished`` follows."""


class Phases:
    """Measures phases, and reports them to a Progress from a thread of its own.

    Attributes:
        progress: where phases are reported, if it has the method.
        seconds: how long each finished phase took, in their order.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.progress = progress
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

    def step(self, name: str, done: int, total: int) -> None:
        """Note the step of the phase that begins."""
        self._step = name, done, total

    def _report(self, progress: PhaseProgress) -> None:
        is_shown = False
        while not self._done.wait(_POLL_SECONDS):
            if (now := self._now) is not None:
                is_shown = True
                progress.phase(Phase(now[0], *self._step, time.monotonic() - now[1]))
        if is_shown:
            progress.finished()
