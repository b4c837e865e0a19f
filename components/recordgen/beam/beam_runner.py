"""Runs a graph of steps as a Beam pipeline, mostly on other machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import grpc
from apache_beam.metrics import Metrics
from apache_beam.runners.runner import PipelineResult

from recordgen.core import progress
from recordgen.core.allowance import GROUP
from recordgen.core.flow.runner import OUT_OF_MEMORY, Step
from recordgen.core.runs.staging import Staging
from recordgen.errors import RecordgenError, RunnerError

# Dask's runner divides the work into at most as many parts as a pipeline begins with elements.
_FILLERS = 64


@dataclass(frozen=True)
class BeamRunner:
    """Runs a graph as the given Beam pipeline, which is empty at first."""

    pipeline: beam.Pipeline

    def start(self, name: str, elements: Iterable[Any], *, spread: bool = False) -> _Collection:
        # Spreading elements takes a shuffle.
        create = beam.Create(_among_fillers(list(elements)), reshuffle=spread)
        return _Collection(self.pipeline | name >> create)

    def run(self, staging: Staging) -> None:
        job: PipelineResult | None = None
        kills = memory_kills()
        try:
            job = self.pipeline.run()
            job.wait_until_finish()
        except KeyboardInterrupt:
            if job is not None:
                job.cancel()  # otherwise a job on other machines would continue
            raise
        except Exception as exc:
            if "KeyboardInterrupt" in last_line(exc):  # Beam wraps what its steps raise
                raise KeyboardInterrupt from exc
            reason = staging.read_error()
            if reason is not None:
                raise reason from exc
            if memory_kills() > kills:  # the kernel killed workers
                raise RunnerError(OUT_OF_MEMORY) from exc
            raise RunnerError(f"Beam's runner failed: {last_line(exc)}") from exc
        finally:
            client = getattr(job, "client", None)
            if client is not None:
                client.close()  # Dask's cluster then drops the rest of the run


@dataclass(frozen=True)
class _Collection:
    elements: beam.PCollection

    def through(self, name: str, step: Step) -> _Collection:
        return _Collection(self.elements | name >> beam.ParDo(_Carried(step)))

    def grouped(self, name: str) -> _Collection:
        return _Collection(self.elements | name >> beam.GroupByKey())

    def twice(self) -> tuple[_Collection, _Collection]:
        return self, self

    def merged(self, name: str, others: Sequence[_Collection]) -> _Collection:
        together = (self.elements, *(other.elements for other in others))
        return _Collection(together | name >> beam.Flatten())


def _among_fillers(elements: Sequence[Any]) -> list[Any]:
    """Return elements evenly spread among others that are None."""
    spread: list[Any] = [None] * (len(elements) + _FILLERS)
    for index, element in enumerate(elements):
        spread[index * len(spread) // len(elements)] = element
    return spread


class _Carried(beam.DoFn):
    """Runs a step, and writes its error to the staging folder: runners lose an error's type."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def setup(self) -> None:
        self._step.begin(_count_up)

    def process(self, element: Any) -> Iterator[Any]:
        if element is None:
            return
        try:
            yield from self._step.process(element)
        except RecordgenError as exc:
            self._step.staging.write_error(exc)
            raise
        except MemoryError as exc:
            error = RunnerError(OUT_OF_MEMORY)
            self._step.staging.write_error(error)
            raise error from exc


def _count_up(amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        Metrics.counter(progress.NAMESPACE, name).inc(amount)


def last_line(exc: Exception) -> str:
    """Return the last line of a runner's error, which follows its workers' tracebacks."""
    text = f"{exc.code().name}: {exc.details()}" if isinstance(exc, grpc.Call) else str(exc)
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(exc).__name__}: {lines[-1]}" if lines else type(exc).__name__


def memory_kills(group: str = GROUP) -> int:
    """Return the control group's processes killed for lack of memory; 0 if it does not count."""
    for name in ("memory.events", "memory/memory.oom_control"):
        try:
            counts = dict(line.split() for line in Path(group, name).read_text().splitlines())
            return int(counts["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0
