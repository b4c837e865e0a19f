"""Results of checks, and a line of ``lint.jsonl``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.rejects import place_of

#: Indices of examples, in the order of :class:`recordgen.checks.facts.ExampleFacts`.
RowIndices = npt.NDArray[np.intp]


class FoundRows(NamedTuple):
    """The examples that a check has found.

    Attributes:
        code: code of the check.
        rows: the examples, each once.
        message: returns the message of a finding, given its index in ``rows``.
        partners: the example to which each one was compared; None if there was no comparison.
    """

    code: str
    rows: RowIndices
    message: Callable[[int], str]
    partners: RowIndices | None = None


class AboutAll(NamedTuple):
    """A finding about the dataset as a whole.

    Attributes:
        code: code of the check.
        message: what was found.
    """

    code: str
    message: str


class LintFinding(NamedTuple):
    """One problem of the dataset, a line of ``lint.jsonl``.

    Attributes:
        code: code of the check, see :data:`recordgen.checks.codes.CHECKS`.
        level: ``error`` or ``warning``.
        source: the import file of the example; empty if the whole dataset is concerned.
        line: 1-based line in that file; 0 if the whole dataset is concerned.
        uri: the payload's address as written in the line.
        split: the example's split; empty for a finding about a line, which may have no example.
        message: what was found.
        other_source: the import file of the example that it was compared with; if empty, the line
            of JSON has neither this field nor the next.
        other_line: 1-based line in that file.
    """

    code: str
    level: str
    source: str
    line: int
    uri: str
    split: str
    message: str
    other_source: str = ""
    other_line: int = 0

    def __str__(self) -> str:
        where = place_of(self.source, self.line, self.uri) if self.source else "dataset"
        return f"{where}: {self.code} {self.message}"

    def to_line(self) -> str:
        """Return the finding as a line of JSON."""
        values = self._asdict()
        if not self.other_source:
            del values["other_source"], values["other_line"]
        return json.dumps(values, ensure_ascii=False) + "\n"


def first_of_each(findings: Iterable[LintFinding], count: int) -> Iterator[LintFinding]:
    """Yield the first findings of each code."""
    seen: Counter[str] = Counter()
    for item in findings:
        seen[item.code] += 1
        if seen[item.code] <= count:
            yield item
