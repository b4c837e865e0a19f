"""Results as events of the log, see :mod:`recordgen.console.logs`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recordgen.console import logs
from recordgen.core.runs.counters import total_counts

if TYPE_CHECKING:
    from recordgen.conversion.results import CheckResult, ConversionResult, PlanResult
    from recordgen.formats.detect import Detection
    from recordgen.rejects import Reject


def detected(detection: Detection) -> None:
    """Log how the source is read, before the run begins."""
    task, found = detection.options.task, detection.form
    shown = [f"reading {task} from {found}"]
    if detection.found_by_name:
        root = detection.options.image_root
        shown.append(f"{detection.found_by_name:,} paths found below {root} by name so far")
    logs.event("detected", "; ".join([*shown, *map(str, detection.rows)]), detection.to_json())


def planned(result: PlanResult, seconds: float, exit_code: int) -> None:
    """Log the result of a plan that took some seconds."""
    message, counts = f"{result.rows:,} of {result.read:,} rows planned", total_counts(result)
    fields = {"seconds": round(seconds, 3), "exit_code": exit_code}
    _finished(message, counts, result.rejects, result.vocabulary.warnings, fields)


def converted(result: ConversionResult) -> None:
    """Log the result of a conversion."""
    message = f"{result.dataset.examples:,} examples written to {result.output}"
    _checked(result, message, 0, output=result.output, digest=result.dataset.digest)


def checked(result: CheckResult, exit_code: int) -> None:
    """Log the result of a check."""
    rows = f"{result.dataset.examples:,} of {result.dataset.rows.read:,} rows are usable"
    _checked(result, rows, exit_code)


def _checked(result: CheckResult, message: str, exit_code: int, **more: str) -> None:
    fields: dict[str, Any] = {"seconds": round(result.seconds, 3), "exit_code": exit_code, **more}
    if result.phases:
        fields["phases"] = {name: round(took, 3) for name, took in result.phases.items()}
    _finished(message, result.counts, result.rejects, result.dataset.warnings, fields)


def _finished(
    message: str,
    counts: Mapping[str, int],
    rejects: Sequence[Reject],
    warnings: Sequence[str],
    fields: Mapping[str, Any],
) -> None:
    """Log the warnings of a run, then one line with all counts and further fields."""
    for text in warnings:
        logs.event("warning", text, level=logging.WARNING)
    logs.event("finished", message, {**counts, "rejected": logs.by_code(rejects), **fields})
