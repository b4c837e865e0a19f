"""Interfaces of steps and runners; findings between steps; the runner of this machine."""

from __future__ import annotations

import heapq
import logging
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain, groupby, islice, tee
from logging.handlers import QueueHandler
from operator import attrgetter
from queue import SimpleQueue
from sys import getsizeof
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from recordgen import storage
from recordgen.core.dataset.lint import Found, LintFinding
from recordgen.core.ordered import KILLED, has_python, map_in_order, share_threads, start_main
from recordgen.core.planning.plan import CHANGES, FoundFile, FoundTexts
from recordgen.core.runs.staging import Staging
from recordgen.errors import RecordgenError, RunnerError
from recordgen.rejects import Finding, OddLine, to_lines
from recordgen.storage.local import Spool

if TYPE_CHECKING:
    from typing_extensions import Self


#: Adds to counters, by the names of :mod:`recordgen.core.progress`.
Count = Callable[[Mapping[str, int]], None]

#: Message of the error of a run that is out of memory.
OUT_OF_MEMORY = (
    "out of memory: a process of this run needs more than it may use; allow more, or use fewer "
    "--threads, a smaller --limit memory=… or fewer workers; --resume keeps the finished shards"
)


class Step:
    """Turns an element into any number of elements.

    Attributes:
        staging: staging folder, where a remote worker writes its error.
        processes: processes that run the step on one machine, at most.
        count: adds to counters; set by :meth:`begin`.
    """

    staging: Staging
    processes: int = 1
    count: Count

    def begin(self, count: Count) -> None:
        """Prepare for elements; called in each process that gets some."""
        self.count = count

    def process(self, element: Any) -> Iterator[Any]:
        """Yield the elements that an element becomes."""
        raise NotImplementedError


@dataclass(eq=False)
class Each(Step):
    """A step that is a function."""

    function: Callable[[Any], Iterable[Any]]
    staging: Staging

    def process(self, element: Any) -> Iterator[Any]:
        yield from self.function(element)


class Flow(Protocol):
    """Elements between two steps of a graph. ``name`` is the label of what a method adds."""

    def through(self, name: str, step: Step) -> Flow:
        """Return the output of a step for these elements."""

    def grouped(self, name: str) -> Flow:
        """Return (key, values) for each key of elements (key, value)."""

    def twice(self) -> tuple[Self, Self]:
        """Return the elements twice, for two consumers."""

    def merged(self, name: str, others: Sequence[Self]) -> Flow:
        """Return these elements and the others."""


class Runner(Protocol):
    """Runs a graph of steps."""

    def start(self, name: str, elements: Iterable[Any], *, spread: bool = False) -> Flow:
        """Return the elements that a graph begins with; ``spread`` shares them among workers."""

    def run(self, staging: Staging) -> None:
        """Run the graph; remote workers write their errors to ``staging``.

        Raises: RecordgenError: a step raised it; RunnerError: the runner failed.
        """


# --- findings for lint.jsonl between steps: files of sorted lines, at last one for each code ------


#: What findings of a code are sorted by: texts and numbers from 0, in all of them the same types.
Place: TypeAlias = tuple[str | int, ...]

# Findings that are sorted in memory.
_RUN_BYTES = 64 << 20


def write_sorted(staging: Staging, code: str, lines: Iterable[tuple[Place, str]]) -> FoundFile:
    """Write findings of one code, as lines of JSON."""
    text = "".join(sorted(f"{sort_key(place)}\t{line}" for place, line in lines)).encode()
    return FoundFile(code, staging.leave(text), len(text))


def sort_key(place: Place) -> str:
    """Return a text that sorts as the place does; hexadecimal digits keep the order.

    Blanks, which sort before digits, separate its parts: it has no tabs and no line ends.
    """
    return " ".join(f"{it:016x}" if isinstance(it, int) else it.encode().hex() for it in place)


def write_odd_lines(staging: Staging, lines: Iterable[OddLine]) -> tuple[FoundFile, ...]:
    """Write findings about lines of import files; return a file for each code."""
    by_code = defaultdict[str, list[tuple[Place, str]]](list)
    for it in lines:
        found = LintFinding(it.code, it.level, *it[:3], "", it.message)
        by_code[it.code].append(((*it[:3], it.message), found.to_line()))
    return tuple(write_sorted(staging, code, found) for code, found in by_code.items())


def write_changes(staging: Staging, changes: Sequence[Finding], number: int) -> FoundFile:
    """Write changes in rows, in their order; ``number`` orders files of one import file."""
    first = changes[0]
    lines = enumerate(to_lines(changes))
    placed = (((first.source, first.line, number, at), line) for at, line in lines)
    return write_sorted(staging, CHANGES, placed)


