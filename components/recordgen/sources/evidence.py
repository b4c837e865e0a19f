"""What the first lines of import files say about their task, and what speaks against it.

A reading is a task with a line that shows it. Only lines that leave no doubt make one: a name that
ends in ``.jpg``, a sentence, a box. One line alone among ten or more is a malformed line, not
another task. Where two readings are left, or where labels look like something else, the run must
stop and ask: :mod:`recordgen.sources.detect` does that with the rows in hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recordgen.dataset.splits import is_ml_use
from recordgen.sources import video_lists
from recordgen.sources.automl_csv import IMAGE_SUFFIX, VIDEO_SUFFIX, names_media
from recordgen.sources.header import PATH_COLUMNS, SPLIT_COLUMNS, TEXT_COLUMNS, column_name
from recordgen.sources.row_parser import without_padding
from recordgen.sources.text_csv import has_url_inside
from recordgen.tasks import (
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    TextClassification,
    TextMultiLabel,
    TextSentiment,
    VideoClassification,
)
from recordgen.tasks.image_classification import LABEL_COLUMNS
from recordgen.tasks.text_sentiment import MAX_SENTIMENT

#: The task of each kind of payload whose lines need not have an annotation.
PLAIN: Mapping[str, str] = {
    "image": ImageClassification.name,
    "text": TextClassification.name,
    "video": VideoClassification.name,
}
_ABOUT = {"image": "names an image", "text": "holds a text", "video": "names a video"}

#: Tasks with several labels read all rows of the tasks with one.
SUBSUMES: Mapping[str, str] = {
    ImageMultiLabel.name: ImageClassification.name,
    TextMultiLabel.name: TextClassification.name,
}

#: Among so many lines, one that reads differently is malformed.
LINES_AROUND_A_MISTAKE = 10

# A path may hold blanks, but hardly has more words.
_WORDS_OF_A_PATH = 3
_WORDS_OF_A_SENTENCE = 3
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
# Thai, Lao, Japanese and Chinese, which put no blanks between words.
_UNSPACED = re.compile("[\u0e01-\u0eff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS_OF_A_TEXT = 5
_CLOSING = " \"')\u201d\u2019"

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
BRACKETED = re.compile(r"\[.*\]|\{.*\}|\(.*\)", re.DOTALL)
_DIGITS = re.compile(r"\d+")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*://|\.{0,2}/)", re.IGNORECASE)
_SHORT_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{1,4}$", re.IGNORECASE)

# The last word of names that scripts give to columns: "Review Text", "breed_id".
_LAST_WORDS = frozenset(
    {"id", "name", "path", "file", "filename", "url", "uri", "image", "label", "labels", "class"}
    | {"category", "text", "split", "target", "sentiment"}
)
_NAMES = PATH_COLUMNS | SPLIT_COLUMNS | TEXT_COLUMNS | LABEL_COLUMNS


class Reading(NamedTuple):
    """A task, and what shows it.

    Attributes:
        task: its name.
        reason: a line, and what that has.
        lines: how many lines show it; 0: it is what a line without an annotation may be.
    """

    task: str
    reason: str
    lines: int = 1


class Line(NamedTuple):
    """The fields of a line, as they read if there is no header.

    Attributes:
        where: file and line.
        fields: stripped, without empty ones at the end.
        has_ml_use: the line begins with ML_USE, which may be empty.
        kind: of its path or text, see :func:`kind_of`.
        annotation: the fields behind path or text.
        labels: those that are not empty.
        is_quoted: a field other than the first stands in quotes.
    """

    where: str
    fields: Sequence[str]
    has_ml_use: bool
    kind: str
    annotation: Sequence[str]
    labels: Sequence[str]
    is_quoted: bool

    @classmethod
    def of(cls, where: str, fields: Sequence[str], *, is_quoted: bool = False) -> Line:
        """Return a line; path or text stand behind ML_USE, also behind a misspelt one."""
        first, second = (*fields, "", "")[:2]
        has_ml_use = len(fields) > 1 and is_ml_use(first)
        kind = kind_of(second if has_ml_use else first)
        at = int(has_ml_use)
        if not kind and not has_ml_use and kind_of(second) in ("image", "video"):
            at, kind = 1, kind_of(second)
        annotation = fields[at + 1 :]
        labels = list(filter(None, annotation))
        return cls(where, fields, has_ml_use, kind, annotation, labels, is_quoted)

    @property
    def subject(self) -> str:
        """The path or text."""
        return (*self.fields, "")[len(self.fields) - len(self.annotation) - 1]


def kind_of(subject: str) -> str:
    """Return ``image``, ``video`` or ``text`` if a field leaves no doubt, else ""."""
    words = len(subject.split())
    if has_url_inside(subject):
        return "text"
    if IMAGE_SUFFIX.search(subject):
        return "image"  # also "Screen Shot 2021-01-01 at 10.00.00.png"
    if words <= _WORDS_OF_A_PATH and (VIDEO_SUFFIX.search(subject) or video_lists.is_list(subject)):
        return "video"
    if words <= _WORDS_OF_A_PATH and subject.lower().endswith(".txt"):
        return "text"
    if _ADDRESS.match(subject):
        return "image"
    return "text" if is_sentence(subject) else ""


def is_sentence(text: str) -> bool:
    """Say whether words read as a sentence: there are several, or they end as one does."""
    words = len(text.split())
    is_path = "/" in text and words <= _WORDS_OF_A_PATH
    return not is_path and (words >= _WORDS_OF_A_SENTENCE or ends_sentence(text))


def ends_sentence(text: str) -> bool:
    """Say whether several words end as a sentence does."""
    has_several = len(text.split()) > 1 or is_unspaced(text)
    return has_several and text.rstrip(_CLOSING).endswith(_ENDS)


def is_unspaced(text: str) -> bool:
    """Say whether a field has several letters of a script that puts no blanks between words."""
    return len(_UNSPACED.findall(text)) >= _LETTERS_OF_A_TEXT


def _may_be(subject: str) -> str:
    """Return what a field is rather than not, where no line of the file leaves no doubt."""
    if "/" in subject or _SHORT_SUFFIX.search(subject):
        return "image"
    return "text" if len(subject.split()) > 1 or is_unspaced(subject) else ""


def settle(readings: Iterable[Reading]) -> list[Reading]:
    """Return the readings that are left: several only if lines contradict each other.

    A line alone among ten is malformed; a task with several labels reads all rows of one label.
    """
    counts: Counter[str] = Counter()
    first: dict[str, Reading] = {}
    found = list(readings)
    for reading in [reading for reading in found if reading.lines] or found[:1]:
        counts[reading.task] += reading.lines
        first.setdefault(reading.task, reading)
    if counts.total() >= LINES_AROUND_A_MISTAKE:
        most = max(counts.values())
        counts = Counter({task: n for task, n in counts.items() if n > 1 or n == most})
    subsumed = {SUBSUMES.get(task) for task in counts}
    return [
        first[task]._replace(lines=count) for task, count in counts.items() if task not in subsumed
    ]


def read_lines(lines: Sequence[Line]) -> Iterator[Reading]:
    """Yield how lines without a header read."""
    kinds: dict[str, list[Line]] = {}
    for line in lines:
        if line.kind:
            kinds.setdefault(line.kind, []).append(line)
    plain = [
        Reading(PLAIN[kind], f"{found[0].where} {_ABOUT[kind]}", len(found))
        for kind, found in kinds.items()
    ]
    left = settle(plain)
    if len(left) > 1:
        yield from left
        return
    if left:
        [kind] = [kind for kind, task in PLAIN.items() if task == left[0].task]
    else:
        perhaps = [_may_be(line.subject) for line in lines]
        kind = "text" if "text" in perhaps and "image" not in perhaps else "image"
    if kind == "video":
        where = kinds["video"][0].where
        yield Reading(PLAIN["video"], f"{where} names a video, or a list of them")
    elif kind == "text":
        yield from _read_texts(lines)
    else:
        yield from _read_images(lines)


def _read_images(lines: Sequence[Line]) -> Iterator[Reading]:
    for line in lines:
        labels = len(line.labels)
        if labels and ObjectDetection.has_box(line.annotation):
            yield Reading(ObjectDetection.name, f"{line.where} has a box")
        elif labels > 1:
            yield Reading(ImageMultiLabel.name, f"{line.where} has {labels} labels")
        elif labels:
            yield Reading(ImageClassification.name, f"{line.where} has one label")


def _read_texts(lines: Sequence[Line]) -> Iterator[Reading]:
    labels = [label for line in lines for label in line.labels]
    if not labels:
        yield Reading(TextClassification.name, "no line has a label", 0)
    # AutoML writes sentiments so; where numbers are classes, the user is told what to say.
    are_sentiments = bool(labels) and all(map(is_sentiment, labels))
    for line in lines:
        count = len(line.labels)
        if count > 1:
            yield Reading(TextMultiLabel.name, f"{line.where} has a text and {count} labels")
        elif count and are_sentiments:
            yield Reading(
                TextSentiment.name,
                f"{line.where} has a text and its sentiment; --task {TextClassification.name} if "
                f"such numbers are classes",
            )
        elif count:
            yield Reading(TextClassification.name, f"{line.where} has a text and its label")


def is_sentiment(label: str) -> bool:
    """Say whether a label is a whole number that AutoML takes for a sentiment."""
    return label.isdecimal() and label.isascii() and int(label) <= MAX_SENTIMENT


# --- first lines ------------------------------------------------------------------------------


def odd_first_line(rows: Sequence[Sequence[str]]) -> str:
    """Return why the first line of a file may be a header; "" if it reads as a row.

    Args:
        rows: the stripped fields of the first lines.
    """
    first, rest = without_padding(rows[0]), rows[1:]
    if len(first) > 1 and list(first) == [str(at) for at in range(len(first))]:
        return "its fields count the columns, as pandas does if they have no names"
    is_row = any(kind_of(field) or NUMBER.fullmatch(field) or is_ml_use(field) for field in first)
    if is_row or not rest or _is_like(first[0], [row[0] for row in rest]):
        return ""
    if named := next(filter(_is_name, first), None):
        return f"{named!r} reads as the name of a column"
    if all(Line.of("", row).kind in ("image", "video") for row in rest):
        return "all lines behind it name files, and it does not"
    for index, name in enumerate(first):
        values = [row[index] for row in rest if index < len(row) and row[index]]
        if values and all(NUMBER.fullmatch(v) or BRACKETED.fullmatch(v) for v in values):
            return f"the column below {name!r} holds numbers"
        # Few values may repeat by chance; the last column is where labels stand.
        below = [row[index] for row in rest if index < len(row)]
        is_label = 0 < index == len(first) - 1
        is_unlike = name not in below and len(set(below)) * 2 <= len(below)
        if is_unlike and (is_label or (first[1:] and len(below) >= LINES_AROUND_A_MISTAKE)):
            return f"{name!r} occurs in no other line, and the values below it repeat"
    return ""


def _is_name(field: str) -> bool:
    name = column_name(field)
    return (
        name in _NAMES
        or (name != field and name.rpartition("_")[2] in _LAST_WORDS)
        or (name in _LAST_WORDS)
    )


def is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether the first line names columns that the lines behind it fill.

    Args:
        rows: the stripped fields of the first lines.
    """
    names, others = list(rows[0]), rows[1:]
    whole = [row for row in others if len(row) == len(names)]
    if not whole or len(whole) * 2 < len(others):
        return False
    if not names[0] and _are_numbers(row[0] for row in whole):
        # An index that pandas wrote; who reads the table asks for its name.
        names, whole = names[1:], [row[1:] for row in whole]
    names = list(without_padding(names))
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        return False
    if any(_is_no_name(name) for name in names) or is_ml_use(names[0]):
        return False
    if any(kind_of(field) in ("image", "video") for field in whole[0]):
        return False
    if any(_is_like(name, [row[at] for row in whole]) for at, name in enumerate(names)):
        return False
    has_sentences = any(is_sentence(field) for row in whole for field in row)
    if len(names) == 2 and has_sentences:
        return False  # a text and its label, as likely
    has_numbers = any(_are_numbers(row[at] for row in whole) for at in range(len(names)))
    return has_numbers or (len(names) > 2 and not has_sentences)


def _is_no_name(name: str) -> bool:
    is_file = names_media(name) or video_lists.is_list(name) or "/" in name
    is_image = re.search("image|img|photo|picture", name, re.IGNORECASE)
    return bool(is_file or is_image or NUMBER.fullmatch(name))


def _are_numbers(column: Iterable[str]) -> bool:
    """Say whether fields are numbers, but for empty ones, which are not all."""
    filled = [field for field in column if field]
    return bool(filled) and all(map(NUMBER.fullmatch, filled))


def _is_like(name: str, values: Sequence[str]) -> bool:
    """Say whether a field is one of those below it, or counts on as they do: ``img0``, ``img1``."""
    pattern = _DIGITS.sub("#", name)
    return name in values or (
        "#" in pattern and any(pattern == _DIGITS.sub("#", value) for value in values)
    )
