"""The findings of the checks between steps: files of sorted lines, and one file for each code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recordgen.checks.check import Check, FoundRows
from recordgen.checks.facts import ExampleFacts
from recordgen.core.flow.runner import Step
from recordgen.core.planning.messages import FoundFile
from recordgen.core.runs.found import Place, merge_found, write_sorted
from recordgen.core.runs.staging import Staging

# Findings of one file of a step.
_FILE_FINDINGS = 1 << 16


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
        lines: list[tuple[Place, str]] = []
        for number, (part, at) in some:
            row = int(part.rows[at])
            other = None if part.partners is None else int(part.partners[at])
            finding = facts.finding(check.code, check.level, row, part.message(at), other)
            place = ("", 0, "", 0) if is_whole else facts.address(row)
            lines.append(((*place, number), finding.to_line()))
        yield write_sorted(staging, lines)


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
        if code:
            merge_found(self.staging, code, messages)
        else:
            self.staging.write_seconds(sum(messages))
        yield from ()
