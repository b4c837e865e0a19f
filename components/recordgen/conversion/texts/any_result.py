"""Results of the Python API as text: the summaries that the commands print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from recordgen.console.terminal import escaped
from recordgen.conversion.texts.differences import difference_summary
from recordgen.conversion.texts.planned import parts_summary, plan_summary
from recordgen.conversion.texts.summaries import (
    check_summary,
    class_table,
    conversion_summary,
    finding_counts,
    lint_lines,
    nouns_of,
    row_lines,
    split_table,
)
from recordgen.messages import listed, megabytes
from recordgen.messages.masking import masked

if TYPE_CHECKING:
    from recordgen.core.dataset.lint import Lint
    from recordgen.core.dataset.manifest import Dataset
    from recordgen.messages import Shown


def text_of(result: Shown) -> str:
    """Return the summary of a result, without control characters and without secrets of URLs."""
    name = next(kind.__name__ for kind in type(result).__mro__ if kind.__name__ in SUMMARIES)
    return escaped(masked(SUMMARIES[name](result)))


def dataset_summary(dataset: Dataset) -> str:
    """Return the summary of a dataset, without the run that wrote it."""
    examples = f"{dataset.examples:,} {nouns_of(dataset)} ({megabytes(dataset.bytes)})"
    lines = [f"{examples}, {dataset.task}", "", *split_table(dataset), "", *class_table(dataset)]
    if dataset.features:
        shown = [f"{name} {spec.dtype}" for name, spec in dataset.features.items()]
        lines.append(f"Features   {listed(shown, str)}")
    if dataset.source:
        lines += row_lines(dataset, ())
    lines += finding_counts(dataset.lint)
    return "\n".join([*lines, f"Digest     {dataset.digest[:16]}…"])


def written_summary(result: Any) -> str:
    """Return the summary of a :class:`recordgen.writing.api.WriteResult`."""
    lines = [
        f"Wrote {result.output} in {result.seconds:.1f} s, which holds",
        dataset_summary(result.dataset),
        f"Look at it: recordgen inspect {result.output}",
    ]
    return "\n".join(lines)


def _lint_summary(lint: Lint) -> str:
    return "\n".join(lint_lines(lint, None, 5)) or "Findings   none"


#: The function that describes the results of each class.
SUMMARIES: Mapping[str, Callable[[Any], str]] = {
    "CheckResult": check_summary,
    "ConversionResult": conversion_summary,
    "Dataset": dataset_summary,
    "Differences": difference_summary,
    "Lint": _lint_summary,
    "PartsResult": parts_summary,
    "PlanResult": plan_summary,
    "WriteResult": written_summary,
}
