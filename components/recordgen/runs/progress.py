"""How far a run is: snapshots of the staging folder, handed to whoever wants to show them.

Workers leave heartbeats there, so this works on every runner: Beam's own metrics would come late
or, from some runners, only when all is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from recordgen import storage
from recordgen.errors import RecordgenError
from recordgen.runs.staging import StagedPlan, Staging

# Far away, workers report every ten seconds, and every look costs requests.
_LOCAL_POLL_SECONDS = 0.5
_REMOTE_POLL_SECONDS = 5.0

# Heartbeats lag behind the work: over less time than this they make no honest speed.
_PACE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """How far a run is.

    Attributes:
        rows: rows to write; while they are planned, those planned so far.
        bytes: bytes of their payloads; 0 while rows are planned.
        examples: examples written so far.
        rejects: rows rejected so far, while planning and while writing.
        done_bytes: payload bytes dealt with so far.
        rows_read: rows read from the import files so far.
        rows_rejected: of ``rejects``, those rejected while planning.
        seconds: since the run began.
        examples_per_s: examples per second of writing; None: not known yet.
        seconds_left: until all payloads are dealt with, judged by their bytes; None: not known yet.
        noun: what an example is called.
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
        """Of ``rejects``, those whose payload was refused."""
        return self.rejects - self.rows_rejected


class Progress(Protocol):
    """Is told how far a run is, from a thread of its own, about twice a second."""

    def planning(self) -> None:
        """Rows are being read and planned."""

    def writing(self, snapshot: Snapshot) -> None:
        """The plan is made; payloads are being read, checked and written."""

    def finished(self) -> None:
        """The runner is done, well or not."""


@runtime_checkable
class PlanningProgress(Progress, Protocol):
    """A Progress that is also told how far planning is: a million rows take a while."""

    def planning_rows(self, snapshot: Snapshot) -> None:
        """So many rows were read and planned so far."""


@contextmanager
def watching(staging: Staging, progress: Progress | None, noun: str) -> Iterator[None]:
    """Report to ``progress`` while the block runs; ``noun``: what an example is called."""
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
                    read, planned, rejected = staging.read_planning_heartbeats()
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
        except (OSError, RecordgenError):
            continue  # what cannot be read now is read next time; the run itself is not affected
        now = time.monotonic()
        examples_per_s, seconds_left = pace.at(now, examples, size, plan.bytes)
        rejected = len(plan.rejects)
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
    """How fast payloads are dealt with since the first look: what was done before is no speed."""

    def __init__(self) -> None:
        self._first: tuple[float, int, int] | None = None

    def at(
        self, now: float, examples: int, done_bytes: int, all_bytes: int
    ) -> tuple[float | None, float | None]:
        """Return (images per second, seconds left), None as long as nothing can be said.

        Args:
            now: the time in seconds, on any clock that only goes forward.
            examples: examples written so far.
            done_bytes: payload bytes dealt with so far.
            all_bytes: bytes of all payloads.
        """
        if self._first is None:
            self._first = now, examples, done_bytes
        then, examples_then, bytes_then = self._first
        seconds, fresh = now - then, done_bytes - bytes_then
        if seconds < _PACE_SECONDS or fresh <= 0:
            return None, None
        return (examples - examples_then) / seconds, (all_bytes - done_bytes) * seconds / fresh
