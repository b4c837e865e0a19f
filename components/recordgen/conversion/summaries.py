"""Summaries of all results: what commands print and log, and ``print(result)``.

docs/running.md lists the events of the log.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from recordgen.console import logs
from recordgen.console.terminal import aligned, escaped, one_line
from recordgen.conversion.printed_tables import difference_summary
from recordgen.core.dataset.lint import ERROR, WARNING, only_level
from recordgen.core.progress import EXAMPLES_WRITTEN, SHARD_BYTES
from recordgen.core.rows.row import is_worth_naming
from recordgen.formats.image_root import Hint, missing_hint
from recordgen.messages import counted, listed, megabytes
from recordgen.messages.masking import masked
from recordgen.options import AUTO
from recordgen.registry import FORMATS
from recordgen.rejects import FOUND_BY_NAME, place_of
from recordgen.storage import is_http
from recordgen.storage.access import unreachable_text
from recordgen.tasks.suiting import remedies_of

if TYPE_CHECKING:
    from recordgen.conversion import results
    from recordgen.core.dataset.lint import Lint
    from recordgen.core.dataset.manifest import Dataset
    from recordgen.exports.verifying import Difference
    from recordgen.formats.detect import Detection
    from recordgen.messages import Shown
    from recordgen.rejects import Finding, Reject

CLASSES_SHOWN = 20
_FINDINGS_SHOWN = 5
_FINDINGS_IN_JSON = 10_000
_SPLITS_SHOWN = 12


def conversion_summary(result: results.ConversionResult) -> str:
    """Return the summary of a conversion."""
    dataset = result.dataset
    examples = result.counts[EXAMPLES_WRITTEN]
    done = "Nothing to do: compared" if result.unchanged else "Converted"
    count = counted(examples, _noun(dataset))
    size = dataset.bytes if result.unchanged else result.counts[SHARD_BYTES]
    lines = [
        f"{done} {count} ({megabytes(size)}) in "
        f"{result.seconds:.1f} s, {_rate(examples, result.seconds)} {nouns_of(dataset)}/s",
        "",
        *split_table(dataset),
        "",
        *class_table(dataset),
        *detection_lines(result.detection),
        *row_lines(dataset, result.rejects),
    ]
    if dataset.examples > examples:
        lines.append(f"Appended   to {dataset.examples - examples:,} existing examples")
    if result.kept_shards is not None:
        shards = counted(len(dataset.shards), "shard")
        lines.append(f"Resumed    kept {result.kept_shards:,} of {shards} of an interrupted run")
    lines += lint_lines(result.lint, dataset, _FINDINGS_SHOWN)
    if result.rejects:
        lines.append(f"Rejected rows are in {result.output}/rejects.jsonl")
    if result.findings and not result.unchanged:
        lines.append(f"Adjustments are in {result.output}/findings.jsonl")
    lines += [
        *phase_lines(result.phases),
        f"Dataset    {result.output}/dataset.json (digest {dataset.digest[:16]}…)",
        f"Report     {result.output}/report.html",
        f"Look at it: recordgen inspect {result.output}",
    ]
    return "\n".join(lines)


def phase_lines(phases: Mapping[str, float]) -> Sequence[str]:
    """Return the line about the time of each phase."""
    took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in phases.items())
    return [f"Phases     {took}"] if took else []


def check_summary(result: results.CheckResult, *, limit: int = 20) -> str:
    """Return the summary of a check, with the first rejects and findings."""
    dataset, rejects = result.dataset, result.rejects
    lines = [
        f"Checked {counted(dataset.rows.read, 'row')} in {result.seconds:.1f} s, "
        f"{_rate(dataset.rows.read, result.seconds)} rows/s: "
        f"{dataset.examples:,} usable, {len(rejects):,} rejected",
        "",
        *class_table(dataset),
        *detection_lines(result.detection),
        *row_lines(dataset, rejects),
        *first_lines(rejects, limit, len(rejects)),
        *_hint_lines(missing_hint(rejects, dataset.rows.read)),
        *first_lines(result.findings, limit, sum(_listed(dataset.rows.adjusted).values())),
        *lint_lines(result.lint, dataset, limit),
    ]
    return "\n".join(lines)


def _hint_lines(hint: Hint) -> list[str]:
    """Return the lines about missing files."""
    option = f"; use --image-root {shlex.quote(hint.root)}" if hint.root else ""
    return [f"Hint       {hint.text}{option}"] if hint.text else []


def detection_lines(detection: Detection | None) -> list[str]:
    """Return the detected task, format and columns of a source, and some of its rows."""
    if detection is None:
        return []
    task, reason = detection.options.task, detection.reason
    lines = [f"Task       {task}{f' ({reason})' if reason else ''}"]
    if (found := detection.form) != AUTO:
        lines.append(f"Format     {found}")
    if detection.columns:
        given = detection.options.format
        name = "Columns" if given == AUTO else FORMATS[given].heading  # a DataFrame has no format
        lines.append(f"{name:<10} {listed(detection.columns, ' = '.join)}")
    if named := detection.named_splits:
        shown = [f"{split} by the name of {path}" for path, split in named[:_SPLITS_SHOWN]]
        lines.append(f"Splits     {', '.join(shown)} (--split names=no: assigned)")
    if root := detection.options.image_root:
        exact = ", which lists no files: paths must be exact" if is_http(root) else ""
        lines.append(f"Images     below {root}{exact}")
    for number, row in enumerate(detection.rows):
        lines.append(f"{'' if number else 'Read as':<10} {one_line(str(row))}")
    return lines


def lint_lines(lint: Lint, dataset: Dataset | None, limit: int) -> list[str]:
    """Return the number of findings by code, and the first findings about examples."""
    if not lint.counts:
        return []
    lines = finding_counts(lint.counts)
    remedies = {code: remedies_of(code, dataset) for code in lint.counts}
    lines += [f"Remedy     {code}: {remedy}" for code, remedy in remedies.items() if remedy]
    about_rows = sum(lint.counts.values()) - len(lint.about_all)
    first = (item for item in lint.findings() if item.source)
    lines += [one_line(f"{item.level} {item}") for item in islice(first, limit)]
    return [*lines, *_more(about_rows - limit)]


def _more(count: int) -> list[str]:
    return [f"… and {count:,} more"] if count > 0 else []


def finding_counts(counts: Mapping[str, int]) -> list[str]:
    """Return a line with the number of findings by level and code, or no line without any."""
    levels = {level: only_level(counts, level) for level in (ERROR, WARNING)}
    shown = [counted(sum(c.values()), level) + _detail(c) for level, c in levels.items() if c]
    return [f"Findings   {', '.join(shown)}"] if shown else []


def lint_json(lint: Lint) -> list[dict[str, Any]]:
    """Return the first findings as JSON."""
    return [item._asdict() for item in islice(lint.findings(), _FINDINGS_IN_JSON)]


def _rate(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-3):,.0f}"


def split_table(dataset: Dataset) -> list[str]:
    """Return the examples, shards and bytes of the splits."""
    rows = [
        (name, f"{split.examples:,}", f"{len(split.shards):,}", megabytes(split.bytes))
        for name, split in dataset.splits.items()
    ]
    return aligned(("split", "examples", "shards", "bytes"), rows)


def class_table(dataset: Dataset) -> list[str]:
    """Return the examples of the first classes."""
    counts: dict[str, Mapping[str, int]] = {
        name: split.labels for name, split in dataset.splits.items()
    }
    labels = [name for name in dataset.labels if any(c.get(name) for c in counts.values())]
    if not labels:
        return []
    rows = [
        (label, *(f"{split.get(label, 0):,}" for split in counts.values()))
        for label in labels[:CLASSES_SHOWN]
    ]
    return [*aligned(("class", *counts), rows), *_more(len(labels) - CLASSES_SHOWN), ""]


def row_lines(dataset: Dataset, rejects: Sequence[Reject]) -> list[str]:
    """Return the counts of rows by their outcome, and the dataset's warnings."""
    rows = dataset.rows
    counts = {
        "with an assigned split": rows.assigned,
        "duplicates": rows.duplicates,
        f"merged into one of their {_noun(dataset)}": rows.merged,
        "dropped without a split": rows.dropped,
        "already in the dataset": rows.existing,
    }
    more = "".join(f", {count:,} {words}" for words, count in counts.items() if count)
    lines = [f"Rows       {rows.read:,} read, {counted(rows.examples, 'example')}{more}"]
    lines += adjusted_lines(rows.adjusted, dataset.options.get("image_root", ""))
    lines.append(f"Rejects    {rows.rejects:,}{_detail(rows.rejected)}")
    if hosts := unreachable_text(rejects):
        lines.append(f"No answer  {one_line(hosts)}")
    if dataset.reencoded:
        total = sum(dataset.reencoded.values())
        lines.append(f"Re-encoded {total:,}{_detail(dataset.reencoded)}")
    lines += [f"Warning    {one_line(text)}" for text in dataset.warnings]
    return lines


