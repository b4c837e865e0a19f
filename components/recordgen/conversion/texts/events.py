"""Results as events of the log, see :mod:`recordgen.console.logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordgen.console import logs
from recordgen.core.runs.counters import total_counts

if TYPE_CHECKING:
    from recordgen.conversion.results import CheckResult, ConversionResult, PlanResult
    from recordgen.formats.detect import Detection


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
    logs.finished(
        f"{result.rows} of {result.read} rows planned",
        total_counts(result),
        seconds=seconds,
        rejects=result.rejects,
        warnings=result.vocabulary.warnings,
        exit_code=exit_code,
    )


def converted(result: ConversionResult) -> None:
    """Log the result of a conversion."""
    where = {"output": result.output, "digest": result.dataset.digest}
    _finished(result, f"{result.dataset.examples:,} examples written to {result.output}", **where)


def checked(result: CheckResult, exit_code: int) -> None:
    """Log the result of a check."""
    rows = f"{result.dataset.examples:,} of {result.dataset.rows.read:,} rows are usable"
    _finished(result, rows, exit_code=exit_code)


def _finished(result: CheckResult, message: str, **more: Any) -> None:
    logs.finished(
        message,
        result.counts,
        seconds=result.seconds,
        rejects=result.rejects,
        warnings=result.dataset.warnings,
        phases=result.phases,
        **more,
    )
