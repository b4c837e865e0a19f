"""Summaries of conversions, checks and plans, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from recordgen import features
from recordgen.console.terminal import one_line
from recordgen.core.dataset.lint import ERROR, WARNING, only_level
from recordgen.core.rows.row import is_content_uri
from recordgen.core.runs import counters
from recordgen.formats.missing_files import missing_hint
from recordgen.options import AUTO
from recordgen.quoting import megabytes, shortened
from recordgen.registry import FORMATS
from recordgen.rejects import FOUND_BY_NAME, place_of
from recordgen.storage import is_http
from recordgen.storage.hosts import unreachable_text
from recordgen.tables.csv_fields import DELIMITERS
from recordgen.tasks.suiting import remedies_of

if TYPE_CHECKING:
    from recordgen.core.dataset.lint import Lint, LintFinding
    from recordgen.core.dataset.manifest import Dataset
    from recordgen.core.shards.intact import Difference
    from recordgen.formats.detect import Detection
    from recordgen.inspection.examples import ListedExample
    from recordgen.inspection.records import Record
    from recordgen.rejects import Finding, Reject
    from recordgen.results import (
        CheckResult,
        ConversionResult,
        PartResult,
        PartsResult,
        PlanResult,
    )

_CLASSES_SHOWN = 20
_FINDINGS_SHOWN = 5
_FINDINGS_IN_JSON = 10_000
_COLUMNS_SHOWN = 12
_CELL_VALUES = 4
_CELL_CHARACTERS = 40


def conversion_summary(result: ConversionResult) -> str:
    """Return the summary of a conversion."""
    dataset = result.dataset
    examples = result.counts[counters.EXAMPLES_WRITTEN]
    done = "Nothing to do: compared" if result.unchanged else "Converted"
    nouns = nouns_of(dataset)
    size = dataset.bytes if result.unchanged else result.counts[counters.SHARD_BYTES]
    lines = [
        f"{done} {examples:,} {nouns} ({megabytes(size)}) in "
        f"{result.seconds:.1f} s, {_rate(examples, result.seconds)} {nouns}/s",
        "",
        *split_table(dataset),
        "",
        *class_table(dataset, f"see {result.output}/dataset.json"),
        *detection_lines(result.detection),
        *row_lines(dataset, result.rejects),
    ]
    if dataset.examples > examples:
        lines.append(f"Appended   to {dataset.examples - examples:,} existing examples")
    if result.kept_shards is not None:
        shards = sum(len(split.shards) for split in dataset.splits.values())
        lines.append(
            f"Resumed    kept {result.kept_shards:,} of {shards:,} shards of an interrupted run"
        )
    lines += lint_lines(
        result.lint, dataset, _FINDINGS_SHOWN, f"{result.output}/lint.jsonl has all"
    )
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


def check_summary(result: CheckResult, *, limit: int = 20, lister: str = "--json") -> str:
    """Return the summary of a check, with the first rejects and findings.

    Args:
        result: the result of the check.
        limit: number of rejects and findings.
        lister: the word for what lists more of them.
    """
    dataset = result.dataset
    lines = [
        f"Checked {dataset.rows.read:,} rows in {result.seconds:.1f} s, "
        f"{_rate(dataset.rows.read, result.seconds)} rows/s: "
        f"{dataset.examples:,} usable, {len(result.rejects):,} rejected",
        "",
        *class_table(dataset, f"{lister} lists all"),
        *detection_lines(result.detection),
        *row_lines(dataset, result.rejects),
        *_first_lines(result.rejects, limit, len(result.rejects), f"{lister} lists all"),
        *([f"Hint       {hint}"] if (hint := missing_hint(result.rejects)) else []),
        *_first_lines(
            result.findings,
            limit,
            sum(_listed(dataset.rows.adjusted).values()),
            f"{lister} lists {len(result.findings):,}; convert writes all to findings.jsonl",
        ),
        *lint_lines(
            result.lint,
            dataset,
            limit,
            f"{lister} lists more; convert writes all to lint.jsonl",
        ),
    ]
    return "\n".join(lines)


def plan_summary(plan: PlanResult, output: str = "", *, lister: str = "--json") -> str:
    """Return the summary of a dry run; ``lister`` is as in :func:`check_summary`."""
    return _plan_summary(plan, "Would convert", f" to {output}" if output else "", lister)


def parts_summary(plan: PartsResult, *, lister: str = "--json") -> str:
    """Return the summary of a run that is planned in parts."""
    filled, parts, output = min(plan.parts, plan.shards), plan.parts, plan.output
    lines = [
        _plan_summary(plan, "Planned", f" in {output}", lister),
        f"Parts      {parts:,}, of which {filled:,} have {plan.shards:,} shards"
        + ("" if filled == parts else "; a smaller --shard-mb makes more shards"),
        f"Next       recordgen parts work {output} PART, for each PART from 0 to {parts - 1}",
        f"At the end recordgen parts commit {output}",
    ]
    return "\n".join(lines)


def part_summary(result: PartResult) -> str:
    """Return the summary of work on a part."""
    part = f"part {result.part} of {result.parts}"
    if result.was_done:
        return f"Nothing to do: {part} {'is finished' if result.shards else 'has no shards'}"
    return f"Wrote {part}: {result.shards:,} shards in {result.seconds:.1f} s"


def _plan_summary(plan: PlanResult, verb: str, place: str, lister: str) -> str:
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
        *_adjusted_lines(
            plan.adjusted, plan.detection.options.image_root if plan.detection else ""
        ),
        "",
        *detection_lines(plan.detection),
        *_first_lines(plan.rejects, _CLASSES_SHOWN, len(plan.rejects), f"{lister} lists all"),
    ]
    return "\n".join(lines)


def detection_lines(detection: Detection | None) -> list[str]:
    """Return the detected task, format and columns of a source, and some of its rows."""
    if detection is None:
        return []
    task, reason = detection.options.task, detection.reason
    lines = [f"Task       {task}{f' ({reason})' if reason else ''}"]
    if (found := format_of(detection)) != AUTO:
        lines.append(f"Format     {found}")
    if detection.columns:
        columns = [f"{name} = {role}" for name, role in detection.columns[:_COLUMNS_SHOWN]]
        more = len(detection.columns) - len(columns)
        given = detection.options.format
        name = "Columns" if given == AUTO else FORMATS[given].heading  # a DataFrame has no format
        lines.append(f"{name:<10} {', '.join(columns)}{f', and {more} more' if more else ''}")
    if detection.named_splits:
        lines.append(f"Splits     {_named_splits(detection.named_splits)}")
    if root := detection.options.image_root:
        exact = ", which lists no files: paths must be exact" if is_http(root) else ""
        lines.append(f"Images     below {root}{exact}")
    for number, row in enumerate(detection.rows):
        lines.append(f"{'' if number else 'Read as':<10} {one_line(str(row))}")
    return lines


def _named_splits(named: Sequence[tuple[str, str]]) -> str:
    """Return the splits in names of files: ``train by the name of train.csv``."""
    shown = [f"{split} by the name of {path}" for path, split in named[:_COLUMNS_SHOWN]]
    more = f", and {len(named) - len(shown)} more" if len(named) > len(shown) else ""
    return f"{', '.join(shown)}{more} (--split names=no: assigned)"


def format_of(detection: Detection) -> str:
    """Return a format in words: ``csv, separated by commas, no header``."""
    if detection.delimiter is None or detection.dialect is None:
        return detection.options.format
    header = {True: ", with a header", False: ", no header", None: ""}[detection.header]
    special = f", {detection.dialect}" if str(detection.dialect) else ""
    return f"csv, separated by {DELIMITERS[detection.delimiter]}{special}{header}"


def plan_json(plan: PlanResult) -> dict[str, Any]:
    """Return a dry run as JSON."""
    return {
        "detection": None if plan.detection is None else plan.detection.to_json(),
        "splits": plan.splits,
        "labels": plan.vocabulary.names,
        "label_kind": plan.vocabulary.kind,
        "read": plan.read,
        "rows": plan.rows,
        "bytes": plan.bytes,
        "duplicates": plan.duplicates,
        "merged": plan.merged,
        "adjusted": plan.adjusted,
        "dropped": plan.dropped,
        "existing": plan.existing,
        "rejects": [item._asdict() for item in plan.rejects],
    }


def records_table(records: Sequence[Record]) -> str:
    """Return one line per record, and where images were written."""
    if any(features.IMAGE_ENCODED in record.features for record in records):
        lines = _image_table(records)
    else:
        names = sorted({name for record in records for name in record.features})
        header = ("#", *names)
        rows = [
            (str(record.index), *(_cell(record.to_json().get(name, "")) for name in names))
            for record in records
        ]
        lines = aligned(header, rows, left=tuple(range(1, len(header))))
    lines += [f"wrote {record.image_file}" for record in records if record.image_file]
    return "\n".join(lines)


def examples_table(examples: Sequence[ListedExample], count: int) -> str:
    """Return a table of the first of ``count`` examples, each followed by its findings."""
    rows = [
        (place_of(item.source, item.line, item.uri), item.split, _some(item.labels), item.uri)
        for item in examples
    ]
    lines = aligned(("row", "split", "labels", "uri"), rows, left=(0, 1, 2, 3)) if rows else []
    listed = lines[:1]
    for example, line in zip(examples, lines[1:], strict=True):
        listed.append(line)
        listed += [f"    {item.code} {item.message}" for item in example.findings]
    if count > len(examples):
        listed.append(f"… and {count - len(examples):,} more (--num, --json)")
    return "\n".join([*listed, f"{count:,} examples"])


def _image_table(records: Sequence[Record]) -> list[str]:
    """Return a table of images with their labels, or with their boxes if any image has boxes."""
    names, cells = ("label", "text"), _label_cells
    if any(features.BBOX[0] in record.features for record in records):
        names, cells = ("boxes", "by label"), _box_cells
    header = ("#", "source id", "format", "size", "bytes", *names)
    rows = [(*_image_cells(record), *cells(record)) for record in records]
    return aligned(header, rows, left=(1, 2, 6))


def _image_cells(record: Record) -> tuple[str, ...]:
    shown = record.to_json()
    image = record.features.get(features.IMAGE_ENCODED, b"")
    return (
        str(record.index),
        str(shown.get(features.IMAGE_SOURCE_ID, "")),
        str(shown.get(features.IMAGE_FORMAT, "")),
        f"{shown.get(features.IMAGE_WIDTH, '?')}×{shown.get(features.IMAGE_HEIGHT, '?')}",
        f"{len(image):,}",
    )


def _label_cells(record: Record) -> tuple[str, ...]:
    shown = record.to_json()
    found = (
        shown.get(name, "") for name in (features.IMAGE_CLASS_LABEL, features.IMAGE_CLASS_TEXT)
    )
    return tuple(_some(value) if isinstance(value, list) else str(value) for value in found)


def _box_cells(record: Record) -> tuple[str, ...]:
    """Return the number of an image's boxes, in total and by label, most frequent first."""
    shown = record.to_json()
    labels = shown.get(features.IMAGE_OBJECT_TEXT) or shown.get(features.IMAGE_OBJECT_LABEL, [])
    counts = Counter(labels).most_common()
    by_label = _some([f"{count:,}× {label}" for label, count in counts])
    return f"{len(shown.get(features.BBOX[0], [])):,}", by_label


