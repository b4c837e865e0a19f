"""What the values of labels, splits and paths in the first rows look like."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.task.task import Task
from recordgen.formats.field_kinds import BRACKETED, NUMBER, kind_of
from recordgen.formats.first_line import Line
from recordgen.formats.header import Given
from recordgen.formats.label_fields import width_of_lists

# They join several labels in one field.
_SEPARATORS = ("|", ";", ",", "/", "+", "&", "#", " ")


def joined_labels(labels: Sequence[str], task: type[Task], given: Given) -> str:
    """Return the message for labels that are several joined by one character: ``cat|dog``."""
    if given.label_separator:
        return ""
    single = {label for label in labels if not BRACKETED.fullmatch(label)}
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
                f"use --label-separator {shlex.quote(separator)}, or --task {task.name} if they "
                f"are single labels"
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
    numbers = (label for label in labels if NUMBER.fullmatch(label))
    found = {label for label in numbers if not float(label).is_integer()}
    if not found or len(found) * 2 < len({*labels}):
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