def merge_found(staging: Staging, files: Iterable[FoundFile]) -> dict[str, str]:
    """Merge several files of one code, by place; return the name of the file of each code."""
    names: dict[str, str] = {}
    for code, group in groupby(sorted(files), key=attrgetter("code")):
        mine = list(group)
        names[code] = mine[0].name if len(mine) == 1 else code
        if len(mine) > 1:
            with ExitStack() as stack, storage.replacing(staging.path("between", code)) as out:
                runs = [stack.enter_context(run) for run in _runs(staging, mine)]
                out.writelines(heapq.merge(*runs))
    return names


@dataclass(eq=False)
class MergeFound(Step):
    """Merge what the steps of the checks have found, by import file and line.

    In: (key, [FoundFile | FoundTexts]). Out: nothing.
    """

    staging: Staging

    def process(self, element: tuple[Any, Iterable[FoundFile | FoundTexts]]) -> Iterator[Any]:
        """Write the findings of each code, and the texts of all steps."""
        found = list(element[1])
        texts = sorted((it for it in found if isinstance(it, FoundTexts)), key=attrgetter("step"))
        about_all = defaultdict[str, list[str]](list)
        for code, more in chain.from_iterable(it.about_all.items() for it in texts):
            about_all[code] += more
        remarks = tuple(chain.from_iterable(it.remarks for it in texts))
        files = merge_found(self.staging, (it for it in found if isinstance(it, FoundFile)))
        by_code = {code: tuple(mine) for code, mine in about_all.items() if mine}
        self.staging.write_found(Found(files, by_code, remarks))
        yield from ()


def _runs(staging: Staging, files: Sequence[FoundFile]) -> Iterator[IO[bytes]]:
    """Yield files of sorted lines, as few as memory allows."""
    waiting: list[bytes] = []
    size = 0
    for at, file in enumerate(files):
        waiting.append(staging.read_left(file.name))
        size += file.bytes
        if size >= _RUN_BYTES or at == len(files) - 1:
            run = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
            run.writelines(sorted(b"".join(waiting).splitlines(keepends=True)))
            run.seek(0)
            yield run
            waiting, size = [], 0


# --- this machine ---------------------------------------------------------------------------------

# Steps may use threads, and some are worth several processes. The threads of one process take turns
# in Python, so beyond a few of them only more processes help. Each process is a new interpreter
# that knows nothing of this one's modules: a script that converts needs no
# ``if __name__ == "__main__"``. It receives the step, then element after element:
#
#     launcher ── Task(step, processes, level), element, element, … ──▶ process
#              ◀── LogRecord, LogRecord, [output, …] | None ────────┘
#
# None is the answer to an element whose error lies in the staging folder. When the launcher ends in
# any way, the pipe closes, and so does the process.

# A process takes some tenths of a second to start, so fewer elements are not worth another one.
_ELEMENTS_PER_PROCESS = 3

# Values of groups that wait in memory: rows of tables, and as much again for messages and objects.
_BYTES_IN_MEMORY = 16 << 20


class LocalRunner:
    """Runs a graph lazily: each step computes an element when the next step requests it."""

    def __init__(self) -> None:
        self.last: Iterator[Any] = iter(())  # the end of the graph, which pulls all elements

    def start(self, name: str, elements: Iterable[Any], *, spread: bool = False) -> _Elements:
        return _Elements(self, elements)

    def run(self, staging: Staging) -> None:
        last, self.last = self.last, iter(())
        try:
            deque(last, maxlen=0)
        except MemoryError as exc:
            raise RunnerError(OUT_OF_MEMORY) from exc
        except (OSError, RuntimeError) as exc:  # such as a full disk, or no more threads
            raise RunnerError(f"the run failed: {type(exc).__name__}: {exc}") from exc


class _Elements:
    """Elements that are computed on demand, for one consumer."""

    def __init__(self, runner: LocalRunner, elements: Iterable[Any]) -> None:
        self._runner, self.elements = runner, iter(elements)
        runner.last = self.elements

    def through(self, name: str, step: Step) -> _Elements:
        return _Elements(self._runner, _processed(self.elements, step))

    def grouped(self, name: str) -> _Elements:
        return _Elements(self._runner, _groups(self.elements))

    def twice(self) -> tuple[_Elements, _Elements]:
        one, other = tee(self.elements)
        return _Elements(self._runner, one), _Elements(self._runner, other)

    def merged(self, name: str, others: Sequence[_Elements]) -> _Elements:
        parts = [self.elements, *(other.elements for other in others)]
        return _Elements(self._runner, chain.from_iterable(parts))


