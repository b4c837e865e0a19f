"""The progress of a run or of an export: counts, seconds of its phases, and who receives both.

Names of a run's counts are the same in Beam's metrics, in the JSON log and in the results:
``rows_read == rows_planned + rows_rejected + rows_duplicate + rows_merged + rows_dropped +
rows_existing``, and at the end ``rows_planned == examples_written + payloads_rejected``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from recordgen.core.ordered import beside

if TYPE_CHECKING:
    from threading import Event

#: The namespace of the counts in Beam's metrics.
NAMESPACE = "recordgen"

#: Rows in the import files.
ROWS_READ = "rows_read"
#: Rows that become examples unless their payload is refused.
ROWS_PLANNED = "rows_planned"
#: Rows rejected while planning; their payload was not opened.
ROWS_REJECTED = "rows_rejected"
#: Rows that repeat another row.
ROWS_DUPLICATE = "rows_duplicate"
#: Rows that add something to another row's example.
ROWS_MERGED = "rows_merged"
#: Rows without a split, dropped by ``missing_split=drop``.
ROWS_DROPPED = "rows_dropped"
#: Rows whose example is in the dataset that is appended to.
ROWS_EXISTING = "rows_existing"
#: Examples written; for a check, the examples that a conversion would write.
EXAMPLES_WRITTEN = "examples_written"
#: Planned rows whose payload was refused.
PAYLOADS_REJECTED = "payloads_rejected"
#: Bytes of the processed payloads, including refused ones.
PAYLOAD_BYTES = "payload_bytes"
#: Bytes of the shards written.
SHARD_BYTES = "shard_bytes"

#: Phases in their order. Rows are read, planned and written in one graph, so they are one phase.
# The checks of examples are steps of it, too: CHECKS is what the launcher does with their findings.
SHARDS, CHECKS, COMMIT = "shards", "checks", "commit"

#: A short export shows no progress, longer ones show it this often.
FIRST_SECONDS = 2.0
SECONDS = 0.5

# Short phases are not shown.
_POLL_SECONDS = 0.5

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
