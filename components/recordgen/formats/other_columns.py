"""Columns below a header that a task would read wrongly or not at all.

    image,label_1,label_2 → 1.jpg,1,0    one-hot labels: the classes 0 and 1
    image,label,fold → 1.jpg,cat,0       the split or the fold by a number

Each function returns the message that names the columns and the remedy, or "".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence, Set
from typing import Any

from recordgen.core.dataset.splits import TRAIN, is_ml_use
from recordgen.core.task.task import Task
from recordgen.formats.by_header import field_at
from recordgen.formats.column_names import NUMBERED_COLUMNS, TEXT_COLUMNS, column_name
from recordgen.formats.field_kinds import NUMBER, is_sentence, mostly, words_of
from recordgen.formats.geometry import geometry_columns, runs_of_numbers
from recordgen.formats.head import Head
from recordgen.formats.label_fields import BETWEEN
from recordgen.formats.missing_files import root_hint
from recordgen.tables.roles import BOX_ROLES
from recordgen.tasks import TASK_OF_TABLES

# A label of all rows, which is no column.
_QUOTED_LABEL = "'…'"

_NO_LABEL = frozenset({"id", "width", "height"})

FLAGS = frozenset({"0", "1", "0.0", "1.0"})

_SPLIT_NUMBER = re.compile(r"\d(\.0)?")

# By kind of payload: columns that a task of labels does not read, and the way to be read.
_WHAT = {"image": "boxes, masks or points", "text": "parts of texts, or texts in pairs"}

_REMEDY = {
    "image": (
        "write boxes as columns xmin, ymin, xmax and ymax, or name a column of lists as xyxy or "
        "xywh, with the width and height of the image if they are in pixels"
    ),
    "text": "write entities as JSONL, and both texts of a pair into one column",
}

# Columns of texts that belong to another text, as in GLUE's pairs.
_SECOND_TEXTS = frozenset(
    {"question", "query", "context", "passage", "answer", "premise", "hypothesis"}
    | {"sentence1", "sentence2", "text1", "text2", "text_a", "text_b", "question1", "question2"}
)

# Words of columns that are likely to hold labels.
_LABEL_WORDS = frozenset(
    {"label", "labels", "class", "classes", "category", "target", "tag", "tags", "species", "breed"}
)
_TAG = re.compile(r"O|[BIESLU]-\S+")
OFFSETS = frozenset({"start", "end", "start_offset", "end_offset", "offset", "length"})


def of_header(
    head: Head,
    columns: Mapping[str, Sequence[int]],
    task: type[Task],
    *,
    is_chosen: bool,
    labelled: str = "",
) -> str:
    """Return the message for columns that a task of labels would read wrongly or not at all.

    Args:
        head: the rows below a header.
        columns: the indices of the columns by role.
        task: the task of the rows.
        is_chosen: the user has set the task or named columns: others are ignored on purpose.
        labelled: another file of the source with a column of labels, if there is one.
    """
    used = {at for found in columns.values() for at in found}
    named = [at for at, name in enumerate(head.names) if name.strip() and at not in used]
    others = [] if is_chosen else named
    labels = columns["label"]
    if not head.classes and (names := _flag_columns(head, labels)):
        example = f"{_subject(head, columns)},label={BETWEEN.join(names)}"
        return (
            f"{head.where}: {', '.join(names):.200} hold 0 and 1, as one-hot labels do; if these "
            f"are the names of classes, use --columns {shlex.quote(example)}, or write a column "
            f"label with the names of the classes that are 1"
        )
    lost = _lost_columns(head, others, task)
    example = _other_columns(head, columns, [at for at in others if at not in lost])
    if lost:
        names = [head.names[at] for at in lost]
        return (
            f"{head.where}: these columns look like {_WHAT[task.kind]}, which {task.name} does not "
            f"read: {', '.join(names):.200}; {_REMEDY[task.kind]}; to ignore them, name the "
            f"others: --columns {example}"
        )
    if others and not labels:
        bare = shlex.quote(_subject(head, columns)) + ("" if labelled else " --labels none")
        paths = [field_at(line.fields, at) for at in columns["path"] for line in head.lines]
        remedy = f"convert {labelled} alone"
        if not labelled:
            remedy = f"name it: --columns {example}{root_hint(paths, head.path)}"
        return (
            f"{head.where}: no column is known to hold labels ({','.join(head.names):.200}); "
            f"{remedy}, or use --columns {bare} if the rows have no labels"
        )
    return ""


def of_split(
    head: Head, columns: Mapping[str, Sequence[int]], *, is_chosen: bool, group: str = ""
) -> str:
    """Return the message for a column that says the split or the fold by numbers.

    Args:
        head: the rows below a header.
        columns: the indices of the columns by role.
        is_chosen: the user has named columns: those without a role are ignored on purpose.
        group: the name of the column of groups.
    """
    is_known = is_chosen or columns["split"]
    for at, name in enumerate(head.names):
        is_split = at in columns["split"]
        if not is_split and (is_known or name == group or not names_split(name)):
            continue
        values = {field_at(line.fields, at).lower() for line in head.lines} - {""}
        if problem := numbered_split(name, values):
            ignoring = "rename it"
            if not is_split:
                ignoring = f"name the others: --columns {_other_columns(head, columns, [])}"
            return f"{head.where}: {problem}, in a column split; to ignore it, {ignoring}"
    return ""


def names_split(name: str) -> bool:
    """Return whether a column has the name of a split, of folds, or of a flag: ``is_valid``."""
    known = column_name(name)
    word = known.removeprefix("is_")
    return known in NUMBERED_COLUMNS or (is_ml_use(word) and known != TRAIN)  # a class of vehicles


def numbered_split(name: str, values: Set[str]) -> str:
    """Return what is wrong with a column whose values number splits or folds, or are flags."""
    is_numbered = all(map(_SPLIT_NUMBER.fullmatch, values)) or values <= {"true", "false"}
    if not values or not is_numbered:
        return ""
    return (
        f"the column {name!r} names splits or folds by {', '.join(sorted(values))}; write TRAIN, "
        f"VALIDATION or TEST instead"
    )


def _flag_columns(head: Head, labels: Sequence[int]) -> list[str]:
    """Return the names of the columns of labels that hold 0 and 1, one for each class."""
    rows = [line.fields for line in head.lines]
    values = {at: [f for row in rows if (f := field_at(row, at))] for at in labels}
    flags = [at for at in labels if values[at] and FLAGS.issuperset(values[at])]
    return [head.names[at] for at in flags] if len(flags) == len(labels) > 1 else []


def _lost_columns(head: Head, others: Sequence[int], task: type[Task]) -> list[int]:
    """Return the columns that annotators have filled, but that a task of labels does not read."""
    rows = [line.fields for line in head.lines]
    if task.kind != "image":
        found = [at for at in others if column_name(head.names[at]) in OFFSETS]
        second = [at for at in others if column_name(head.names[at]) in _SECOND_TEXTS]
        second = [at for at in second if mostly(is_sentence, [field_at(row, at) for row in rows])]
        return second or (found if len(found) > 1 else [])
    shapes = {*geometry_columns(head.names, rows, others)}
    shapes.update(*runs_of_numbers(head.names, rows, others))
    return sorted(shapes)


def _other_columns(head: Head, columns: Mapping[str, Sequence[int]], others: Sequence[int]) -> str:
    """Return the value of ``--columns`` with the payload and the label, known or likely."""
    shown = [_subject(head, columns)]
    shown += [f"label={head.names[at]}" for at in columns["label"][:1]]
    if not columns["label"]:
        rows = [line.fields for line in head.lines]
        shown.append(f"label={likely_label(head.names, rows, others)}")
    return shlex.quote(",".join(shown))


def likely_label(names: Sequence[str], rows: Sequence[Sequence[str]], others: Sequence[int]) -> str:
    """Return the name of the column that is likely to hold labels, or "…" if none is.

    Its name says so, or it is the only one, or the first whose values repeat and are not numbers.
    """
    others = [at for at in others if names[at] and column_name(names[at]) not in _NO_LABEL]
    if len(others) == 1:
        at = others[0]
        return "…" if mostly(is_sentence, [field_at(row, at) for row in rows]) else names[at]
    named = [at for at in others if not _LABEL_WORDS.isdisjoint(words_of(names[at]))]
    for at in others:
        values = [value for row in rows if (value := field_at(row, at))]
        repeat = 1 < len(set(values)) <= len(values) / 2
        if repeat and not mostly(NUMBER.fullmatch, values):
            named.append(at)
    return names[named[0]] if named else "…"


def of_spans(head: Head) -> str:
    """Return the message for a table whose rows are spans of texts, or tokens and their tags."""
    names = {column_name(name) for name in head.rows[0]}
    if {"start", "end"} <= names and names & TEXT_COLUMNS:
        return (
            f"{head.where}: the columns start and end give parts of texts; {_REMEDY['text']}, or "
            f"use --task {TASK_OF_TABLES} for a table"
        )
    columns = zip(*(row for row in head.rows[1:] if len(row) == len(head.rows[0])), strict=True)
    for name, values in zip(head.rows[0], columns, strict=False):
        if all(map(_TAG.fullmatch, values)) and any(value != "O" for value in values):
            return (
                f"{head.where}: the column {name!r} holds tags of tokens; write each token and its "
                f"tag on a line of a file .conll, and a blank line after each sentence, or use "
                f"--task {TASK_OF_TABLES} for a table"
            )
    return ""


def _subject(head: Head, columns: Mapping[str, Sequence[int]]) -> str:
    """Return the part of ``--columns`` that names the payload: ``path=image``."""
    role = "text" if columns["text"] else "path"
    return ",".join(f"{role}={head.names[at]}" for at in columns[role][:1])


def of_boxes(
    head: Head, columns: Mapping[str, Sequence[int]], task: type[Task], *, is_chosen: bool
) -> str:
    """Return the message for geometry beside the columns of boxes; see :func:`of_header`."""
    used = {at for found in columns.values() for at in found}
    others = [at for at, name in enumerate(head.names) if at not in used and name not in head.boxes]
    found = geometry_columns(head.names, [line.fields for line in head.lines], others)
    hidden = BOX_ROLES if head.boxes else ()  # they are made
    roles = [
        f"{role}={head.names[at]}"
        for role, where in columns.items()
        for at in where
        if role not in hidden
    ]
    roles += ["=".join(head.boxes)] if head.boxes else []
    if not (is_chosen or columns["label"] or not columns["xmin"]):
        named = [head.names[at] for at in others if at not in found and head.names[at].strip()]
        roles.append(f"label={named[0] if len(named) == 1 else _QUOTED_LABEL}")
        paths = [field_at(line.fields, at) for at in columns["path"] for line in head.lines]
        shown = ",".join(name for name in head.names if name not in hidden)
        return (
            f"{head.where}: no column is known to hold the labels of the boxes ({shown:.200}); "
            f"name it, or write one label for all boxes in single quotes, label={_QUOTED_LABEL}: "
            f"--columns {shlex.quote(','.join(roles))}{root_hint(paths, head.path)}"
        )
    if is_chosen or not found or task.kind != "image":
        return ""
    return (
        f"{head.where}: these columns look like boxes, masks or points in a form that {task.name} "
        f"does not read: {', '.join(head.names[at] for at in found):.200}; to ignore them, name "
        f"the others: --columns {shlex.quote(','.join(roles))}"
    )


def are_spans(items: Sequence[Any]) -> bool:
    """Return whether items are spans of a text, as lists or as objects."""
    return all(
        len(item) > 2 and isinstance(item[0], int) and isinstance(item[1], int)
        if isinstance(item, list)
        else isinstance(item, dict) and len(OFFSETS.intersection(item)) > 1
        for item in items
    )
