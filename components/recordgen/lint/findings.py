"""What checks hand back, and a line of ``lint.jsonl``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

#: Numbers of examples, from 0 in the order of :class:`recordgen.lint.facts.Facts`.
Rows = npt.NDArray[np.intp]


class Hits(NamedTuple):
    """The examples that a check has found.

    Attributes:
        code: of the check.
        rows: the examples, each once.
        message: says what was found, given the place of an example in ``rows``.
        partners: the example that each one was compared with; None: each was looked at alone.
    """

    code: str
    rows: Rows
    message: Callable[[int], str]
    partners: Rows | None = None


class AboutAll(NamedTuple):
    """What a check has found about the dataset as a whole.

    Attributes:
        code: of the check.
        message: says what was found.
    """

    code: str
    message: str


class LintFinding(NamedTuple):
    """One thing that is wrong with the dataset; ``lint.jsonl`` has a line with these fields.

    Attributes:
        code: of the check, see :data:`recordgen.lint.codes.CHECKS`.
        level: ``error`` or ``warning``.
        source: the import file of the example; empty: it is about the dataset as a whole.
        line: 1-based line in that file; 0: about the dataset.
        uri: the payload's address as the line gives it.
        split: where the example is; empty: it is about the line, which may have no example.
        message: what was found.
        other_source: the import file of the example that it was compared with; empty: there is
            none, and the line of JSON has neither this field nor the next.
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
        where = f"{self.source}:{self.line}" if self.source else "dataset"
        return f"{where}: {self.code} {self.message}"

    def to_line(self) -> str:
        """Return the line of JSON that ``lint.jsonl`` has for it."""
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
