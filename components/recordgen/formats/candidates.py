"""Evidence of the task in the first lines of import files: a header, JSON keys, the lines' shape.

A candidate is a task with a line that shows it. Only unmistakable lines count: a name that ends in
``.jpg``, a sentence, a box. A single line among ten or more is a malformed line, not another task.
If two readings remain, :mod:`recordgen.formats.detect` stops the run and asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from recordgen import tasks
from recordgen.core.task.task import Task
from recordgen.errors import SourceError, UsageError
from recordgen.formats import other_columns, other_forms
from recordgen.formats.by_header import field_at
from recordgen.formats.column_checks import first_lines_shown
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    column_name,
    find_columns,
    find_path,
    same_named,
)
from recordgen.formats.field_kinds import (
    IMAGE_SUFFIX,
    IMAGE_WORD,
    filled_at,
    is_media,
    kind_of,
    likely_kind,
)
from recordgen.formats.first_line import LINES_AROUND_A_MISTAKE, is_table
from recordgen.formats.format import Format
from recordgen.formats.head import Candidate, Head, Line
from recordgen.formats.label_fields import separated
from recordgen.formats.one_hot import have_several
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.roles import LABEL_COLUMNS, MASK_COLUMNS, SEGMENT_ROLES
from recordgen.tasks import TASK_OF_TABLES, TASKS

_SENTIMENT_COLUMN = "sentiment"

# By kind of payload: the task of a line without an annotation, and the reason.
_PLAIN: Mapping[str, tuple[str, str]] = {
    "image": ("image_classification", "names an image"),
    "text": ("text_classification", "holds a text"),
    "video": ("video_classification", "names a video, or a list of them"),
}

# Tasks with several labels can read all rows of the tasks with one label.
_SUBSUMES: Mapping[str, str] = {
    "image_multi_label": "image_classification",
    "text_multi_label": "text_classification",
}

# A longer number is no sentiment; Python refuses to read thousands of digits.
_MOST_DIGITS = 19


def settle(readings: Iterable[Candidate]) -> list[Candidate]:
    """Return the remaining readings: several only if lines contradict each other.

    A single line among ten is malformed; a task with several labels reads rows of one label, too.
    """
    counts: Counter[str] = Counter()
    first: dict[str, Candidate] = {}
    found = list(readings)
    for reading in [reading for reading in found if reading.lines] or found[:1]:
        counts[reading.task] += reading.lines
        first.setdefault(reading.task, reading)
    if counts.total() >= LINES_AROUND_A_MISTAKE:
        most = max(counts.values())
        counts = Counter({task: n for task, n in counts.items() if n > 1 or n == most})
    subsumed = {_SUBSUMES.get(task) for task in counts}
    return [
        first[task]._replace(lines=count) for task, count in counts.items() if task not in subsumed
    ]


def candidates_in(
    heads: Sequence[Head], options: ConvertOptions, format_: Format
) -> Iterator[Candidate]:
    """Yield the possible tasks of the files. Raises: UsageError, SourceError."""
    bare: list[Line] = []
    for head in heads:
        if head.header is not None:
            with first_lines_shown(head):
                is_given = options.columns.roles and not head.classes
                where = "--columns" if is_given else head.where
                yield read_header(head, where)
        elif not format_.has_headers:
            from recordgen.formats.object_candidates import of_objects  # lines need none

            yield from of_objects(head)
        elif options.columns.header == AUTO and is_table(head.rows):
            if form := other_columns.of_spans(head):
                raise SourceError(form)
            reason = f"{head.where} names columns, and the lines below fill them"
            yield Candidate(TASK_OF_TABLES, reason, len(head.rows))
            return  # only the first file of a table must have a header
        elif form := other_forms.of_table(head):
            raise SourceError(form)
        else:
            bare += head.lines
    if bare:
        yield from read_lines(bare)


# --- a header -----------------------------------------------------------------------------------


def read_header(head: Head, where: str) -> Candidate:
    """Return the task of rows whose columns have known names.

    Args:
        head: the header in known names, and the rows below it.
        where: the line of the header, or the option that names the columns.

    Raises: UsageError: no known column holds paths or texts, or texts are names of images.
    """
    header, rows = head.header or (), [line.fields for line in head.lines]
    texts = find_columns(header, TEXT_COLUMNS)
    path = find_path(header, PATH_COLUMNS | TEXT_FILE_COLUMNS)
    paths = filled_at(rows, path)
    kinds = set(map(kind_of, paths))
    are_images = any(map(IMAGE_WORD.search, header)) or any(map(IMAGE_SUFFIX.search, paths[:1]))
    of_segments = tasks.VideoClassification.columns
    has_segments = all(find_columns(header, of_segments[role]) for role in SEGMENT_ROLES)
    labels = same_named(header, find_columns(header, LABEL_COLUMNS))
    several = _have_several(head, labels)
    task: type[Task] = tasks.ImageMultiLabel if several else tasks.ImageClassification
    names = "one-hot columns of images" if head.classes else "the columns of images"
    masks = find_columns(header, MASK_COLUMNS)
    if tasks.ObjectDetection.has_header(header):
        task, names = tasks.ObjectDetection, "the columns of a box"
    elif masks and not labels and paths and any(map(is_media, filled_at(rows, masks[0]))):
        task, names = tasks.ImageSegmentation, "the columns of images and masks"
    elif path >= len(header) or (texts and not are_images):
        if texts:
            _check_texts(header, filled_at(rows, texts[0]), where)
            task, names = _task_of_texts(header, rows, several=several)
        elif is_table([header, *rows]):
            task, names = tasks.Tabular, "columns, and the lines below fill them"
        else:
            raise UsageError(
                f"{where}: no known column of paths or texts ({','.join(header):.200}); name the "
                f"columns, such as --columns path={next(filter(None, header), '…')},label=…, or "
                f"use --task {TASK_OF_TABLES} for a table"
            )
    elif (has_segments and not are_images) or kinds == {"video"}:
        task, names = tasks.VideoClassification, "the columns of a segment"
    elif kinds == {"text"} and not are_images:
        task, names = _task_of_texts(header, rows, several=several)
    return Candidate(task.name, f"{where} names {names}", max(1, len(rows)))


def _have_several(head: Head, labels: Sequence[int]) -> bool:
    """Return whether rows have several labels, in columns, lists or fields that are divided."""
    rows = [line.fields for line in head.lines]
    if head.classes:
        return have_several(rows, head.classes)
    if len(labels) > 1 or not head.lists.isdisjoint(labels):
        return True
    values = (field_at(row, at) for row in rows for at in labels)
    return any(len(separated([value], head.label_separator)) > 1 for value in values)


def _check_texts(header: Sequence[str], texts: Sequence[str], where: str) -> None:
    """Check that a column of texts does not contain names of images. Raises: UsageError."""
    files = list(filter(is_media, texts))
    if files and len(files) * 2 >= len(texts):
        raise UsageError(
            f"{where}: the header names a column of texts ({','.join(header):.200}), but it "
            f"contains names of images or videos ({files[0]:.80}); name it image_uri or video_uri, "
            f"or use --columns path=…"
        )


def _task_of_texts(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, several: bool
) -> tuple[type[Task], str]:
    if several:
        return tasks.TextMultiLabel, "the columns of texts and labels"
    named = [at for at, name in enumerate(header) if column_name(name) == _SENTIMENT_COLUMN]
    values = [value for at in named for value in filled_at(rows, at)]
    if values and not find_columns(header, LABEL_COLUMNS) and all(map(_is_sentiment, values)):
        return tasks.TextSentiment, "the columns of texts and sentiments"
    return tasks.TextClassification, "the columns of texts"


# --- lines without a header ---------------------------------------------------------------------


def read_lines(lines: Sequence[Line]) -> Iterator[Candidate]:
    """Yield the readings of lines without a header."""
    first = {line.kind: line.where for line in reversed(lines)}
    plain = settle(
        Candidate(_PLAIN[kind][0], f"{first[kind]} {_PLAIN[kind][1]}", count)
        for kind, count in Counter(line.kind for line in lines if line.kind).items()
    )
    perhaps = {likely_kind(line.subject) for line in ([] if plain else lines)}
    kind = "text" if "text" in perhaps and "image" not in perhaps else "image"
    kind = TASKS[plain[0].task].kind if plain else kind
    if len(plain) > 1 or kind == "video":
        yield from plain
        return
    yield Candidate(_PLAIN[kind][0], "", 0)
    labels = [label for line in lines for label in line.labels]
    # AutoML writes sentiments like this. The reason tells what to do if the numbers are classes.
    are_sentiments = kind == "text" and all(map(_is_sentiment, labels))
    for line in lines:
        if line.labels:
            yield _read_line(line, kind, are_sentiments=are_sentiments)


def _read_line(line: Line, kind: str, *, are_sentiments: bool) -> Candidate:
    count = len(line.labels)
    if kind == "image":
        if tasks.ObjectDetection.has_box(line.annotation):
            return Candidate(tasks.ObjectDetection.name, f"{line.where} has a box")
        if count > 1:
            return Candidate(tasks.ImageMultiLabel.name, f"{line.where} has {count} labels")
        if IMAGE_SUFFIX.search(line.labels[0]):
            return Candidate(
                tasks.ImageSegmentation.name, f"{line.where} has an image and its mask"
            )
        return Candidate(tasks.ImageClassification.name, f"{line.where} has one label")
    if count > 1:
        return Candidate(tasks.TextMultiLabel.name, f"{line.where} has a text and {count} labels")
    if are_sentiments:
        remedy = f"use --task {tasks.TextClassification.name} if the numbers are classes"
        shown = f"{line.where} has a text and its sentiment; {remedy}"
        return Candidate(tasks.TextSentiment.name, shown)
    return Candidate(tasks.TextClassification.name, f"{line.where} has a text and its label")


def _is_sentiment(label: str) -> bool:
    """Return whether a label is a whole number that AutoML takes for a sentiment."""
    from recordgen.tasks.texts.text_sentiment import MAX_SENTIMENT  # only rows of texts need it

    is_whole = label.isdecimal() and label.isascii() and len(label) < _MOST_DIGITS
    return is_whole and int(label) <= MAX_SENTIMENT
