"""Summaries of all results: what commands print and log, and ``print(result)``.

The texts are macros in ``exports/templates/summaries.txt``, each named after the class of its
results. docs/running.md lists the events of the log.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from recordgen.console import logs
from recordgen.console.terminal import aligned, escaped, one_line
from recordgen.conversion.printed_tables import (
    details_noun,
    split_changes,
    value_words,
    vocabulary_words,
)
from recordgen.core.dataset.lint import ERROR, WARNING, only_level
from recordgen.core.rows.row import is_content_uri, is_worth_naming
from recordgen.formats.image_root import missing_hint
from recordgen.messages import counted, listed, megabytes, shortened
from recordgen.messages.masking import masked
from recordgen.registry import FORMATS
from recordgen.rejects import FOUND_BY_NAME, place_of
from recordgen.storage import is_http
from recordgen.storage.access import unreachable_text
from recordgen.tasks.suiting import remedies_of

if TYPE_CHECKING:
    from recordgen.conversion import results
    from recordgen.core.dataset.lint import Lint
    from recordgen.core.dataset.manifest import Dataset
    from recordgen.features import FeatureSpec
    from recordgen.formats.detect import Detection
    from recordgen.messages import Shown
    from recordgen.rejects import Finding, Reject

CLASSES_SHOWN = 20
_FINDINGS_IN_JSON = 10_000


def summary(result: Any, **more: Any) -> str:
    """Return the summary of a result, by the macro of its class; ``more`` are its arguments."""
    from recordgen.exports.export import environment  # the help needs no templates

    macros = environment().get_template("summaries.txt", globals=_FUNCTIONS).module
    name = next(kind.__name__ for kind in type(result).__mro__ if hasattr(macros, kind.__name__))
    return str(getattr(macros, name)(result, **more)).removesuffix("\n")


def text_of(result: Shown) -> str:
    """Return the summary of a result, without control characters and without secrets of URLs."""
    return escaped(masked(summary(result)))


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


def planned_table(plan: results.PlanResult) -> list[str]:
    """Return the rows, new shards and bytes of the splits of a plan."""
    rows = [
        (
            name,
            f"{split['rows']:,}",
            f"{split['shards'] - split['first']:,}",
            megabytes(split["bytes"]),
        )
        for name, split in plan.splits.items()
    ]
    return aligned(("split", "rows", "shards", "bytes"), rows)


def _more(count: int, indent: str = "") -> list[str]:
    return [f"{indent}… and {count:,} more"] if count > 0 else []


def by_level(counts: Mapping[str, int]) -> str:
    """Return the number of findings by level and code: ``2 errors (LEAK 2), 1 warning (…)``."""
    levels = {level: only_level(counts, level) for level in (ERROR, WARNING)}
    return ", ".join(
        f"{counted(sum(codes.values()), level)} ({_numbers(codes)})"
        for level, codes in levels.items()
        if codes
    )


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


def lint_json(lint: Lint) -> list[dict[str, Any]]:
    """Return the first findings as JSON."""
    return [item._asdict() for item in islice(lint.findings(), _FINDINGS_IN_JSON)]


def _changed(adjusted: Mapping[str, int]) -> Mapping[str, int]:
    """Return the changes without those that need no line of their own."""
    return {code: count for code, count in adjusted.items() if code != FOUND_BY_NAME}


def noun_of(dataset: Dataset) -> str:
    """Return the word for an example of a dataset, such as ``image``."""
    from recordgen.tasks import TASKS  # loads image decoders, which not all commands need

    # Datasets that were written from Python have no task, and others may need another package.
    return str(TASKS[dataset.task].noun) if dataset.task in TASKS else "example"


def _numbers(counts: Mapping[str, int]) -> str:
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


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _bracketed(text: str) -> str:
    return f" ({text})" if text else ""


def _speed(count: int, noun: str, seconds: float) -> str:
    return f"{seconds:.1f} s, {count / max(seconds, 1e-3):,.0f} {noun}/s"


def _typed(features: Mapping[str, FeatureSpec]) -> str:
    return listed([f"{name} {spec.dtype}" for name, spec in features.items()], str)


#: What the templates use besides a result.
_FUNCTIONS: dict[str, Any] = {
    "bracketed": _bracketed,
    "by_level": by_level,
    "changed": _changed,
    "class_table": class_table,
    "counted": counted,
    "details_noun": details_noun,
    "first_lines": first_lines,
    "formats": FORMATS,
    "found_by_name": FOUND_BY_NAME,
    "is_content_uri": is_content_uri,
    "is_http": is_http,
    "islice": islice,
    "lines": _lines,
    "listed": listed,
    "megabytes": megabytes,
    "missing_hint": missing_hint,
    "more": _more,
    "noun_of": noun_of,
    "numbers": _numbers,
    "one_line": one_line,
    "planned_table": planned_table,
    "quote": shlex.quote,
    "remedies_of": remedies_of,
    "shortened": shortened,
    "speed": _speed,
    "split_changes": split_changes,
    "split_table": split_table,
    "typed": _typed,
    "unreachable_text": unreachable_text,
    "value_words": value_words,
    "vocabulary_words": vocabulary_words,
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
