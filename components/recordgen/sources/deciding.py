"""What import files are: their format, and the task that their first lines are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from recordgen.errors import UsageError
from recordgen.options import AUTO, ConvertOptions
from recordgen.sources import formats_of
from recordgen.sources.clues import PLAIN, clues_of_csv, clues_of_jsonl
from recordgen.sources.iob import is_of_sentences
from recordgen.sources.lines import open_lines
from recordgen.tasks import (
    TASKS,
    ImageClassification,
    Tabular,
    TextEntities,
)

# Enough to meet what is rare.
_FILES_LOOKED_AT = 16

# A comma too many is a mistake in its line and makes no other task of the file.
_LEAST_SHARE = 0.2

# A line about something else is one, too, unless many are.
_LEAST_SHARE_OF_A_FAMILY = 1 / 3

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
    """Find out format, task and columns of import files, as far as the options leave them open.

    Raises:
        UsageError: the files have different formats, or their lines read as different tasks.
        SourceError: a file is missing or cannot be read, or is no table where it must be one.
        StorageError: storage failed.
    """
    finding = decide_task(files, options)
    options = finding.options
    if TASKS[options.task].kind == Tabular.kind:
        from recordgen.sources.table_columns import find_table  # Arrow is not needed for others

        options = replace(options, columns=find_table(files, options).to_json())
    return replace(finding, options=options)


def decide_task(files: Sequence[File], options: ConvertOptions) -> Finding:
    """Find out the format and the task, from the first lines of files.

    Raises: as :func:`decide`.
    """
    reasons = []
    if options.input_format == AUTO:
        options = replace(options, input_format=_decide_format(files, options.task))
    if given := options.of_tables():
        if options.task not in (AUTO, Tabular.name):
            raise UsageError(
                f"{given[0]} is for tables, and the task is {options.task}; leave it out, or say "
                f"--task {Tabular.name}"
            )
        options = replace(options, task=Tabular.name)
        reasons.append(f"{given[0]} is given")
    elif options.task == AUTO:
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
    is_folder = task == TextEntities.name and path.endswith("/")
    if is_folder or (task in (AUTO, TextEntities.name) and is_of_sentences(path)):
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
    clues = {"csv": clues_of_csv, "jsonl": clues_of_jsonl}[input_format]
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    told: Counter[str] = Counter()
    hinted: Counter[str] = Counter()
    for file in files[:_FILES_LOOKED_AT]:
        for clue in clues(file.path):
            first.setdefault(clue.task, clue.reason)
            counts[clue.task] += 1
            (told if clue.is_sure else hinted)[clue.task] += clue.tells
    families = _frequent(_by_family(counts), _LEAST_SHARE_OF_A_FAMILY)
    if len(families) > 1:
        raise _several([_most_frequent(counts, family) for family in families], first)
    family = next(iter(families), "image")
    plain = PLAIN.get(family, "")
    own = _of_family(told, family) or _of_family(hinted, family)
    read = [task for task in _frequent(own, _LEAST_SHARE) if task != plain]
    if len(read) > 1:
        raise _several(read, first)
    task = read[0] if read else plain
    return task, first.get(task) or f"{files[0].path}: no line has an annotation"


def _family(task: str) -> str:
    """Return the kind of what a task is about; entities are in texts."""
    return "text" if task == TextEntities.name else TASKS[task].kind


def _by_family(counts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for task, count in counts.items():
        found[_family(task)] += count
    return found


def _of_family(counts: Mapping[str, int], family: str) -> Counter[str]:
    return Counter({task: n for task, n in counts.items() if n and _family(task) == family})


def _most_frequent(counts: Mapping[str, int], family: str) -> str:
    return max((task for task in counts if _family(task) == family), key=lambda task: counts[task])


def _frequent(counts: Counter[str], share: float) -> list[str]:
    """Return what is counted often enough to be no mistake."""
    return [name for name, count in counts.items() if count >= share * counts.total()]


def _several(tasks: Sequence[str], first: Mapping[str, str]) -> UsageError:
    readings = "; ".join(f"{task}: {first[task]}" for task in tasks)
    return UsageError(
        f"the import files read as more than one task ({readings}); say --task, and keep the rows "
        f"of each in files of their own"
    )