def _some(values: Sequence[object]) -> str:
    """Return the first values as text, and the number of values if there are more."""
    first = ", ".join(map(str, values[:_CELL_VALUES]))
    return first if len(values) <= _CELL_VALUES else f"{first}, … {len(values)} values"


def _cell(value: object) -> str:
    if isinstance(value, list) and len(value) > _CELL_VALUES:
        return f"[{_some(value)}]"
    return shortened(" ".join(str(value).split()), _CELL_CHARACTERS)


def reject_lines(rejects: Sequence[Reject], limit: int) -> list[str]:
    """Return the first rejects, each as ``file:line: code: message``."""
    return _first_lines(rejects, limit, len(rejects), "recordgen check --json lists all")


def _first_lines(
    items: Sequence[Reject | Finding], limit: int, count: int, where: str
) -> list[str]:
    """Return the first of ``count`` rejects or findings as lines; ``where`` tells where all are."""
    lines = [
        one_line(
            f"{place_of(item.source, item.line, item.uri)}: {item.code}: {item.message}"
            + (f" [{item.uri}]" if is_worth_naming(item) else "")
        )
        for item in items[:limit]
    ]
    if count > limit:
        lines.append(f"… and {count - limit:,} more ({where})")
    return lines


def lint_lines(lint: Lint | None, dataset: Dataset | None, limit: int, where: str) -> list[str]:
    """Return the number of findings by code, and the first findings about examples."""
    if lint is None or not lint.counts:
        return []
    lines = finding_counts(lint.counts)
    remedies = {code: remedies_of(code, dataset) for code in lint.counts}
    lines += [f"Remedy     {code}: {remedy}" for code, remedy in remedies.items() if remedy]
    about_rows = sum(lint.counts.values()) - len(lint.about_all)
    first = (item for item in lint.findings() if item.source)
    lines += [one_line(f"{item.level} {item}") for item in islice(first, limit)]
    if about_rows > limit:
        lines.append(f"… and {about_rows - limit:,} more ({where})")
    return lines


