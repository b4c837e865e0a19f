"""Beam pipelines: run one, and spare what slows it down."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apache_beam as beam
from apache_beam.runners.runner import PipelineResult

from recordgen.beam.runners import OUT_OF_MEMORY, dying_with_workers, last_line
from recordgen.errors import RunnerError
from recordgen.options import ConvertOptions
from recordgen.runs.progress import Progress, watching
from recordgen.runs.staging import Staging
from recordgen.storage.hosts import forget_failures
from recordgen.storage.memory import memory_kills
from recordgen.tasks import TASKS

NewPipeline = Callable[[], beam.Pipeline]


@contextmanager
def running(
    pipeline: beam.Pipeline, staging: Staging, progress: Progress | None, options: ConvertOptions
) -> Iterator[beam.Pipeline]:
    """Give the pipeline to build, then run it; what workers left as their error is raised."""
    yield pipeline
    job: PipelineResult | None = None
    noun = TASKS[options.task].noun
    kills = memory_kills()
    try:
        with _rare_collections(), watching(staging, progress, noun), dying_with_workers():
            forget_failures()
            job = pipeline.run()
            job.wait_until_finish()
    except KeyboardInterrupt:
        if job is not None:
            job.cancel()  # a job on other machines would go on without us
        raise
    except Exception as exc:
        if "KeyboardInterrupt" in last_line(exc):  # Beam wraps what its steps raise
            raise KeyboardInterrupt from exc
        reason = staging.read_error()
        if reason is not None:
            raise reason from exc
        if memory_kills() > kills:  # the workers' reason to die
            raise RunnerError(OUT_OF_MEMORY) from exc
        raise RunnerError(f"Beam's runner failed: {last_line(exc)}") from exc
    finally:
        client = getattr(job, "client", None)
        if client is not None:
            client.close()  # Dask's cluster drops what is left of the run


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
