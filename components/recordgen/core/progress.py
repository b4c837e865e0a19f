"""The progress of a run or of an export, and who receives it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

#: Phases in their order. Rows are read, planned and written in one graph, so they are one phase.
# The checks of examples are steps of it, too: CHECKS is what the launcher does with their findings.
SHARDS, CHECKS, COMMIT = "shards", "checks", "commit"

#: A short export shows no progress, longer ones show it this often.
FIRST_SECONDS = 2.0
SECONDS = 0.5

# Heartbeats lag behind the work: over a shorter time than this, the speed would be wrong.
_PACE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The progress of a run at one moment."""

    rows: int  # rows to write; during planning, rows planned so far; examples that an export copies
    bytes: int = 0  # bytes of their payloads; 0 during planning
    examples: int = 0  # examples written so far
    rejects: int = 0  # rows rejected so far, in planning and in writing
    done_bytes: int = 0  # payload bytes processed so far
    rows_read: int = 0  # rows read from the import files so far; 0 for an export
    rows_rejected: int = 0  # the part of `rejects` that planning rejected
    seconds: float  # since the run began
    examples_per_s: float | None = None  # examples written per second; None if not known yet
    seconds_left: float | None = None  # estimate by payload bytes; None if not known yet
    noun: str  # the word for an example, such as `image`

    @property
    def payloads_rejected(self) -> int:
        """The part of ``rejects`` whose payload was refused."""
        return self.rejects - self.rows_rejected


class Progress(Protocol):
    """Receives the progress of a run, in a separate thread, about twice a second."""

    def planning(self) -> None:
        """Called when rows begin to be read and planned; not for an export."""

    def writing(self, snapshot: Snapshot) -> None:
        """Called after planning, while payloads are read, checked and written."""

    def finished(self) -> None:
        """Called when the shards are written, or the run failed; and after phases that follow."""


@runtime_checkable
class PlanningProgress(Progress, Protocol):
    """A Progress that also receives the progress of planning: a million rows take a while."""

    def planning_rows(self, snapshot: Snapshot) -> None:
        """Called while rows are read and planned."""


class Phase(NamedTuple):
    """A phase at work."""

    name: str  # such as CHECKS
    seconds: float  # since the phase began

    def __str__(self) -> str:
        return f"{self.name}, {self.seconds:.0f} s"


@runtime_checkable
class PhaseProgress(Progress, Protocol):
    """A Progress that also receives the launcher's own phases."""

    def phase(self, phase: Phase) -> None:
        """Called about twice a second in a phase after the shards; ``finished`` follows."""


class Pace:
    """The speed since the first poll: work that was done before it does not count."""

    def __init__(self) -> None:
        self._first: tuple[float, int, int] | None = None

    def at(
        self, now: float, examples: int, done_bytes: int, all_bytes: int
    ) -> tuple[float | None, float | None]:
        """Return (examples per second, seconds left), each None if not known yet."""
        if self._first is None:
            self._first = now, examples, done_bytes
        then, examples_then, bytes_then = self._first
        seconds, fresh = now - then, done_bytes - bytes_then
        if seconds < _PACE_SECONDS or fresh <= 0:
            return None, None
        return (examples - examples_then) / seconds, (all_bytes - done_bytes) * seconds / fresh


class Counter:
    """Counts what an export copies, and reports it twice a second, from the first seconds on."""

    def __init__(self, progress: Progress | None, examples: int, size: int) -> None:
        self._progress = progress
        self._rows, self._bytes = examples, size
        self._examples = self._done_bytes = 0
        self._started = time.monotonic()
        self._next = self._started + FIRST_SECONDS
        self._pace = Pace()
        self._is_shown = False

    def count(self, examples: int, size: int) -> None:
        """Count examples and the bytes of their records."""
        self._examples += examples
        self._done_bytes += size
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + SECONDS
            self._show()

    def finish(self) -> None:
        """Report the last state, if any was reported."""
        if self._is_shown and self._progress is not None:
            self._show()
            self._progress.finished()

    def _show(self) -> None:
        if self._progress is None:
            return
        self._is_shown = True
        now = time.monotonic()
        speed, left = self._pace.at(now, self._examples, self._done_bytes, self._bytes)
        self._progress.writing(
            Snapshot(
                rows=self._rows,
                bytes=self._bytes,
                examples=self._examples,
                done_bytes=self._done_bytes,
                seconds=now - self._started,
                examples_per_s=speed,
                seconds_left=left,
                noun="example",
            )
        )
