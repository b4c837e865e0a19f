"""Summaries of runs that write no dataset: dry runs, plans of parts, parts, and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recordgen.console.terminal import aligned
from recordgen.conversion.texts.summaries import (
    CLASSES_SHOWN,
    adjusted_lines,
    detection_lines,
    first_lines,
)
from recordgen.messages import megabytes

if TYPE_CHECKING:
    from recordgen.conversion.results import PartResult, PartsResult, PlanResult
    from recordgen.core.dataset.manifest import Dataset
    from recordgen.core.shards.intact import Difference


def plan_summary(plan: PlanResult, output: str = "") -> str:
    """Return the summary of a dry run."""
    return _plan_summary(plan, "Would convert", f" to {output}" if output else "")


def parts_summary(plan: PartsResult) -> str:
    """Return the summary of a run that is planned in parts."""
    filled, parts, output = min(plan.parts, plan.shards), plan.parts, plan.output
    lines = [
        _plan_summary(plan, "Planned", f" in {output}"),
        f"Parts      {parts:,}, of which {filled:,} have {plan.shards:,} shards"
        + ("" if filled == parts else "; a smaller --shard-mb makes more shards"),
        f"Next       recordgen parts work {output} PART, for each PART from 0 to {parts - 1}",
        f"At the end recordgen parts commit {output}",
    ]
    return "\n".join(lines)


def part_summary(result: PartResult) -> str:
    """Return the summary of work on a part."""
    if result.is_committed:
        return f"Nothing to do: the dataset is committed in {result.output}"
    part = f"part {result.part} of {result.parts}"
    if result.was_done:
        return f"Nothing to do: {part} {'is finished' if result.shards else 'has no shards'}"
    return f"Wrote {part}: {result.shards:,} shards in {result.seconds:.1f} s"


def _plan_summary(plan: PlanResult, verb: str, place: str) -> str:
    rows = [
        (
            name,
            f"{split['rows']:,}",
            f"{split['shards'] - split['first']:,}",
            megabytes(split["bytes"]),
        )
        for name, split in plan.splits.items()
    ]
    lines = [
        f"{verb} {plan.rows:,} of {plan.read:,} rows ({megabytes(plan.bytes)}){place}"
        f"; {len(plan.vocabulary.names):,} labels, {len(plan.rejects):,} rejects so far; files "
        f"are not checked yet",
        "",
        *aligned(("split", "rows", "shards", "bytes"), rows),
        *adjusted_lines(plan.adjusted, plan.detection.options.image_root if plan.detection else ""),
        "",
        *detection_lines(plan.detection),
        *first_lines(plan.rejects, CLASSES_SHOWN, len(plan.rejects)),
    ]
    return "\n".join(lines)


def plan_json(plan: PlanResult) -> dict[str, Any]:
    """Return a dry run as JSON."""
    counts = ("read", "rows", "bytes", "duplicates", "merged", "adjusted", "dropped", "existing")
    return {
        "detection": None if plan.detection is None else plan.detection.to_json(),
        "splits": plan.splits,
        "labels": plan.vocabulary.names,
        "label_kind": plan.vocabulary.kind,
        **{name: getattr(plan, name) for name in counts},
        "rejects": [item._asdict() for item in plan.rejects],
    }


def verification_summary(
    dataset: Dataset, differences: Sequence[Difference], seconds: float
) -> str:
    """Return the summary of a comparison of a finished output with its ``dataset.json``."""
    done = (
        f"Compared {dataset.examples:,} records in {len(dataset.shards):,} shards in "
        f"{seconds:.1f} s"
    )
    if not differences:
        return f"{done}: all are as they were written\ndigest     {dataset.digest}"
    lines = [f"{done}: {len(differences):,} files differ from dataset.json", ""]
    return "\n".join([*lines, *(f"{item.file}: {item.message}" for item in differences)])
