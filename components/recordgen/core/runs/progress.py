"""The progress of a run, read from the heartbeats in its staging folder.

This works on every runner. Beam's own metrics come late or, on some runners, only at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from recordgen import storage
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.errors import RecordgenError

#: Phases in their order. Rows are read, planned and written in one graph, so they are one phase.
# The checks of examples are steps of it, too: their seconds count for the checks.
SHARDS, CHECKS, COMMIT = "shards", "checks", "commit"

# In a remote staging folder, workers report every ten seconds, and every poll costs requests.
_LOCAL_POLL_SECONDS = 0.5
_REMOTE_POLL_SECONDS = 5.0

# Heartbeats lag behind the work: over a shorter time than this, the speed would be wrong.
_PACE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The progress of a run at one moment.

    Attributes:
        rows: rows to write; during planning, rows planned so far.
        bytes: bytes of their payloads; 0 during planning.
        examples: examples written so far.
        rejects: rows rejected so far, in planning and in writing.
        done_bytes: payload bytes processed so far.
        rows_read: rows read from the import files so far; 0 for an export.
        rows_rejected: the part of ``rejects`` that planning rejected.
        seconds: since the run began.
        examples_per_s: examples written per second; None if not known yet.
        seconds_left: estimate by payload bytes; None if not known yet.
        noun: the word for an example, such as ``image``.
    """

    rows: int
    bytes: int = 0
    examples: int = 0
    rejects: int
    done_bytes: int = 0
    rows_read: int
    rows_rejected: int
    seconds: float
    examples_per_s: float | None = None
    seconds_left: float | None = None
    noun: str

    @property
    def payloads_rejected(self) -> int:
        """The part of ``rejects`` whose payload was refused."""
        return self.rejects - self.rows_rejected


class Progress(Protocol):
    """Receives the progress of a run, in a separate thread, about twice a second."""

    def planning(self) -> None:
        """Called when rows begin to be read and planned."""

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


@contextmanager
def watching(staging: Staging, progress: Progress | None, noun: str) -> Iterator[None]:
    """Report to ``progress`` while the block runs; ``noun`` is the word for an example."""
    if progress is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(staging, progress, done, noun), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress.finished()


def _watch(staging: Staging, progress: Progress, done: threading.Event, noun: str) -> None:
    plan: StagedPlan | None = None
    finished: dict[str, tuple[int, int, int]] = {}
    started = time.monotonic()
    checking: float | None = None
    is_shown = False
    pace = Pace()
    poll_seconds = _LOCAL_POLL_SECONDS if storage.is_local(staging.root) else _REMOTE_POLL_SECONDS
    progress.planning()
    last = False
    while not last:
        last = done.wait(poll_seconds)
        try:
            plan = plan or staging.read_plan()
            if plan is None:
                if isinstance(progress, PlanningProgress):
                    read, planned, rejected = staging.read_heartbeats({}, "planning")
                    progress.planning_rows(
                        Snapshot(
                            rows=planned,
                            rejects=rejected,
                            rows_read=read,
                            rows_rejected=rejected,
                            seconds=time.monotonic() - started,
                            noun=noun,
                        )
                    )
                continue
            examples, rejects, size = staging.read_heartbeats(finished)
            checked = 0
            if examples + rejects >= plan.rows and isinstance(progress, PhaseProgress):
                checked, *_ = staging.read_heartbeats({}, "checking")
        except (OSError, RecordgenError):
            continue  # try again at the next poll; the run itself is not affected
        now = time.monotonic()
        examples_per_s, seconds_left = pace.at(now, examples, size, plan.bytes)
        rejected = len(plan.rejects)
        if isinstance(progress, PhaseProgress) and checked and is_shown and not last:
            checking = checking or now
            total = 2 * sum(split["shards"] - split["first"] for split in plan.splits.values())
            at = min(checked, total) - 1
            progress.phase(Phase(CHECKS, "shards twice", at, total, now - checking))
            continue
        is_shown = True
        progress.writing(
            Snapshot(
                rows=plan.rows,
                bytes=plan.bytes,
                examples=examples,
                rejects=rejected + rejects,
                done_bytes=size,
                rows_read=plan.read,
                rows_rejected=rejected,
                seconds=now - started,
                examples_per_s=examples_per_s,
                seconds_left=seconds_left,
                noun=noun,
            )
        )


class Pace:
    """The speed since the first poll: work that was done before it does not count."""

    def __init__(self) -> None:
        self._first: tuple[float, int, int] | None = None

    def at(
        self, now: float, examples: int, done_bytes: int, all_bytes: int
    ) -> tuple[float | None, float | None]:
        """Return (examples per second, seconds left), each None if not known yet.

        Args:
            now: time of a monotonic clock, in seconds.
            examples: examples written so far.
            done_bytes: payload bytes processed so far.
            all_bytes: bytes of all payloads.
        """
        if self._first is None:
            self._first = now, examples, done_bytes
        then, examples_then, bytes_then = self._first
        seconds, fresh = now - then, done_bytes - bytes_then
        if seconds < _PACE_SECONDS or fresh <= 0:
            return None, None
        return (examples - examples_then) / seconds, (all_bytes - done_bytes) * seconds / fresh
