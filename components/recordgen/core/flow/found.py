"""Findings for ``lint.jsonl`` between steps: files of sorted lines, and one file for each code."""

from __future__ import annotations

import heapq
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

from recordgen.core.dataset.lint import LintFinding
from recordgen.core.flow.runner import Step
from recordgen.core.planning.messages import FoundFile
from recordgen.core.runs.staging import Staging
from recordgen.rejects import OddLine

#: What findings of a code are sorted by: texts and numbers from 0, in all of them the same types.
Place: TypeAlias = tuple[str | int, ...]

# Findings that are sorted in memory.
_RUN_BYTES = 64 << 20


def write_sorted(staging: Staging, lines: Iterable[tuple[Place, str]]) -> FoundFile:
    """Write findings of one code, as lines of JSON."""
    text = "".join(sorted(f"{sort_key(place)}\t{line}" for place, line in lines)).encode()
    return FoundFile(staging.leave(text), len(text))


def sort_key(place: Place) -> str:
    """Return a text that sorts as the place does; hexadecimal digits keep the order.

    Blanks, which sort before digits, separate its parts: it has no tabs and no line ends.
    """
    return " ".join(f"{it:016x}" if isinstance(it, int) else it.encode().hex() for it in place)


def write_odd_lines(staging: Staging, lines: Iterable[OddLine]) -> dict[str, FoundFile]:
    """Write findings about lines of import files; return a file for each code."""
    by_code = defaultdict[str, list[tuple[Place, str]]](list)
    for it in lines:
        found = LintFinding(it.code, it.level, *it[:3], "", it.message)
        by_code[it.code].append(((*it[:3], it.message), found.to_line()))
    return {code: write_sorted(staging, found) for code, found in by_code.items()}


def merge_found(staging: Staging, code: str, files: Iterable[FoundFile]) -> None:
    """Write all findings of a code to one file, by place."""
    with ExitStack() as stack, staging.writing_findings(code) as out:
        runs = [stack.enter_context(run) for run in _runs(staging, sorted(files))]
        for line in heapq.merge(*runs):
            out.write(line[line.index(b"\t") + 1 :])


@dataclass(eq=False)
class MergeFindings(Step):
    """Merge the findings of a code, by import file and line.

    In: (code, [FoundFile]). Out: nothing.
    """

    staging: Staging

    def process(self, element: tuple[tuple[str, int], Iterable[FoundFile]]) -> Iterator[Any]:
        """Write the file of the code."""
        (name, _), files = element
        merge_found(self.staging, name.partition(" ")[2], files)
        yield from ()


def _runs(staging: Staging, files: Sequence[FoundFile]) -> Iterator[IO[bytes]]:
    """Yield files of sorted lines, as few as memory allows."""
    waiting: list[bytes] = []
    size = 0
    for at, file in enumerate(files):
        waiting.append(staging.read_left(file.name, 0, file.bytes))
        size += file.bytes
        if size >= _RUN_BYTES or at == len(files) - 1:
            run = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
            run.writelines(sorted(b"".join(waiting).splitlines(keepends=True)))
            run.seek(0)
            yield run
            waiting, size = [], 0
