"""Signs that a header, or what stands below it, may be read wrongly, each with its remedy."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from recordgen import storage
from recordgen.core.dataset.splits import PUBLISHED_WORDS, is_ml_use
from recordgen.core.task.task import Task
from recordgen.formats.by_header import field_at
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    column_name,
    find_columns,
    find_path,
    find_split,
)
from recordgen.formats.field_kinds import BRACKETED, IMAGE_SUFFIX, NUMBER, kind_of
from recordgen.formats.first_line import odd_first_line
from recordgen.formats.geometry import geometry_columns
from recordgen.formats.head import Head, Line
from recordgen.formats.header import Given
from recordgen.formats.label_fields import width_of_lists
from recordgen.formats.missing_files import root_hint
from recordgen.formats.other_columns import likely_label
from recordgen.messages import listed
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import TASK_OF_TABLES

# They join several labels in one field.
_SEPARATORS = ("|", ";", ",", "/", "+", "&", "#", " ")


def joined_labels(labels: Sequence[str], task: type[Task], given: Given) -> str:
    """Return the message for labels that are several joined by one character: ``cat|dog``."""
    if given.label_separator:
        return ""
    single = {label for label in {*labels} if not BRACKETED.fullmatch(label)}
    for separator in _SEPARATORS:
        parts = {frozenset(map(str.strip, label.split(separator))) for label in single}
        joined = sorted(sorted(each - {""}) for each in parts if len(each - {""}) > 1)
        times = Counter(part for each in parts for part in each)
        again = [part for each in joined for part in each if times[part] > 1]
        if separator == "|":
            is_sure = bool(joined)
        elif separator in ";,":
            is_sure = len(joined) > 1 and len(again) * 2 >= sum(map(len, joined))
        else:  # they also occur inside single labels
            is_sure = bool(joined) and all(part in single for each in joined for part in each)
        if is_sure:
            example = separator.join(joined[0])
            return (
                f"labels such as {example!r:.80} look like several labels joined by {separator!r}; "
                f"use --label-separator '{separator}', or --task {task.name} if they are single "
                f"labels"
            )
    return ""


def bracketed(labels: Iterable[str]) -> str:
    """Return a complaint about labels in brackets, or ""."""
    known = list(labels)
    found = [label for label in known if BRACKETED.fullmatch(label)]
    if not found or len(found) * 2 < len(known):
        return ""
    way = (
        "; if they are one-hot, name their column in a header, and the classes: --columns "
        "'label=labels[cat|dog|…]'"
    )
    odd = f"labels are in brackets, like lists and boxes ({some_of(found)})"
    return f"{odd}{way}" if width_of_lists(found) > 1 else odd


def fractions(labels: Collection[str], task: type[Task]) -> str:
    """Return the message for labels that are amounts or probabilities, or ""."""
    labels = {*labels}
    numbers = (label for label in labels if NUMBER.fullmatch(label))
    found = {label for label in numbers if not float(label).is_integer()}
    if not found or len(found) * 2 < len(labels):
        return ""
    return (
        f"labels are fractions ({some_of(found)}), such as amounts or probabilities; declare the "
        f"columns with --schema to keep them as numbers, or use --task {task.name} if they are "
        f"classes"
    )


def split_columns(lines: Sequence[Line], columns: Iterable[int]) -> list[int]:
    """Return the columns whose values are all words of ML_USE."""
    filled = [(at, values_at(lines, at)) for at in columns]
    return [at for at, values in filled if values and all(map(is_ml_use, values))]


def values_at(lines: Iterable[Line], at: int) -> set[str]:
    """Return the different values of a column, without empty fields."""
    return {line.fields[at] for line in lines if at < len(line.fields)} - {""}


def subject_column(lines: Sequence[Line]) -> int:
    """Return the column of paths or texts: the first whose fields all read as such, else 0."""
    for at in range(max(len(line.fields) for line in lines)):
        if all(kind_of("".join(line.fields[at : at + 1])) for line in lines):
            return at
    return 0


def some_of(values: Iterable[str]) -> str:
    """Return up to three values as messages show them."""
    found = sorted(values)
    shown = ", ".join(f"{value:.30}" for value in found[:3])
    return shown if len(found) <= 3 else f"{shown}, …"


def unsure_header(head: Head, subject: str) -> str:
    """Return the message for a first line that may be a header or a row."""
    if not (odd := odd_first_line(head.rows)):
        return ""
    names, rest = [*head.rows[0], "…"], head.lines[1:]
    at = subject_column(rest)
    subject = "text" if kind_of((*rest[0].fields, "")[at]) == "text" else subject
    shown = f"{head.where}: this line may be a header: {odd} ({','.join(head.rows[0]):.200}); "
    if at >= len(head.rows[0]):
        return (
            f"{shown}use --columns header=no if it is a row; if it is a header, complete it: it "
            f"names no column {at + 1}, which holds the {subject}"
        )
    first = head.rows[0]
    known = [first[n] for n in find_columns(first, LABEL_COLUMNS)]
    below = [line.fields for line in rest]
    likely = likely_label(first, below, [n for n, _ in enumerate(first) if n != at])
    label = next((name for name in [*known, likely] if name != names[at]), "…")
    example = shlex.quote(f"{subject}={names[at]},label={label}")
    others = [n for n, name in enumerate(first) if name not in (names[at], label)]
    if shapes := geometry_columns(first, below, others):
        return (
            f"{shown}use --columns header=no if it is a row; if it is a header, these columns look "
            f"like boxes, masks or points: {', '.join(first[n] for n in shapes):.200}; write boxes "
            f"as columns xmin, ymin, xmax and ymax, or ignore them: --columns header=yes,{example}"
        )
    paths = (field_at(line.fields, at) for line in rest)
    root = root_hint(paths, head.path) if subject == "path" else ""
    return (
        f"{shown}use --columns header=no if it is a row; if it is a header, name its columns, such "
        f"as --columns header=yes,{example}{root}, or use --task {TASK_OF_TABLES} for a table"
    )


def table_of_images(head: Head) -> str:
    """Return the message for a table whose first column of distinct values names images beside it.

    Numbers alone do not show that they are names: ``id,breed`` above ``7,dingo`` may be either.
    """
    names, below = head.rows[0], head.rows[1:]
    for at, name in enumerate(names):
        values = [field_at(row, at) for row in below]
        is_name = all("." not in value or IMAGE_SUFFIX.search(value) for value in values)
        if not is_name or len(values) < 2 or len(set(values)) < len(values):
            continue
        root = root_hint(values, head.path, in_folder=True) if storage.is_local(head.path) else ""
        label = likely_label(names, below, [n for n, _ in enumerate(names) if n != at])
        example = shlex.quote(f"path={name},label={label}")
        shown = f"{head.where}: the column {name!r} names files of images beside this table; use "
        remedy = (
            f"--columns {example}{root} for these images, or --task {TASK_OF_TABLES} for a table"
        )
        return shown + remedy if root else ""
    return ""


def values_of_labels(head: Head) -> list[str]:
    """Return the filled fields of the first column of labels."""
    found = find_columns(head.header or (), LABEL_COLUMNS)[:1]
    return [label for at in found for line in head.lines if (label := field_at(line.fields, at))]


def odd_label_column(head: Head, task: str) -> str:
    """Return the message for values that can hardly be labels, although the header says so."""
    header = head.header or ()
    found = [
        n
        for n in find_columns(header, LABEL_COLUMNS)
        if n not in head.lists and n not in head.classes
    ]
    labels = set().union(*(values_at(head.lines, n) for n in found))
    odd = bracketed(labels)
    if odd:
        odd += "; write each into a column of its own: label_1, label_2"
    if labels and all(map(is_ml_use, labels)):
        odd = f"all labels are words of ML_USE ({', '.join(sorted(labels)):.80})"
    return f"{head.where}: {odd}; use --task {task} if they are labels" if odd else ""


def unnamed_split(head: Head) -> str:
    """Return the message for a header without a split, if a column contains only ML_USE words."""
    header = head.header or ()
    if find_split(header) < len(header):
        return ""
    known = [*find_columns(header, LABEL_COLUMNS), find_path(header)]
    for at in split_columns(head.lines, [n for n in range(len(header)) if n not in known]):
        words = values_at(head.lines, at)
        # "valid" may be a state, and "dev" a team: at least one published word is required.
        if any(word.lower() in PUBLISHED_WORDS for word in words):
            path = find_path(header, PATH_COLUMNS | TEXT_FILE_COLUMNS)
            texts = find_columns(header, TEXT_COLUMNS)
            role, column = ("text", texts[0]) if texts else ("path", path)
            return (
                f"{head.where}: the column {header[at]!r} holds words of ML_USE "
                f"({some_of(words)}), which name splits; if it is the split, use --columns "
                f"{shlex.quote(f'split={header[at]}')}; if it is not, name another column: "
                f"--columns {shlex.quote(f'{role}={header[column]}')}"
            )
    return ""


def two_label_columns(head: Head) -> str:
    """Return the message for two possible label columns that divide the rows differently.

    The number and the name of a class divide them alike, so either column will do.
    """
    header = head.header or ()
    found = find_columns(header, LABEL_COLUMNS)
    names = {column_name(header[at]): at for at in reversed(found)}
    rows = [tuple(field_at(line.fields, at) for at in names.values()) for line in head.lines]
    if len({len(set(rows)), *(len(set(values)) for values in zip(*rows, strict=True))}) < 2:
        return ""
    shown = [header[index] for index in sorted(names.values())]
    columns = listed(shown, str, between=" and ")
    return (
        f"{head.where}: the columns {columns} may both hold the label, and differ; choose one: "
        f"--columns {shlex.quote(f'label={shown[-1]}')}"
    )
