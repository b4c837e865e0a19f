"""AutoML's rows without a header: ``[ML_USE]``, a path or a text, and its annotation.

TRAIN,gs://bucket/1.jpg,cat         an image and its label
TEST,"Good, and cheap.",praise      a text and its label
1.jpg,10,20,40,60,cat               stops: a box is before its label
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from recordgen import tasks
from recordgen.core.dataset.splits import is_ml_use, near_ml_use
from recordgen.core.task.task import Task
from recordgen.formats.field_kinds import (
    NUMBER,
    field_at,
    is_file,
    is_media,
    likely_kind,
    words_of,
)
from recordgen.formats.head import Candidate, Head, Line
from recordgen.formats.label_fields import IS_CLASS
from recordgen.formats.proposal import some_of, stop
from recordgen.tables.roles import BOX_ROLES

#: Among so many lines, a single one that reads differently is malformed.
LINES_AROUND_A_MISTAKE = 10

# Fewer lines may be alike by chance.
_LINES_ALIKE = 3

# A longer number is no sentiment; Python refuses to read thousands of digits.
_MOST_DIGITS = 19

#: Tasks with several labels read all rows of the tasks with one label, too.
SUBSUMES: Mapping[str, str] = {
    "image_multi_label": "image_classification",
    "text_multi_label": "text_classification",
}


def tasks_of_lines(head: Head) -> Iterator[Candidate]:
    """Yield the task of each of AutoML's rows. Raises: NotUnderstoodError: they are none."""
    lines = [line._replace(kind=_kind(line)) for line in head.lines]
    good = [line for line in lines if line.kind]
    if len(good) * 2 < len(lines) or not good:
        odd = next(line for line in lines if not line.kind)
        is_read = not _is_other(odd.subject)
        problem = f"{odd.subject!r:.60} is no path and no text"
        if not is_read:
            problem += "; separate fields with commas or tabs"
        elif "/" in odd.subject and not odd.labels:
            problem += "; if its folder is its class, pass the folder of the images"
        stop(head, problem, header="no", options=None if is_read else {})
    _check_texts(head, good)
    first = good[0].kind
    yield Candidate(_plain(first).name, "", 0)
    labels = [label for line in good for label in line.labels]
    are_scores = first == "text" and bool(labels) and all(map(is_sentiment, labels))
    for line in good:
        yield from _task_of_line(line, first, are_scores=are_scores)


def _kind(line: Line) -> str:
    """Return the kind of a line; a few words are a text in quotes, or behind ML_USE."""
    if _is_other(line.subject):
        return ""
    is_marked = line.has_ml_use or line.is_quoted
    return line.kind or ("text" if is_marked and likely_kind(line.subject) == "text" else "")


def _is_other(subject: str) -> bool:
    """Return whether a field names a file of rows, or holds several paths or numbers."""
    parts = subject.split()
    are_several = len(parts) > 1 and all(map(_is_path_or_number, parts))
    return are_several or subject.lower().endswith((".jsonl", ".ndjson", ".json"))


def _is_path_or_number(text: str) -> bool:
    return is_media(text) or NUMBER.fullmatch(text) is not None


def _check_texts(head: Head, lines: Sequence[Line]) -> None:
    """Check that a text is in quotes, or follows ML_USE: otherwise all may hold bare commas.

    Raises: NotUnderstoodError.
    """
    texts = [line for line in lines if line.kind == "text" and not is_file(line.subject)]
    are_marked = any(line.has_ml_use or line.is_quoted for line in texts)
    if len(texts) * LINES_AROUND_A_MISTAKE > len(lines) and not are_marked:
        stop(head, "no text is in quotes or follows ML_USE", header="no")


def _task_of_line(line: Line, first: str, *, are_scores: bool) -> Iterator[Candidate]:
    kind = line.kind
    if kind == "video":
        yield Candidate(_plain(kind).name, f"{line.where} names a video, or a list of them")
    elif line.labels:
        task, what = _task_of_fields(line, kind, are_scores=are_scores)
        yield Candidate(task.name, f"{line.where} has {what}")
    elif kind != first:
        yield Candidate(_plain(kind).name, f"{line.where} is one")


def _plain(kind: str) -> type[Task]:
    of_kind = {"text": tasks.TextClassification, "video": tasks.VideoClassification}
    return of_kind.get(kind, tasks.ImageClassification)


