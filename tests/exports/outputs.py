"""An output whose files are given by a test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.manifest import Dataset
from recordgen.exports import Output
from recordgen.exports.report.render import Report
from recordgen.rejects import Reject


class GivenOutput(Output):
    """A dataset with shards at other paths, and with findings and facts from memory."""

    def __init__(
        self,
        dataset: Dataset,
        path_of: Callable[[str], str],
        findings: Sequence[LintFinding] = (),
        facts: Any = None,
    ) -> None:
        super().__init__("nowhere", dataset)
        self._path_of = path_of
        self._findings = findings
        self._facts = facts

    def path_of(self, file: str) -> str:
        return self._path_of(file)

    def examples(self, columns: Collection[str]) -> Any:
        return self._facts

    def rejects(self, most: int) -> Sequence[Reject]:
        return ()

    def findings(self, most: int) -> Sequence[LintFinding]:
        return self._findings


def rendered(
    dataset: Dataset,
    path_of: Callable[[str], str],
    findings: Sequence[LintFinding] = (),
    facts: Any = None,
) -> str:
    """Return the report about such an output."""
    return Report().text(GivenOutput(dataset, path_of, findings, facts))
