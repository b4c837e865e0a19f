"""The findings of the checks between steps: files of sorted lines, and one file for each code."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, NamedTuple

from recordgen.checks.check import Check, FoundRows
from recordgen.checks.facts import Address, ExampleFacts
from recordgen.core.flow.runner import Step
from recordgen.core.runs.staging import Staging

# Findings that are sorted in memory, and those of one file of a step.
_RUN_BYTES, _FILE_FINDINGS = 64 << 20, 1 << 16


class FoundFile(NamedTuple):
    """A file of findings of one code, sorted, and its size in bytes."""

    name: str
    bytes: int


def write_found(
    staging: Staging,
    check: Check,
    facts: ExampleFacts,
    found: Sequence[FoundRows],
    *,
    is_whole: bool,
) -> Iterator[FoundFile]:
    """Write the findings of a check about examples, and yield their files.

    ``is_whole``: the check has examined all examples, so the order of its findings is final.
    """
    numbered = enumerate((part, at) for part in found for at in range(len(part.rows)))
    while some := list(islice(numbered, _FILE_FINDINGS)):
        lines: list[str] = []
        for number, (part, at) in some:
            row = int(part.rows[at])
            other = None if part.partners is None else int(part.partners[at])
            finding = facts.finding(check.code, check.level, row, part.message(at), other)
            place = ("", 0, "", 0) if is_whole else facts.address(row)
            lines.append(f"{sort_key(place, number)}\t{finding.to_line()}")
        text = "".join(sorted(lines)).encode()
        yield FoundFile(staging.leave(text), len(text))


def sort_key(place: Address, number: int) -> str:
    """Return a text that sorts as the place and the number do; hexadecimal digits keep the order.

    Blanks, which sort before digits, separate its parts: it has no tabs and no line ends.
    """
    source, line, shard, record = place
    files = source.encode().hex(), shard.encode().hex()
    return f"{files[0]} {line:016x} {files[1]} {record:08x} {number:016x}"


@dataclass(eq=False)
class MergeFindings(Step):
    """Merge the findings of a code, by import file and line.

    In: (code, [FoundFile]), or the seconds that checks took. Out: nothing.
    """

    staging: Staging

    def process(self, element: tuple[tuple[str, int], Iterable[Any]]) -> Iterator[Any]:
        """Write the file of the code."""
        (name, _), messages = element
        _, _, code = name.partition(" ")
        if not code:
            self.staging.write_seconds(sum(messages))
            return
        files = sorted(messages)
        with ExitStack() as stack, self.staging.writing_findings(code) as out:
            runs = [stack.enter_context(run) for run in self._runs(files)]
            for line in heapq.merge(*runs):
                out.write(line[line.index(b"\t") + 1 :])
        yield from ()

    def _runs(self, files: Sequence[FoundFile]) -> Iterator[IO[bytes]]:
        """Yield files of sorted lines, as few as memory allows."""
        waiting: list[bytes] = []
        size = 0
        for at, file in enumerate(files):
            waiting.append(self.staging.read_left(file.name, 0, file.bytes))
            size += file.bytes
            if size >= _RUN_BYTES or at == len(files) - 1:
                run = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
                run.writelines(sorted(b"".join(waiting).splitlines(keepends=True)))
                run.seek(0)
                yield run
                waiting, size = [], 0
