"""Runs a graph on this machine; steps may use threads, and some are worth several processes."""

from __future__ import annotations

import pickle
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, tee
from sys import getsizeof
from tempfile import SpooledTemporaryFile
from typing import Any

from recordgen.core.flow.runner import OUT_OF_MEMORY, Step
from recordgen.core.interpreter import has_python
from recordgen.core.runs.staging import Staging
from recordgen.errors import RunnerError

# A process takes some tenths of a second to start, so fewer elements are not worth another one.
_ELEMENTS_PER_PROCESS = 3

# Values of groups that wait in memory: rows of tables, and as much again for messages and objects.
_BYTES_IN_MEMORY = 64 << 20


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
            from recordgen.core.flow.processes import in_processes  # few rows need none

            yield from in_processes(step, elements, processes)
            return
    step.begin(lambda amounts: None)  # do not count here: the results hold all counts
    for element in elements:
        yield from step.process(element)


def _groups(elements: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the values of each key, in their order; only some of them wait in memory."""
    found: dict[Any, list[Any]] = {}
    places = defaultdict[Any, list[int]](list)  # where the earlier values of a key are in the file
    size = 0
    with SpooledTemporaryFile(1) as file:  # on the disk from its first byte on
        for key, value in elements:
            found.setdefault(key, []).append(value)
            size += getsizeof(value)
            if size > _BYTES_IN_MEMORY:
                for key, values in found.items():
                    if values:
                        places[key].append(file.tell())
                        pickle.dump(values, file)
                        values.clear()
                size = 0
        while found:
            key = next(iter(found))
            earlier = list[Any]()
            for start in places.pop(key, ()):
                file.seek(start)
                earlier += pickle.load(file)
            yield key, earlier + found.pop(key)  # free as soon as the group is processed
