"""Interfaces of steps, and of runners, which run a graph of steps here or with Beam."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from recordgen.core.runs.staging import Staging

if TYPE_CHECKING:
    from typing_extensions import Self

#: Adds to counters, by the names in :mod:`recordgen.core.runs.counters`.
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
