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
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.errors import RecordgenError
from recordgen.storage.hosts import forget_failures

NewRunner = Callable[[], Runner]

# In a remote staging folder, workers report every ten seconds, and every poll costs requests.
_LOCAL_POLL_SECONDS = 0.5
_REMOTE_POLL_SECONDS = 5.0


@contextmanager
def running(
    runner: Runner, staging: Staging, progress: Progress | None, noun: str, joins: int = 0
) -> Iterator[Runner]:
    """Yield the runner to build a graph on, then run the graph. Raises: as ``runner.run``.

    For the progress: ``noun``, what an example is about, and ``joins``, the number of buckets that
    checks join at most.
    """
    yield runner
    with _rare_collections(), watching(staging, progress, noun, joins):
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
def watching(
    staging: Staging, progress: Progress | None, noun: str, joins: int = 0
) -> Iterator[None]:
    """Report to ``progress`` while the block runs; for the words, see :func:`running`."""
    if progress is None:
        yield
        return
    try:
        with beside(partial(_watch, staging, progress, noun, joins)):
            yield
    finally:
        progress.finished()


def _watch(
    staging: Staging, progress: Progress, noun: str, joins: int, done: threading.Event
) -> None:
    plan: StagedPlan | None = None
    finished: dict[str, tuple[int, int, int]] = {}
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
            checking = 0, 0, 0
            if examples + rejects >= plan.rows and isinstance(progress, PhaseProgress):
                checking = staging.read_heartbeats({}, "checking")
        except (OSError, RecordgenError):
            continue  # try again at the next poll; the run itself is not affected
        now = time.monotonic()
        examples_per_s, seconds_left = pace.at(now, examples, size, plan.bytes)
        rejected = len(plan.rejects)
        if isinstance(progress, PhaseProgress) and any(checking) and is_shown and not last:
            began = began or now
            step, work, total = _step_of_checks(checking, plan.shards, joins)
            progress.phase(Phase(CHECKS, step, min(work, total) - 1, total, now - began))
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


def _step_of_checks(counts: tuple[int, int, int], shards: int, joins: int) -> tuple[str, int, int]:
    """Return what the checks do, how much of it is done, and how much there is at most."""
    read, joined, examined = counts
    if examined:
        return "examining shards", examined, shards
    if joined:
        return "joining buckets", joined, joins
    return "reading shards", read, shards
