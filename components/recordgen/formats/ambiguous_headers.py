"""Signs that a header, or what stands below it, may be read wrongly, each with its remedy."""

from __future__ import annotations

import shlex

from recordgen import storage
from recordgen.core.dataset.splits import PUBLISHED_WORDS, is_ml_use
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
from recordgen.formats.field_kinds import IMAGE_SUFFIX, kind_of
from recordgen.formats.field_values import (
    bracketed,
    some_of,
    split_columns,
    subject_column,
    values_at,
)
from recordgen.formats.first_line import odd_first_line
from recordgen.formats.geometry import geometry_columns
from recordgen.formats.heads import Head
from recordgen.formats.missing_files import root_hint
from recordgen.formats.other_columns import likely_label
from recordgen.quoting import listed
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import TASK_OF_TABLES


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
