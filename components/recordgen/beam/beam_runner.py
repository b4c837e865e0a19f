"""Runs a graph of steps as a Beam pipeline, here or on other machines."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import apache_beam as beam
import grpc
from apache_beam.metrics import Metrics
from apache_beam.runners.runner import PipelineResult

from recordgen.core.flow.runner import OUT_OF_MEMORY, Step
from recordgen.core.runs import counters
from recordgen.core.runs.staging import Staging
from recordgen.errors import RecordgenError, RunnerError
from recordgen.storage.memory import memory_kills

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
            with dying_with_workers():
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
        Metrics.counter(counters.NAMESPACE, name).inc(amount)


@contextmanager
def dying_with_workers() -> Iterator[None]:
    """Raise RuntimeError in the block when a worker process of the in-memory runner dies.

    Beam notices the death in a separate thread, but waits for the worker's answer for ever. Then it
    waits for the other workers, one of which may wait for rows of the dead worker, so all workers
    are killed. Ctrl-C and a handled SIGTERM kill them, too: Beam would wait for their work. Outside
    the main thread, where signals cannot end the block, this does nothing. SIGUSR1 signals from
    elsewhere go to their own handler.
    """
    handlers = {number: signal.getsignal(number) for number in _HANDLED}
    # None means a handler in C, which could not be restored.
    if threading.current_thread() is not threading.main_thread() or None in handlers.values():
        yield
        return
    deaths: list[str] = []
    running = True
    lock = threading.Lock()
    hook = threading.excepthook

    def note(args: threading.ExceptHookArgs) -> None:
        if isinstance(args.exc_value, grpc.RpcError):
            return  # a stream to the worker that died
        if args.thread is None or args.thread.name != "run_worker":
            hook(args)
            return
        with lock:
            if running and not deaths:  # later deaths are our own kills
                deaths.append(str(args.exc_value))
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal running
        handler = handlers[signal.Signals(number)]
        if number == signal.SIGUSR1 and not (running and deaths):
            if not deaths and callable(handler):
                handler(number, frame)
            return
        running = False  # without the lock, which this thread may hold
        for worker in workers_below(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        if number == signal.SIGUSR1:
            raise RuntimeError(f"a worker process died ({deaths[0]}); run it again")
        if callable(handler):
            handler(number, frame)

    for number, handler in handlers.items():
        if number == signal.SIGUSR1 or callable(handler):
            signal.signal(number, end)
    threading.excepthook = note
    try:
        yield
    finally:
        threading.excepthook = hook
        with lock:
            running = False
        for number, handler in handlers.items():
            signal.signal(number, handler)


_HANDLED = (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM)


def workers_below(process: int) -> list[int]:
    """Return Beam's worker processes below a process, and itself if it is one."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        threads = list(Path(f"/proc/{process}/task").glob("*/children"))
    except OSError:
        return []  # it ended, or this is not Linux
    children: list[int] = []
    for thread in threads:
        with suppress(OSError):  # it ended, as the thread that noticed a worker's death does
            children.extend(map(int, thread.read_text().split()))
    is_worker = command[1:3] == [b"-m", b"apache_beam.runners.worker.sdk_worker_main"]
    below = [worker for child in children for worker in workers_below(child)]
    return [process, *below] if is_worker else below


def last_line(exc: Exception) -> str:
    """Return the last line of a runner's error, which follows its workers' tracebacks."""
    text = f"{exc.code().name}: {exc.details()}" if isinstance(exc, grpc.Call) else str(exc)
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(exc).__name__}: {lines[-1]}" if lines else type(exc).__name__
