"""Signs that rows may be read wrongly, each with the option that settles it.

Labels may really be splits, numbers, lists or parts of texts; columns may be in another order; two
columns may hold the label. Given options are not questioned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from recordgen import tasks
from recordgen.core.dataset.splits import ML_USE_WORDS, is_ml_use
from recordgen.core.task.annotations import SEVERAL
from recordgen.core.task.task import Task
from recordgen.formats.ambiguous_headers import (
    bracketed,
    fractions,
    joined_labels,
    odd_label_column,
    some_of,
    split_columns,
    subject_column,
    two_label_columns,
    unnamed_split,
    unsure_header,
    values_at,
    values_of_labels,
)
from recordgen.formats.field_kinds import NUMBER, ends_sentence, kind_of
from recordgen.formats.first_line import LINES_AROUND_A_MISTAKE
from recordgen.formats.head import Head, Line
from recordgen.formats.header import Given
from recordgen.formats.other_forms import of_bare_labels
from recordgen.options import ConvertOptions
from recordgen.tasks import TASKS

# Fewer rows may have the same label by chance.
_ROWS_ALIKE = 3


# A label with this many words is a sentence, or part of one.
_WORDS_OF_A_SENTENCE = 6


def ambiguities(heads: Sequence[Head], options: ConvertOptions, *, is_given: bool) -> Iterator[str]:
    """Yield error messages about rows that may be read wrongly; "" where there is no conflict.

    ``is_given``: the user has set the task.
    """
    task, given = TASKS[options.task], Given.of(options)
    subject = "text" if task.kind == "text" else "path"
    for head in heads:
        if not given.settles_header and not head.has_header:
            yield unsure_header(head, subject)
        if head.header is not None and head.lines:
            yield "" if given.roles else unnamed_split(head)
            yield two_label_columns(head)
            yield "" if is_given or "label" in given.roles else odd_label_column(head, task.name)
            labels = [] if is_given else values_of_labels(head)
            yield joined_labels(labels, task, given) or fractions(labels, task)
    bare = [line for head in heads if head.header is None for line in head.lines]
    if not bare:
        return
    yield of_bare_labels(bare)
    yield _labels_first(bare)
    yield _split_among_labels(bare, task, subject, whole_column=is_given)
    if is_given or _is_by_place(task):
        return
    yield _unquoted_commas(bare) if task.kind == "text" else ""
    labels = [label for line in bare for label in line.labels]
    yield joined_labels(labels, task, given) or fractions(labels, task)
    if odd := _odd_labels(bare, several=task.labelling == SEVERAL):
        yield (
            f"{odd}; use --task {task.name} if they are labels, or name the column of labels: "
            f"--columns {subject}=1,label=2"
        )


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
        f"column {at + 1} reads as the label ({some_of(first)}) and column {at + 2} as the "
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
    by_place = _is_by_place(task)
    columns = range(1, max((len(line.fields) for line in bare), default=0))
    splits = split_columns(bare, columns[by_place:])
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
            f"labels are words of ML_USE ({some_of(words)}), which name splits; use --columns "
            f"{subject}=1,label=2 if they are labels, or begin each row with ML_USE"
        )
    first = subject_column(bare)
    roles = [f"{subject}={first + 1}", f"split={splits[0] + 1}"]
    roles += [f"label={at + 1}" for at in (0, *others) if at != first]
    remedy = f"use --columns {','.join(roles)}"
    if by_place or any(tasks.ObjectDetection.has_box(line.fields[2:]) for line in bare):
        remedy = "begin each row with it: TRAIN,PATH,LABEL,…"
    return (
        f"column {splits[0] + 1} holds words of ML_USE ({some_of(values_at(bare, splits[0]))}), "
        f"which name splits; if it is the split, {remedy}"
    )


def _odd_labels(lines: Sequence[Line], *, several: bool) -> str:
    """Return what is odd about the labels of lines without a header, or "".

    ``several``: a line may have several labels; otherwise such lines are rejected.
    """
    labelled = [line.labels for line in lines if several or line.labels[1:] == []]
    distinct = {label for labels in labelled for label in labels}
    if odd := bracketed(distinct):
        return odd
    numbers = {label for label in distinct if NUMBER.fullmatch(label)}
    if numbers and numbers < distinct:
        words = distinct - numbers
        return f"some labels are numbers ({some_of(numbers)}) and some are words ({some_of(words)})"
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


def _is_by_place(task: type[Task]) -> bool:
    """Return whether fields have fixed positions, which a split after the path would shift."""
    return task in (tasks.ObjectDetection, tasks.VideoClassification)
