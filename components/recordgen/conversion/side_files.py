"""The files that a conversion writes beside its shards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from recordgen.core.dataset.lint import Lint, LintFinding
from recordgen.core.dataset.manifest import (
    EXAMPLES_FILE,
    FINDINGS_FILE,
    LINT_FILE,
    REJECTS_FILE,
    Dataset,
)
from recordgen.core.facts.columns import Columns, to_parquet
from recordgen.exports.beside import CONVERTED, exported, no_files
from recordgen.exports.output import Output
from recordgen.rejects import Finding, Reject, to_lines
from recordgen.tasks.label_files import label_files


class UncommittedOutput(Output):
    """The output of a run before its commit: shards are still in the staging folder."""

    def __init__(
        self,
        root: str,
        dataset: Dataset,
        path_of: Callable[[str], str],
        rejects: Sequence[Reject],
        lint: Lint,
        facts: Callable[[], Iterator[Columns]],
    ) -> None:
        super().__init__(root, dataset)
        self._path_of = path_of
        self.all_rejects = rejects
        self.lint = lint
        self.facts = facts

    def path_of(self, file: str) -> str:
        return self._path_of(file)

    def has_examples(self) -> bool:
        return True

    def example_parts(self, columns: Collection[str]) -> Iterator[Any]:
        for part in self.facts():
            yield part.select(list(columns))

    def rejects(self, most: int) -> Sequence[Reject]:
        return self.all_rejects[:most]

    def findings(self, most: int) -> Sequence[LintFinding]:
        return list(self.lint.first(most))


def side_files(
    output: UncommittedOutput, findings: Iterable[Finding]
) -> dict[str, Iterable[bytes]]:
    """Return the files by name, for :func:`recordgen.core.runs.commit.commit`.

    Args:
        output: the dataset.
        findings: all changes in rows.
    """
    labels = label_files(output.dataset)
    return {
        **no_files(),
        **{name: [text.encode()] for name, text in labels.items()},
        **exported(output, CONVERTED),
        REJECTS_FILE: ["".join(to_lines(output.all_rejects)).encode()],
        FINDINGS_FILE: (line.encode() for line in to_lines(findings)),
        LINT_FILE: (line.encode() for line in output.lint.lines()),
        EXAMPLES_FILE: to_parquet(output.facts()),
    }