def _listed(adjusted: Mapping[str, int]) -> Mapping[str, int]:
    """Return the changes without those that need no line of their own."""
    return {code: count for code, count in adjusted.items() if code != FOUND_BY_NAME}


def _noun(dataset: Dataset) -> str:
    from recordgen.tasks import TASKS  # loads image decoders, which not all commands need

    # Datasets that were written from Python have no task, and others may need another package.
    return str(TASKS[dataset.task].noun) if dataset.task in TASKS else "example"


def nouns_of(dataset: Dataset) -> str:
    """Return the word for the examples of a dataset, such as ``images``."""
    return f"{_noun(dataset)}s"


def _detail(counts: Mapping[str, int]) -> str:
    return f" ({_counted(counts)})" if counts else ""


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def first_lines(items: Sequence[Reject | Finding], limit: int, count: int) -> list[str]:
    """Return the first of ``count`` items as lines, ``file:line: code: message``."""
    lines = [
        one_line(
            f"{place_of(item.source, item.line, item.uri)}: {item.code}: {item.message}"
            + (f" [{item.uri}]" if is_worth_naming(item) else "")
        )
        for item in items[:limit]
    ]
    return [*lines, *_more(count - limit)]


def adjusted_lines(adjusted: Mapping[str, int], root: str) -> list[str]:
    """Return the numbers of the changes in rows; ``root`` is where their paths start."""
    changed, by_name = _listed(adjusted), adjusted.get(FOUND_BY_NAME)
    lines = [f"Images     {by_name:,} paths found below {root} by name"] if by_name else []
    return [*lines, f"Adjusted   {_counted(changed)}"] if changed else lines


