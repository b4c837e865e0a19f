"""Carry a graph out, watched, and spare what slows it down."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recordgen.flow.carrier import Carrier
from recordgen.options import ConvertOptions
from recordgen.runs.progress import Progress, watching
from recordgen.runs.staging import Staging
from recordgen.storage.hosts import forget_failures
from recordgen.tasks import TASKS

NewCarrier = Callable[[], Carrier]


@contextmanager
def running(
    carrier: Carrier, staging: Staging, progress: Progress | None, options: ConvertOptions
) -> Iterator[Carrier]:
    """Give the carrier to build a graph on, then carry the graph out. Raises: as its ``run``."""
    yield carrier
    with _rare_collections(), watching(staging, progress, TASKS[options.task].noun):
        forget_failures()
        carrier.run(staging)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Spare the garbage collector what is there to stay: it costs a tenth of planning.

    Neither a million objects of Beam and its libraries nor the rows, which hold no cycles, need
    be looked at again and again.
    """
    if not _sparing.acquire(blocking=False):  # another conversion of this process sees to it
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
        _sparing.release()


_sparing = threading.Lock()
