"""Steps, and what carries elements from one to the next: this process, or a runner of Beam."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from recordgen.runs.staging import Staging

if TYPE_CHECKING:
    from typing_extensions import Self

#: Adds to counters, by the names in :mod:`recordgen.runs.counters`.
Count = Callable[[Mapping[str, int]], None]

#: What to do where memory is short.
OUT_OF_MEMORY = (
    "out of memory: a process of this run needs more than it may have; give it more, or use fewer "
    "--threads, a smaller --decode-memory or fewer workers; --resume keeps the finished shards"
)


class Step:
    """Turns an element into any number of others.

    Attributes:
        staging: where a worker elsewhere leaves its error.
        count: set by :meth:`begin`.
    """

    staging: Staging
    count: Count

    def begin(self, count: Count) -> None:
        """Prepare for elements, in each process that gets some."""
        self.count = count

    def process(self, element: Any) -> Iterator[Any]:
        """Yield what becomes of an element."""
        raise NotImplementedError


@dataclass(eq=False)
class Each(Step):
    """A step that is a function."""

    function: Callable[[Any], Iterable[Any]]
    staging: Staging

    def process(self, element: Any) -> Iterator[Any]:
        yield from self.function(element)


class Flow(Protocol):
    """Elements on their way. Each method names what it adds."""

    def through(self, name: str, step: Step) -> Flow:
        """Return what a step makes of the elements."""

    def grouped(self, name: str) -> Flow:
        """Return (key, values) for each key of elements (key, value)."""

    def twice(self) -> tuple[Self, Self]:
        """Return the elements for two that need them."""

    def merged(self, name: str, others: Sequence[Self]) -> Flow:
        """Return these elements and the others."""


class Carrier(Protocol):
    """Carries out a graph of steps."""

    def start(self, name: str, elements: Iterable[Any], *, spread: bool = False) -> Flow:
        """Return the elements that a graph begins with.

        Args:
            name: what they are.
            elements: them.
            spread: whether several workers should share them.
        """

    def run(self, staging: Staging) -> None:
        """Carry out all that begins here; errors of workers elsewhere are in ``staging``.

        Raises:
            RecordgenError: a step has raised it.
            RunnerError: the carrier failed.
        """