def plan_summary(plan: results.PlanResult, output: str = "") -> str:
    """Return the summary of a dry run."""
    return _plan_summary(plan, "Would convert", f" to {output}" if output else "")


def parts_summary(plan: results.PartsResult) -> str:
    """Return the summary of a run that is planned in parts."""
    filled, parts, output = min(plan.parts, plan.shards), plan.parts, plan.output
    lines = [
        _plan_summary(plan, "Planned", f" in {output}"),
        f"Parts      {parts:,}, of which {filled:,} have {counted(plan.shards, 'shard')}"
        + ("" if filled == parts else "; a smaller --shard-mb makes more shards"),
        f"Next       recordgen parts work {output} PART, for each PART from 0 to {parts - 1}",
        f"At the end recordgen parts commit {output}",
    ]
    return "\n".join(lines)


def part_summary(result: results.PartResult) -> str:
    """Return the summary of work on a part."""
    if result.is_committed:
        return f"Nothing to do: the dataset is committed in {result.output}"
    part = f"part {result.part} of {result.parts}"
    if result.was_done:
        return f"Nothing to do: {part} {'is finished' if result.shards else 'has no shards'}"
    return f"Wrote {part}: {counted(result.shards, 'shard')} in {result.seconds:.1f} s"


def _plan_summary(plan: results.PlanResult, verb: str, place: str) -> str:
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
        f"{verb} {plan.rows:,} of {counted(plan.read, 'row')} ({megabytes(plan.bytes)}){place}"
        f"; {counted(len(plan.vocabulary.names), 'label')}, {counted(len(plan.rejects), 'reject')} "
        f"so far; files are not checked yet",
        "",
        *aligned(("split", "rows", "shards", "bytes"), rows),
        *adjusted_lines(plan.adjusted, plan.detection.options.image_root if plan.detection else ""),
        "",
        *detection_lines(plan.detection),
        *first_lines(plan.rejects, CLASSES_SHOWN, len(plan.rejects)),
    ]
    return "\n".join(lines)


