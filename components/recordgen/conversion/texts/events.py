"""Results as events of the log, see :mod:`recordgen.console.logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordgen.console import logs

if TYPE_CHECKING:
    from recordgen.conversion.results import CheckResult, ConversionResult
    from recordgen.formats.detect import Detection


def detected(detection: Detection) -> None:
    """Log how the source is read, before the run begins."""
    task, found = detection.options.task, detection.form
    shown = [f"reading {task} from {found}"]
    if detection.found_by_name:
        root = detection.options.image_root
        shown.append(f"{detection.found_by_name:,} paths found below {root} by name so far")
    logs.event("detected", "; ".join([*shown, *map(str, detection.rows)]), detection.to_json())


def converted(result: ConversionResult) -> None:
    """Log the result of a conversion."""
    logs.finished(
        f"{result.dataset.examples:,} examples written to {result.output}",
        result.counts,
        seconds=result.seconds,
        rejects=result.rejects,
        warnings=result.dataset.warnings,
        phases=result.phases,
        output=result.output,
        digest=result.dataset.digest,
    )


def checked(result: CheckResult, exit_code: int) -> None:
    """Log the result of a check."""
    logs.finished(
        f"{result.dataset.examples:,} of {result.dataset.rows.read:,} rows are usable",
        result.counts,
        seconds=result.seconds,
        rejects=result.rejects,
        warnings=result.dataset.warnings,
        phases=result.phases,
        exit_code=exit_code,
    )
