"""Run a graph, report its progress, and limit garbage collection meanwhile.

The progress is read from the heartbeats in the staging folder, which works on every runner. Beam's
own metrics come late or, on some runners, only at the end.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from recordgen import storage
from recordgen.core import allowance
from recordgen.core.flow.runner import Runner
from recordgen.core.ordered import beside
from recordgen.core.progress import (
    CHECKS,
    Pace,
    Phase,
    PhaseProgress,
    PlanningProgress,
    Progress,
    Snapshot,
)
from recordgen.core.runs.staging import ROWS, StagedPlan, Staging
from recordgen.errors import RecordgenError
from recordgen.storage.hosts import forget_failures

NewRunner = Callable[[], Runner]

# In a remote staging folder, workers report every ten seconds, and every poll costs requests.
_LOCAL_POLL_SECONDS = 0.5
_REMOTE_POLL_SECONDS = 5.0


@contextmanager
def running(
    runner: Runner, staging: Staging, progress: Progress | None, noun: str
) -> Iterator[Runner]:
    """Yield the runner to build a graph on, then run the graph. Raises: as ``runner.run``.

    ``noun`` is the progress's word for an example.
    """
    yield runner
    with _rare_collections(), watching(staging, progress, noun):
        forget_failures()
        try:
            runner.run(staging)
        finally:
            allowance.end()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Freeze long-lived objects during a run; collecting them repeatedly takes 10 % of planning.

    Beam and its libraries have a million objects, and rows have no cycles.
    """
    if not _FREEZING.acquire(blocking=False):  # another conversion of this process does it
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        _FREEZING.release()


_FREEZING = threading.Lock()


@contextmanager
def watching(staging: Staging, progress: Progress | None, noun: str) -> Iterator[None]:
    """Report to ``progress`` while the block runs; ``noun`` is the word for an example."""
    if progress is None:
        yield
        return
    try:
        with beside(partial(_watch, staging, progress, noun)):
            yield
    finally:
        progress.finished()


def _watch(staging: Staging, progress: Progress, noun: str, done: threading.Event) -> None:
    plan: StagedPlan | None = None
    finished: dict[str, tuple[int, ...]] = {}
    started = time.monotonic()
    began: float | None = None  # the checks
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
                    read, planned, rejected = staging.read_heartbeats({}, ROWS)
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
            continue  # try again at the next poll; the run itself is not affected
        now = time.monotonic()
        examples_per_s, seconds_left = pace.at(now, examples, size, plan.bytes)
        rejected = len(plan.rejects)
        is_written = examples + rejects >= plan.rows
        if is_written and is_shown and not last and isinstance(progress, PhaseProgress):
            began = began or now
            progress.phase(Phase(CHECKS, now - began))
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
