"""Interfaces of steps and of runners, which run a graph of them here or with Beam; findings."""

from __future__ import annotations

import heapq
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

from recordgen import storage
from recordgen.core.dataset.lint import Found, LintFinding
from recordgen.core.planning.plan import FoundFile, FoundTexts
from recordgen.core.runs.staging import Staging
from recordgen.rejects import OddLine

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