def _task_of_fields(line: Line, kind: str, *, are_scores: bool) -> tuple[type[Task], str]:
    count = len(line.labels)
    if kind == "text":
        if count > 1:
            return tasks.TextMultiLabel, f"a text and {count} labels"
        if are_scores:
            remedy = f"use --task {tasks.TextClassification.name} if the numbers are classes"
            return tasks.TextSentiment, f"a text and its sentiment; {remedy}"
        return tasks.TextClassification, "a text and its label"
    if tasks.ObjectDetection.has_box(line.annotation):
        return tasks.ObjectDetection, "a box"
    if count > 1:
        return tasks.ImageMultiLabel, f"{count} labels"
    if is_media(line.labels[0]):
        return tasks.ImageSegmentation, "an image and its mask"
    return tasks.ImageClassification, "one label"


def is_sentiment(label: str) -> bool:
    """Return whether a label is a whole number that AutoML takes for a sentiment."""
    from recordgen.tasks.texts.task import MAX_SENTIMENT  # only rows of texts need it

    is_whole = label.isdecimal() and label.isascii() and len(label) < _MOST_DIGITS
    return is_whole and int(label) <= MAX_SENTIMENT


def check_lines(head: Head, task: Task, *, is_given: bool) -> None:
    """Check that fields behind a path or a text are labels, and only those."""
    numbers = sum(NUMBER.fullmatch(line.subject) is not None for line in head.lines)
    if numbers * 2 > len(head.lines):
        stop(head, "numbers are in the place of paths and texts", header="no")
    first = [line for line in head.lines if not line.has_ml_use and line.place == 1]
    first = [line for line in first if not near_ml_use(line.fields[0])]
    if len(first) * 2 > len(head.lines):
        stop(head, f"{first[0].fields[0]!r:.60} is before the path, and no ML_USE", header="no")
    is_by_place = type(task) in (tasks.ObjectDetection, tasks.VideoClassification)
    labelled = [line.annotation for line in head.lines if line.labels]
    if is_by_place and labelled and sum(map(_is_other_box, labelled)) * 2 > len(labelled):
        stop(head, "four numbers beside a label are no corners as AutoML has them", header="no")
    bare = [line.annotation for line in head.lines if not line.has_ml_use]
    width = max(map(len, bare), default=0)
    for at in range(int(is_by_place), width):
        words = {field_at(fields, at) for fields in bare} - {""}
        if words and all(map(is_ml_use, words)) and (width > 1 or len(words) > 1 or not is_given):
            stop(
                head,
                f"fields behind the first hold {some_of(words)}, which name splits",
                header="no",
            )
    if not is_given:
        _check_several(head, task)
        labels = {label for line in head.lines for label in line.labels}
        if "split" in words_of(posixpath.basename(head.path)) and labels <= {"0", "1", "2"}:
            stop(head, f"the file's name says that {some_of(labels)} are splits", options={})


def _is_other_box(fields: Sequence[str]) -> bool:
    """Return whether four numbers are before a label, or behind it without AutoML's places."""
    numbers = [NUMBER.fullmatch(field) is not None for field in fields]
    is_before = len(fields) > 4 and numbers[:5] == [*[True] * 4, False] and fields[4] != ""
    return is_before or (len(fields) == 5 and all(numbers[1:]))


def _check_several(head: Head, task: Task) -> None:
    """Check that several fields can only be labels: their number differs, and labels recur."""
    counts = Counter(len(line.labels) for line in head.lines if line.labels)
    if type(task).name not in SUBSUMES or counts.total() < _LINES_ALIKE:
        return
    width, most = counts.most_common(1)[0]
    is_fixed = width > 1 and most * LINES_AROUND_A_MISTAKE > counts.total() * 9
    labels = Counter(label for line in head.lines for label in {*line.labels})
    once = sum(count == 1 for count in labels.values()) * 10 > len(labels)
    if is_fixed or (task.kind == "text" and once):
        places = {(label, at) for line in head.lines for at, label in enumerate(line.annotation)}
        is_box = width == len(BOX_ROLES) and all(map(NUMBER.fullmatch, labels))
        repeats = any(len({*line.annotation}) < len(line.annotation) for line in head.lines)
        are_labels = len({label for label, _ in places}) < len(places) and not (is_box or repeats)
        problem = f"up to {max(counts)} fields behind the first may be labels or other columns"
        if labels.keys() <= IS_CLASS.keys():
            stop(head, "fields are 0 and 1, and no header names their classes", options={})
        stop(head, problem, options={"task": task.name} if are_labels else None, header="no")