def plan_json(plan: results.PlanResult) -> dict[str, Any]:
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
        f"Compared {counted(dataset.examples, 'record')} in "
        f"{counted(len(dataset.shards), 'shard')} in {seconds:.1f} s"
    )
    if not differences:
        return f"{done}: all are as they were written\ndigest     {dataset.digest}"
    lines = [f"{done}: files that differ from dataset.json: {len(differences):,}", ""]
    return "\n".join([*lines, *(f"{item.file}: {item.message}" for item in differences)])


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


# --- events of the log ---------------------------------------------------------------------------


def log_detected(detection: Detection) -> None:
    """Log how the source is read, before the run begins."""
    task, found = detection.options.task, detection.form
    shown = [f"reading {task} from {found}"]
    if detection.found_by_name:
        root = detection.options.image_root
        shown.append(f"{detection.found_by_name:,} paths found below {root} by name so far")
    logs.event("detected", "; ".join([*shown, *map(str, detection.rows)]), detection.to_json())


def log_planned(result: results.PlanResult, seconds: float, exit_code: int) -> None:
    """Log the result of a plan that took some seconds."""
    message, counts = f"{result.rows:,} of {result.read:,} rows planned", result.totals()
    fields = {"seconds": round(seconds, 3), "exit_code": exit_code}
    _log_end(message, counts, result.rejects, result.vocabulary.warnings, fields)


def log_converted(result: results.ConversionResult) -> None:
    """Log the result of a conversion."""
    message = f"{counted(result.dataset.examples, 'example')} written to {result.output}"
    _log_check(result, message, 0, output=result.output, digest=result.dataset.digest)


def log_checked(result: results.CheckResult, exit_code: int) -> None:
    """Log the result of a check."""
    rows = f"{result.dataset.examples:,} of {result.dataset.rows.read:,} rows are usable"
    _log_check(result, rows, exit_code)


def _log_check(result: results.CheckResult, message: str, exit_code: int, **more: str) -> None:
    fields: dict[str, Any] = {"seconds": round(result.seconds, 3), "exit_code": exit_code, **more}
    if result.phases:
        fields["phases"] = {name: round(took, 3) for name, took in result.phases.items()}
    _log_end(message, result.counts, result.rejects, result.dataset.warnings, fields)


def _log_end(
    message: str,
    counts: Mapping[str, int],
    rejects: Sequence[Reject],
    warnings: Sequence[str],
    fields: Mapping[str, Any],
) -> None:
    """Log the warnings of a run, then one line with all counts and further fields."""
    from recordgen.conversion.results import as_flags  # no run without a log needs it

    for text in warnings:
        logs.event("warning", as_flags(text), level=logging.WARNING)
    logs.event("finished", message, {**counts, "rejected": logs.by_code(rejects), **fields})
