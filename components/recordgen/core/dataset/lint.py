"""Findings about a dataset: a line of ``lint.jsonl``, and the result of all checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from recordgen.messages import Shown
from recordgen.registry import CHECKS
from recordgen.rejects import place_of
from recordgen.storage.local import Spool

if TYPE_CHECKING:
    from recordgen.core.dataset.manifest import Dataset

#: The levels of checks: the data misleads a model's training or metrics, or may do so.
ERROR, WARNING = "error", "warning"


class LintFinding(NamedTuple):
    """One problem of the dataset, a line of ``lint.jsonl``."""

    code: str  # code of the check, a name in CHECKS
    level: str  # `error` or `warning`
    source: str  # the import file of the example; empty if the whole dataset is concerned
    line: int  # 1-based line in that file; 0 if the whole dataset is concerned
    uri: str  # the payload's address as written in the line
    split: str  # the example's split; empty for a finding about a line, which may have no example
    message: str  # what was found
    # The import file of the example that it was compared with; if empty, the line of JSON has
    # neither this field nor the next.
    other_source: str = ""
    other_line: int = 0  # 1-based line in that file

    def __str__(self) -> str:
        where = place_of(self.source, self.line, self.uri) if self.source else "dataset"
        return f"{where}: {self.code} {self.message}"

    def to_line(self) -> str:
        """Return the finding as a line of JSON."""
        values = self._asdict()
        if not self.other_source:
            del values["other_source"], values["other_line"]
        return json.dumps(values, ensure_ascii=False) + "\n"


@dataclass(frozen=True, repr=False)
class Lint(Shown):
    """The result of the checks.

    The findings are lines of JSON, in a temporary file if they are many.
    """

    counts: Mapping[str, int]  # number of findings by code, in the order of the codes
    fatal: Mapping[str, int]  # the counts of codes that fail a run
    about_all: Sequence[LintFinding]  # findings about the dataset as a whole
    _of: Callable[[str], Iterator[str]]
    remarks: Sequence[str] = ()  # what the checks had to leave out

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return count_level(self.counts, ERROR)

    @property
    def is_bad(self) -> bool:
        """Whether there are errors, or findings that fail a run."""
        return bool(self.errors or self.fatal)

    def findings(self) -> Iterator[LintFinding]:
        """Yield all findings, code by code, each by import file and line."""
        return map(finding_of, self.lines())

    def first(self, count: int) -> Iterator[LintFinding]:
        """Yield the first findings of each code."""
        for code in self.counts:
            yield from map(finding_of, islice(self._of(code), count))

    def lines(self) -> Iterator[str]:
        """Yield the lines of ``lint.jsonl``."""
        return chain.from_iterable(map(self._of, self.counts))


@dataclass(frozen=True)
class Found:
    """What steps have found before the dataset is known."""

    # The files of findings about examples or lines, by code.
    files: Mapping[str, str] = field(default_factory=dict)
    # Messages about the dataset as a whole, by code.
    about_all: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()  # what checks had to leave out


class LineSpool:
    """Lines by code: in memory, or in a temporary file if they are many."""

    def __init__(self) -> None:
        self._lines = Spool()
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, code: str, lines: Iterable[bytes]) -> int:
        """Append lines to those of the code that was added last, or begin a code."""
        before = len(self._lines)
        for line in lines:
            self._lines.add(line)
        self._places[code] = self._places.get(code, (before, 0))[0], len(self._lines)
        return len(self._lines) - before

    def read(self, code: str) -> Iterator[str]:
        """Yield the lines of a code."""
        for number in range(*self._places.get(code, (0, 0))):
            yield self._lines[number].decode()


def finding_of(line: str) -> LintFinding:
    """Parse a line of JSON."""
    return LintFinding(**json.loads(line))


def first_of_each(findings: Iterable[LintFinding], count: int) -> Iterator[LintFinding]:
    """Yield the first findings of each code."""
    seen: Counter[str] = Counter()
    for item in findings:
        seen[item.code] += 1
        if seen[item.code] <= count:
            yield item


def only_level(counts: Mapping[str, int], level: str) -> dict[str, int]:
    """Return the counts of a level's codes."""
    # A check that is not installed counts as a warning.
    levels = {code: CHECKS[code].level if code in CHECKS else WARNING for code in counts}
    return {code: count for code, count in counts.items() if levels[code] == level}


def count_level(counts: Mapping[str, int], level: str) -> int:
    """Return the number of findings of a level, given the counts by code."""
    return sum(only_level(counts, level).values())


def dataset_numbers(dataset: Dataset) -> dict[str, int]:
    """Return the numbers of a dataset that pipelines display, by the names that all steps use."""
    rows = dataset.rows
    return {
        "rows": rows.read,
        "examples": dataset.examples,
        "duplicates": rows.duplicates,
        "merged": rows.merged,
        "dropped": rows.dropped,
        "rejects": rows.rejects,
        "lint_errors": count_level(dataset.lint, ERROR),
        "lint_warnings": count_level(dataset.lint, WARNING),
        "label_count": len(dataset.labels),
    }
