"""Run a graph, report its progress, and limit garbage collection meanwhile."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recordgen.core.flow.runner import Runner
from recordgen.core.runs.progress import Progress, watching
from recordgen.core.runs.staging import Staging
from recordgen.storage.hosts import forget_failures

NewRunner = Callable[[], Runner]


@contextmanager
def running(
    runner: Runner, staging: Staging, progress: Progress | None, noun: str
) -> Iterator[Runner]:
    """Yield the runner to build a graph on, then run the graph. Raises: as ``runner.run``.

    ``noun``: what an example is about, for the progress.
    """
    yield runner
    with _rare_collections(), watching(staging, progress, noun):
        forget_failures()
        runner.run(staging)


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