def _processed(elements: Iterable[Any], step: Step) -> Iterator[Any]:
    if step.processes > 1 and has_python():
        first = list(islice(elements, step.processes * _ELEMENTS_PER_PROCESS))
        elements = chain(first, elements)
        if (processes := len(first) // _ELEMENTS_PER_PROCESS) > 1:
            yield from in_processes(step, elements, processes)
            return
    step.begin(lambda amounts: None)  # do not count here: the results hold all counts
    for element in elements:
        yield from step.process(element)


def _groups(elements: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the values of each key, in their order; only some of them wait in memory."""
    found: dict[Any, list[Any]] = {}
    places = defaultdict[Any, list[int]](list)  # numbers of the earlier values of a key
    size, spool = 0, Spool()
    for key, value in elements:
        found.setdefault(key, []).append(value)
        size += getsizeof(value)
        if size > _BYTES_IN_MEMORY:
            for key, values in found.items():
                if values:
                    places[key].append(spool.add(pickle.dumps(values)))
                    values.clear()
            size = 0
    while found:
        key = next(iter(found))
        earlier = [value for at in places.pop(key, ()) for value in pickle.loads(spool[at])]
        yield key, earlier + found.pop(key)  # free as soon as the group is processed


class Task(NamedTuple):
    """What a process learns first."""

    step: Step
    processes: int  # number of processes that share the threads of the run
    level: int  # level of the launcher's logs


def in_processes(step: Step, elements: Iterable[Any], processes: int) -> Iterator[Any]:
    """Yield the step's outputs for all elements, in order, from several processes.

    Raises:
        RecordgenError: the step raised it.
        MemoryError: a process ran out of memory.
        RunnerError: a process ended early.
    """
    level = min(logging.getLogger(name).getEffectiveLevel() for name in ("", "recordgen"))
    task = pickle.dumps(Task(step, processes, level))
    started = [_Process(task) for _ in range(processes)]
    free: SimpleQueue[_Process] = SimpleQueue()
    for each in started:
        free.put(each)

    def outputs(element: Any) -> Sequence[Any]:
        process = free.get()
        try:
            return process.answer(element, step)
        finally:
            free.put(process)

    def end() -> None:
        for process in started:
            process.end()

    found = map_in_order(outputs, elements, threads=processes, on_leave=end)
    try:
        yield from chain.from_iterable(found)
    finally:
        found.close()
        for process in started:
            process.close()


class _Process:
    """A process that runs a step."""

    def __init__(self, task: bytes) -> None:
        self._process = start_main(__name__)
        self._elements = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        self._send(task)

    def answer(self, element: Any, step: Step) -> Sequence[Any]:
        """Return the step's outputs for an element. Raises: as :func:`in_processes`."""
        self._send(pickle.dumps(element))
        try:
            while isinstance(message := pickle.load(self._answers), logging.LogRecord):
                _log_here(message)
        except (EOFError, pickle.UnpicklingError):
            raise self._death() from None
        if message is None:
            raise step.staging.read_error() or RunnerError("a process failed without an error")
        found: Sequence[Any] = message
        return found

    def end(self) -> None:
        """Close the pipe, so that the process ends, whatever it is doing."""
        with suppress(OSError):
            self._elements.close()
        self._process.wait()

    def close(self) -> None:
        """Release what is left, when no thread waits for an answer."""
        self._answers.close()

    def _send(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # the missing answer says that the process is dead
            self._elements.write(data)
            self._elements.flush()

    def _death(self) -> Exception:
        status = self._process.wait()
        if status == KILLED:
            return MemoryError("the system killed a process, to free memory")
        return RunnerError(f"a process of the run exited with {status}; --resume keeps the shards")


def _log_here(record: logging.LogRecord) -> None:
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


def main() -> None:
    """Run the step on stdin for the elements on stdin; write the answers to stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal interrupts all processes
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libraries print, too
    serve(sys.stdin.buffer, answers)


def serve(asked: IO[bytes], answers: IO[bytes]) -> None:
    """Run a step for the elements that can be read, and write the answers."""
    lock = threading.Lock()

    def answer(message: Any) -> None:
        data = pickle.dumps(message)
        with lock, suppress(BrokenPipeError):  # the launcher has ended
            answers.write(data)
            answers.flush()

    step, processes, level = pickle.load(asked)
    share_threads(processes)
    logging.captureWarnings(True)
    logging.basicConfig(level=level, format="%(message)s", handlers=[_Forwarded(answer)])
    elements: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(asked, elements), daemon=True).start()
    step.begin(lambda amounts: None)  # the results hold all counts
    while True:
        answer(_outputs(step, elements.get()))


def _read(asked: IO[bytes], elements: SimpleQueue[Any]) -> None:
    """Read elements until the launcher ends, and end this process with it."""
    try:
        with suppress(EOFError, pickle.UnpicklingError):
            while True:
                elements.put(pickle.load(asked))
    finally:
        os._exit(0)  # after any error: the launcher waits for an answer


def _outputs(step: Step, element: Any) -> Sequence[Any] | None:
    try:
        return list(step.process(element))
    except RecordgenError as exc:
        step.staging.write_error(exc)
    except MemoryError:
        step.staging.write_error(RunnerError(OUT_OF_MEMORY))
    return None


class _Forwarded(QueueHandler):
    """Hands log records to the launcher, whose logs may be JSON."""

    def __init__(self, answer: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(SimpleQueue())  # records are answers instead
        self._answer = answer

    def enqueue(self, record: logging.LogRecord) -> None:
        self._answer(record)
