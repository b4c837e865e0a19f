"""What import files are: their format, and the task that their first lines are about."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from typing import Protocol

from recordgen.errors import UsageError
from recordgen.options import AUTO, ConvertOptions
from recordgen.rows import Row
from recordgen.sources import automl_csv, formats_of
from recordgen.sources.automl_jsonl import parse_object
from recordgen.sources.iob import is_of_sentences
from recordgen.sources.lines import open_lines
from recordgen.tasks import (
    TASKS,
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    Tabular,
    TextEntities,
)
from recordgen.tasks.task import AnnotationError

# Enough to meet what is rare, and nothing beside what is read later.
_FILES_LOOKED_AT = 16
_LINES_LOOKED_AT = 10_000

# A comma too many is a mistake in its line and makes no other task of the file.
_LEAST_SHARE = 0.2

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


# What to do about a format that a task does not come in.
_INSTEAD = {
    (TextEntities.name, "csv"): "; of a list of JSONL files, name these files themselves",
}


class File(Protocol):
    """An import file, as :class:`recordgen.sources.ImportFile` has it."""

    @property
    def path(self) -> str:
        """Local path or URL; of a folder, it ends with ``/``."""


@dataclass(frozen=True)
class Finding:
    """What was decided.

    Attributes:
        options: as they were given, with task and format decided.
        reason: which lines say so; empty if nothing had to be found out.
    """

    options: ConvertOptions
    reason: str


def decide(files: Sequence[File], options: ConvertOptions) -> Finding:
    """Find out the format and the task of import files, as far as the options leave them open.

    Raises:
        UsageError: the files have different formats, or their lines read as different tasks.
        SourceError: a file is missing or cannot be read, or is no table where it must be one.
        StorageError: storage failed.
    """
    reasons = []
    if options.input_format == AUTO:
        options = replace(options, input_format=_decide_format(files, options.task))
    if options.task == AUTO:
        task, reason = _decide_task(files, options.input_format)
        options = replace(options, task=task)
        reasons.append(reason)
    if options.input_format == "folder" and options.task != ImageClassification.name:
        raise UsageError(
            f"a folder of images gives one label per image: its task is "
            f"{ImageClassification.name} (got {options.task})"
        )
    if options.input_format not in (formats := formats_of(options.task)):
        hint = _INSTEAD.get((options.task, options.input_format), "")
        raise UsageError(
            f"{options.task} comes as {', '.join(formats)} (got the format {options.input_format})"
            f"{hint}"
        )
    if TASKS[options.task].kind == Tabular.kind:
        from recordgen.sources.table_columns import find_table  # Arrow is not needed for others

        options = replace(options, columns=find_table(files, options).to_json())
    return Finding(options, ", ".join(reasons))


def _decide_format(files: Sequence[File], task: str) -> str:
    formats: dict[str, str] = {}
    for file in files:
        formats.setdefault(_format_of(file.path, task), file.path)
    if len(formats) > 1:
        read = " and ".join(f"{path} as {name}" for name, path in formats.items())
        raise UsageError(f"import files must be of one format (got {read}); convert them apart")
    return next(iter(formats))


def _format_of(path: str, task: str) -> str:
    """Return the format of an import file: by the task and the name, then by the first line."""
    if task == TextEntities.name and (path.endswith("/") or is_of_sentences(path)):
        return "iob"
    if path.endswith("/"):
        return "folder"
    if path.lower().endswith(".csv"):
        return "csv"
    if path.lower().endswith(_JSON_SUFFIXES):
        return "jsonl"
    with open_lines(path) as lines:
        first = next((line for line in lines if line.strip()), b"")
    return "jsonl" if first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") else "csv"


def _decide_task(files: Sequence[File], input_format: str) -> tuple[str, str]:
    if input_format == "iob":
        return TextEntities.name, f"{files[0].path}: sentences and their tags"
    if input_format == "folder":
        return ImageClassification.name, f"{files[0].path}: a folder of images"
    look = {"csv": _look_at_csv, "jsonl": _look_at_jsonl}[input_format]
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for file in files[:_FILES_LOOKED_AT]:
        for task, reason in look(file.path):
            first.setdefault(task, reason)
            counts[task] += 1
    plain = ImageClassification.name
    read = [
        task
        for task, count in counts.items()
        if task != plain and count >= _LEAST_SHARE * counts.total()
    ]
    if len(read) > 1:
        readings = "; ".join(f"{task}: {first[task]}" for task in read)
        raise UsageError(
            f"the import files read as more than one task ({readings}); say --task, and keep the "
            f"rows of each in files of their own"
        )
    if read:
        return read[0], first[read[0]]
    return plain, first.get(plain) or f"{files[0].path}: no line has an annotation"


class _Fields(ImageMultiLabel):
    """Keeps all fields behind the path as they are."""

    def from_fields(self, fields: Sequence[str], adjusted: Counter[str]) -> str | None:
        return json.dumps(list(fields)) if fields else None


def _look_at_csv(path: str) -> Iterator[tuple[str, str]]:
    """Yield (task, reason) of lines that tell."""
    with open_lines(path) as lines:
        some = islice(lines, _LINES_LOOKED_AT)
        blank, first = 0, b""
        for first in some:
            if first.strip():
                break
            blank += 1
        columns = automl_csv.split_line(first, path, blank + 1)
        if isinstance(columns, list) and ObjectDetection.has_header(columns):
            yield ObjectDetection.name, f"{path}:{blank + 1} names the columns of a box"
            return
        rows = automl_csv.parse_lines(
            chain(repeat(b"", blank), [first], some),
            source=path,
            task=_Fields(),
            adjusted=Counter(),
        )
        for row in rows:
            if isinstance(row, Row) and row.annotation is not None:
                fields = json.loads(row.annotation)
                if ObjectDetection.has_box(fields):
                    yield ObjectDetection.name, f"{path}:{row.line} has a box"
                elif sum(map(bool, fields)) > 1:
                    yield (
                        ImageMultiLabel.name,
                        f"{path}:{row.line} has {sum(map(bool, fields))} labels",
                    )
                else:
                    yield ImageClassification.name, f"{path}:{row.line} has one label"


def _look_at_jsonl(path: str) -> Iterator[tuple[str, str]]:
    """Yield (task, reason) of lines that tell."""
    with open_lines(path) as lines:
        for number, raw in enumerate(islice(lines, _LINES_LOOKED_AT), start=1):
            try:
                record = parse_object(raw)
            except AnnotationError:
                continue  # whoever reads the rows will say so
            for task in (ImageClassification, ImageMultiLabel, ObjectDetection):
                key = task.json_keys[0]
                if record.get(key):
                    yield task.name, f"{path}:{number} has {key}"