def finding_counts(counts: Mapping[str, int]) -> list[str]:
    """Return a line with the number of findings by level and code, or no line without any."""
    levels = {level: only_level(counts, level) for level in (ERROR, WARNING)}
    shown = [f"{sum(c.values()):,} {level}s{_detail(c)}" for level, c in levels.items() if c]
    return [f"Findings   {', '.join(shown)}"] if shown else []


def lint_json(lint: Lint | None) -> list[dict[str, Any]]:
    """Return the first findings as JSON."""
    findings = iter(()) if lint is None else lint.findings()
    return [item._asdict() for item in islice(findings, _FINDINGS_IN_JSON)]


def is_worth_naming(item: Reject | Finding | LintFinding) -> bool:
    """Return whether a uri adds information to the message and the line."""
    is_named = item.source.endswith("/") or item.uri in item.message
    return not is_named and not is_content_uri(item.uri)


def _rate(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-3):,.0f}"


def split_table(dataset: Dataset) -> list[str]:
    """Return the examples, shards and bytes of the splits."""
    rows = [
        (name, f"{split.examples:,}", f"{len(split.shards):,}", megabytes(split.bytes))
        for name, split in dataset.splits.items()
    ]
    return aligned(("split", "examples", "shards", "bytes"), rows)


def class_table(dataset: Dataset, where: str) -> list[str]:
    """Return the examples of the first classes; ``where`` tells where all classes are."""
    counts: dict[str, Mapping[str, int]] = {
        name: split.labels for name, split in dataset.splits.items()
    }
    labels = [name for name in dataset.labels if any(c.get(name) for c in counts.values())]
    if not labels:
        return []
    rows = [
        (label, *(f"{split.get(label, 0):,}" for split in counts.values()))
        for label in labels[:_CLASSES_SHOWN]
    ]
    lines = aligned(("class", *counts), rows)
    if len(labels) > _CLASSES_SHOWN:
        lines.append(f"… and {len(labels) - _CLASSES_SHOWN:,} more classes ({where})")
    return [*lines, ""]


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
    lines = [f"Rows       {rows.read:,} read, {rows.examples:,} examples{more}"]
    lines += _adjusted_lines(rows.adjusted, dataset.options.get("image_root", ""))
    lines.append(f"Rejects    {rows.rejects:,}{_detail(rows.rejected)}")
    if hosts := unreachable_text(rejects):
        lines.append(f"No answer  {one_line(hosts)}")
    if dataset.reencoded:
        total = sum(dataset.reencoded.values())
        lines.append(f"Re-encoded {total:,}{_detail(dataset.reencoded)}")
    if dataset.psnr:
        measured = "PSNR       {mean_db} dB, the mean of {images:,} encoded images"
        lines.append(measured.format(**dataset.psnr))
    lines += [f"Warning    {one_line(text)}" for text in dataset.warnings]
    return lines


def _adjusted_lines(adjusted: Mapping[str, int], root: str) -> list[str]:
    """Return the numbers of the changes in rows; ``root`` is where their paths start."""
    changed, by_name = _listed(adjusted), adjusted.get(FOUND_BY_NAME)
    lines = [f"Images     {by_name:,} paths found below {root} by name"] if by_name else []
    return [*lines, f"Adjusted  {_detail(changed)}"] if changed else lines


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
    if not counts:
        return ""
    return f" ({', '.join(f'{name} {count:,}' for name, count in counts.items())})"


def aligned(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)
) -> list[str]:
    """Return the lines of a table; columns in ``left`` are left-aligned, the others right."""
    cells = [tuple(map(one_line, row)) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
