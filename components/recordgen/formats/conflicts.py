"""Signs that rows may be read wrongly, each with the option that settles it.

Labels may really be splits, numbers, lists or parts of texts; columns may be in another order; two
columns may hold the label. Given options are not questioned.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches

from recordgen.core.dataset.splits import ML_USE_WORDS, PUBLISHED_WORDS, is_ml_use
from recordgen.core.task.annotations import SEVERAL
from recordgen.core.task.task import Task
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    column_name,
    find_columns,
    find_path,
    find_split,
)
from recordgen.formats.field_kinds import BRACKETED, NUMBER, ends_sentence, kind_of
from recordgen.formats.geometry import geometry_columns
from recordgen.formats.header import Given
from recordgen.formats.heads import LINES_AROUND_A_MISTAKE, Head, Line, odd_first_line
from recordgen.formats.other_forms import likely_label, of_bare_labels
from recordgen.formats.row_parser import field_at
from recordgen.options import ConvertOptions
from recordgen.quoting import listed
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import TASKS, ObjectDetection, Tabular, VideoClassification

# Tasks with fields at fixed positions, which a split after the path would shift.
_BY_PLACE = (ObjectDetection, VideoClassification)

# Fewer rows may have the same label by chance.
_ROWS_ALIKE = 3

# They join several labels in one field.
_SEPARATORS = ("|", ";", ",", "/", "+", "&", "#", " ")

# A label with this many words is a sentence, or part of one.
_WORDS_OF_A_SENTENCE = 6


def conflicts(heads: Sequence[Head], options: ConvertOptions, *, is_given: bool) -> Iterator[str]:
    """Yield error messages about rows that may be read wrongly; "" where there is no conflict.

    ``is_given``: the user has set the task.
    """
    task, given = TASKS[options.task], Given.of(options)
    subject = "text" if task.kind == "text" else "path"
    for head in heads:
        if not given.settles_header and not head.has_header:
            yield _unsure_header(head, subject)
        if head.header is not None and head.lines:
            yield "" if given.roles else _unnamed_split(head)
            yield _two_label_columns(head)
            yield "" if is_given or "label" in given.roles else _odd_label_column(head, task.name)
            labels = [] if is_given else _values_of_labels(head)
            yield _joined_labels(labels, task) or _fractions(labels, task)
    bare = [line for head in heads if head.header is None for line in head.lines]
    if not bare:
        return
    yield of_bare_labels(bare)
    yield _labels_first(bare)
    yield _split_among_labels(bare, task, subject, whole_column=is_given)
    if is_given or task in _BY_PLACE:
        return
    yield _unquoted_commas(bare) if task.kind == "text" else ""
    labels = [label for line in bare for label in line.labels]
    yield _joined_labels(labels, task) or _fractions(labels, task)
    if odd := _odd_labels(bare, several=task.labelling == SEVERAL):
        yield (
            f"{odd}; use --task {task.name} if they are labels, or name the column of labels: "
            f"--columns {subject}=1,label=2"
        )


# --- headers ------------------------------------------------------------------------------------


def _unsure_header(head: Head, subject: str) -> str:
    """Return the message for a first line that may be a header or a row."""
    if not (odd := odd_first_line(head.rows)):
        return ""
    names, rest = [*head.rows[0], "…"], head.lines[1:]
    at = _subject_column(rest)
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
    return (
        f"{shown}use --columns header=no if it is a row; if it is a header, name its columns, such "
        f"as --columns header=yes,{example}, or use --task {Tabular.name} for a table"
    )


def _values_of_labels(head: Head) -> list[str]:
    found = find_columns(head.header or (), LABEL_COLUMNS)[:1]
    return [label for at in found for line in head.lines if (label := field_at(line.fields, at))]


def _joined_labels(labels: Sequence[str], task: type[Task]) -> str:
    """Return the message for labels that are several joined by one character: ``cat|dog``."""
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
                f"write each in a column of its own, or use --task {task.name} if they are single "
                f"labels"
            )
    return ""


def _odd_label_column(head: Head, task: str) -> str:
    """Return the message for values that can hardly be labels, although the header says so."""
    header = head.header or ()
    found = [n for n in find_columns(header, LABEL_COLUMNS) if n not in head.lists]
    labels = set().union(*(_values(head.lines, n) for n in found))
    odd = _bracketed(labels)
    if odd:
        odd += "; write each into a column of its own: label_1, label_2"
    if labels and all(map(is_ml_use, labels)):
        odd = f"all labels are words of ML_USE ({', '.join(sorted(labels)):.80})"
    return f"{head.where}: {odd}; use --task {task} if they are labels" if odd else ""


def _unnamed_split(head: Head) -> str:
    """Return the message for a header without a split, if a column contains only ML_USE words."""
    header = head.header or ()
    if find_split(header) < len(header):
        return ""
    known = [*find_columns(header, LABEL_COLUMNS), find_path(header)]
    for at in _split_columns(head.lines, [n for n in range(len(header)) if n not in known]):
        words = _values(head.lines, at)
        # "valid" may be a state, and "dev" a team: at least one published word is required.
        if any(word.lower() in PUBLISHED_WORDS for word in words):
            path = find_path(header, PATH_COLUMNS | TEXT_FILE_COLUMNS)
            texts = find_columns(header, TEXT_COLUMNS)
            role, column = ("text", texts[0]) if texts else ("path", path)
            return (
                f"{head.where}: the column {header[at]!r} holds words of ML_USE "
                f"({_some(words)}), which name splits; if it is the split, use --columns "
                f"{shlex.quote(f'split={header[at]}')}; if it is not, name another column: "
                f"--columns {shlex.quote(f'{role}={header[column]}')}"
            )
    return ""


def _two_label_columns(head: Head) -> str:
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


# --- columns by position ------------------------------------------------------------------------


def _labels_first(lines: Sequence[Line]) -> str:
    """Return the message for labels before their texts or paths."""
    at = int(all(line.has_ml_use for line in lines))
    if any(line.has_ml_use > at or kind_of((*line.fields, "", "")[at]) for line in lines):
        return ""
    pairs = [line.fields[at : at + 2] for line in lines if len(line.fields) > at + 1]
    first, second = ({pair[n] for pair in pairs} for n in (0, 1))
    kinds = [kind for _, field in pairs if (kind := kind_of(field))]
    is_sure = len(kinds) > 1 and len(set(kinds)) == 1 and len(kinds) * 2 > len(lines)
    # Misspelt words such as TRIAN are no labels; their rows are rejected one by one.
    misspelt = (get_close_matches(word.lower(), ML_USE_WORDS, n=1, cutoff=0.7) for word in first)
    if not is_sure or len(first) > len(second) or any(misspelt):
        return ""
    role = "text" if kinds[0] == "text" else "path"
    split = "split=1," if at else ""
    if len(first) == len(pairs) and all(map(NUMBER.fullmatch, first)):
        return (
            f"column {at + 1} reads as the number of the row and column {at + 2} as the {role}; "
            f"use --columns {split}{role}={at + 2},label={at + 3}"
        )
    return (
        f"column {at + 1} reads as the label ({_some(first)}) and column {at + 2} as the "
        f"{role}; use --columns {split}label={at + 1},{role}={at + 2}"
    )


def _split_among_labels(
    lines: Sequence[Line], task: type[Task], subject: str, *, whole_column: bool
) -> str:
    """Return the message for words of ML_USE after the path or text.

    A line that begins with ML_USE has its split, so its labels may be such words.
    ``whole_column``: only report a column that contains only such words, next to one of labels.
    """
    bare = [line for line in lines if not line.has_ml_use]
    by_place = task in _BY_PLACE
    columns = range(1, max((len(line.fields) for line in bare), default=0))
    splits = _split_columns(bare, columns[by_place:])
    others = [at for at in columns if at not in splits]
    words = {label for line in bare for label in line.labels if is_ml_use(label)}
    if by_place:
        is_column = is_sure = bool(splits)
    else:
        is_column = len(splits) == 1 and bool(others)
        is_sure = not whole_column or (is_column and len(bare) > 1)
    if not words or not is_sure:
        return ""
    if not is_column:
        return (
            f"labels are words of ML_USE ({_some(words)}), which name splits; use --columns "
            f"{subject}=1,label=2 if they are labels, or begin each row with ML_USE"
        )
    first = _subject_column(bare)
    roles = [f"{subject}={first + 1}", f"split={splits[0] + 1}"]
    roles += [f"label={at + 1}" for at in (0, *others) if at != first]
    remedy = f"use --columns {','.join(roles)}"
    if by_place or any(ObjectDetection.has_box(line.fields[2:]) for line in bare):
        remedy = "begin each row with it: TRAIN,PATH,LABEL,…"
    return (
        f"column {splits[0] + 1} holds words of ML_USE ({_some(_values(bare, splits[0]))}), which "
        f"name splits; if it is the split, {remedy}"
    )


def _odd_labels(lines: Sequence[Line], *, several: bool) -> str:
    """Return what is odd about the labels of lines without a header, or "".

    ``several``: a line may have several labels; otherwise such lines are rejected.
    """
    labelled = [line.labels for line in lines if several or line.labels[1:] == []]
    distinct = {label for labels in labelled for label in labels}
    if odd := _bracketed(distinct):
        return odd
    numbers = {label for label in distinct if NUMBER.fullmatch(label)}
    if numbers and numbers < distinct:
        words = distinct - numbers
        return f"some labels are numbers ({_some(numbers)}) and some are words ({_some(words)})"
    if len(labelled) >= _ROWS_ALIKE:
        always = set(labelled[0]).intersection(*labelled[1:])
        if always and (len(distinct) > 1 or always <= numbers):
            return f"every row has the label {min(always)!r}, so it distinguishes nothing"
    return ""


def _unquoted_commas(lines: Sequence[Line]) -> str:
    """Return the message for labels that are parts of texts with unquoted commas.

    Labels in quotes, and labels of several texts, are labels even if they are sentences.
    """
    counts = Counter(label for line in lines for label in set(line.labels))
    labelled = [line for line in lines if line.labels]
    parts = [
        (line, label)
        for line in labelled
        for label in line.labels
        if not line.is_quoted
        and counts[label] == 1
        and (len(label.split()) >= _WORDS_OF_A_SENTENCE or ends_sentence(label))
    ]
    are_many = len(labelled) >= LINES_AROUND_A_MISTAKE
    several = [line for line in labelled if len(line.labels) > 1]
    if not parts and are_many and len(several) > 1:
        # Several texts share a label, but not the end of a text.
        once = [next((n for n in line.labels if counts[n] == 1), "") for line in several]
        parts = list(zip(several, once, strict=True)) if all(once) else []
    if not parts or (len(parts) == 1 and are_many):
        return ""
    line, label = parts[0]
    return (
        f"{line.where}: the label {label!r:.60} reads as part of a text; quote texts that contain "
        f"commas, and write labels after them; if it is a label, add a header such as "
        f"split,text,label"
    )


# --- columns ------------------------------------------------------------------------------------


def _bracketed(labels: Iterable[str]) -> str:
    """Return a complaint about labels in brackets, or ""."""
    known = list(labels)
    found = [label for label in known if BRACKETED.fullmatch(label)]
    are_many = len(found) * 2 >= len(known) and found
    return f"labels are in brackets, like lists and boxes ({_some(found)})" if are_many else ""


def _fractions(labels: Collection[str], task: type[Task]) -> str:
    """Return the message for labels that are amounts or probabilities, or ""."""
    numbers = (label for label in labels if NUMBER.fullmatch(label))
    found = {label for label in numbers if not float(label).is_integer()}
    if not found or len(found) * 2 < len({*labels}):
        return ""
    return (
        f"labels are fractions ({_some(found)}), such as amounts or probabilities; declare the "
        f"columns with --schema to keep them as numbers, or use --task {task.name} if they are "
        f"classes"
    )


def _split_columns(lines: Sequence[Line], columns: Iterable[int]) -> list[int]:
    """Return the columns whose values are all words of ML_USE."""
    filled = [(at, _values(lines, at)) for at in columns]
    return [at for at, values in filled if values and all(map(is_ml_use, values))]


def _values(lines: Iterable[Line], at: int) -> set[str]:
    """Return the different values of a column, without empty fields."""
    return {line.fields[at] for line in lines if at < len(line.fields)} - {""}


def _subject_column(lines: Sequence[Line]) -> int:
    """Return the column of paths or texts: the first whose fields all read as such, else 0."""
    for at in range(max(len(line.fields) for line in lines)):
        if all(kind_of("".join(line.fields[at : at + 1])) for line in lines):
            return at
    return 0


def _some(values: Iterable[str]) -> str:
    found = sorted(values)
    shown = ", ".join(f"{value:.30}" for value in found[:3])
    return shown if len(found) <= 3 else f"{shown}, …"
