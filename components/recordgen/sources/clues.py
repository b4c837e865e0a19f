"""What the first lines of an import file say about its task.

Each line that tells gives a clue: a task, and the words that say which line it was.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from recordgen.errors import SourceError
from recordgen.rows import Row
from recordgen.sources import automl_csv, text_csv, video_lists
from recordgen.sources.automl_csv import IMAGE_SUFFIX, VIDEO_SUFFIX
from recordgen.sources.automl_jsonl import parse_object
from recordgen.sources.clue import Clue
from recordgen.sources.csv_records import Record, read_records
from recordgen.sources.layout import checked
from recordgen.sources.lines import open_lines
from recordgen.sources.text_clues import of_texts
from recordgen.splits import is_ml_use
from recordgen.tasks import (
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    Tabular,
    TextClassification,
    TextEntities,
    TextMultiLabel,
    TextSentiment,
    VideoClassification,
)
from recordgen.tasks.labelled_text import OLDER_KEY
from recordgen.tasks.task import AnnotationError, printable
from recordgen.tasks.text_task import CONTENT_KEY

#: The task of each kind whose lines may say nothing but what they are about.
PLAIN: Mapping[str, str] = {
    "image": ImageClassification.name,
    "text": TextClassification.name,
    "video": VideoClassification.name,
}

# Enough to meet what is rare, and nothing beside what is read later.
_LINES_LOOKED_AT = 10_000
_BYTES_LOOKED_AT = 4_000_000

_JSONL = re.compile(r"\.(jsonl|ndjson)$", re.IGNORECASE)
_SHORT_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{1,4}$", re.IGNORECASE)
_PATH = re.compile(r"([a-z][a-z0-9+.-]*://|\.{0,2}/)", re.IGNORECASE)
_OF_IMAGES = re.compile(r"image|img|photo|picture", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

# A table of texts alone is told from other files by a header of so many columns.
_COLUMNS_OF_A_TABLE = 3

# A path may hold blanks, but hardly has more words.
_WORDS_OF_A_PATH = 3


def clues_of_jsonl(path: str) -> Iterator[Clue]:
    """Yield the clues of the lines of a JSONL file.

    Raises:
        SourceError: it cannot be read, or its objects are none of an import file.
        StorageError: storage failed.
    """
    is_known, other = False, ""
    with open_lines(path) as lines:
        for number, raw in enumerate(islice(lines, _LINES_LOOKED_AT), start=1):
            try:
                record = parse_object(raw)
            except AnnotationError:
                continue  # whoever reads the rows will say so
            # A line is about one thing; an image may have a text beside it.
            for keys, of_record in _SUBJECTS:
                if key := next((key for key in keys if key in record), None):
                    is_known = True
                    for clue in of_record(record, key):
                        yield clue._replace(reason=f"{path}:{number} has {clue.reason}")
                    break
            else:
                other = other or _other_keys(record, f"{path}:{number}")
    if other and not is_known:
        raise SourceError(other)


def _other_keys(record: Mapping[str, Any], where: str) -> str:
    """Return what is said of a file if this is the first line and none is of an import file."""
    there = ", ".join(map(printable, record)) or "none"
    return (
        f"{where}: no line has one of the keys {', '.join(SUBJECT_KEYS)} (this one has "
        f"{there:.80}); write an object per line as Vertex AI does, also of what another tool "
        f"exported"
    )


def _of_image(record: Mapping[str, Any], key: str) -> Iterator[Clue]:
    for task in (ImageClassification, ImageMultiLabel, ObjectDetection):
        if record.get(task.json_keys[0]):
            yield Clue(task.name, task.json_keys[0])


def _of_text(record: Mapping[str, Any], key: str) -> Iterator[Clue]:
    found = [
        Clue(task.name, task.json_keys[0])
        for task in (TextClassification, TextMultiLabel, TextSentiment, TextEntities)
        if record.get(task.json_keys[0]) is not None
    ]
    older = record.get(OLDER_KEY)
    if not found and isinstance(older, list) and older:
        found = [_of_older(older)]
    yield from found or [Clue(TextClassification.name, key, tells=False)]


def _of_older(annotations: Sequence[Any]) -> Clue:
    kinds = {name for item in annotations if isinstance(item, Mapping) for name in item}
    if not kinds.isdisjoint({"text_extraction", "textExtraction"}):
        return Clue(TextEntities.name, f"{OLDER_KEY} of parts of a text")
    if not kinds.isdisjoint({"text_sentiment", "textSentiment"}):
        return Clue(TextSentiment.name, f"{OLDER_KEY} of a sentiment")
    if len(annotations) > 1:
        return Clue(TextMultiLabel.name, f"{len(annotations)} {OLDER_KEY}")
    return Clue(TextClassification.name, f"one of {OLDER_KEY}")


def _of_video(record: Mapping[str, Any], key: str) -> Iterator[Clue]:
    yield Clue(VideoClassification.name, key)


# Keys under which a line of JSONL says what it is about, and what tells its task then.
_SUBJECTS: Sequence[tuple[Sequence[str], Callable[[Mapping[str, Any], str], Iterator[Clue]]]] = (
    ((ImageClassification.uri_key,), _of_image),
    ((CONTENT_KEY, TextClassification.uri_key, "text_snippet", "textSnippet"), _of_text),
    ((VideoClassification.uri_key,), _of_video),
)
#: The published ones among them.
SUBJECT_KEYS = (
    ImageClassification.uri_key,
    CONTENT_KEY,
    TextClassification.uri_key,
    VideoClassification.uri_key,
)


def clues_of_csv(path: str) -> Iterator[Clue]:
    """Yield the clues of the records of a CSV file.

    Raises:
        SourceError: it cannot be read; it is no CSV as a whole; or its header names what cannot be
            meant.
        StorageError: storage failed.
    """
    with open_lines(path) as lines:
        some = list(checked(_first(lines), path))
    records = [item for item in read_records(some, path) if isinstance(item, Record)]
    if not records:
        return
    header = [field.strip() for field in records[0].fields]
    where = f"{path}:{records[0].line}"
    if ObjectDetection.has_header(header):
        yield Clue(ObjectDetection.name, f"{where} names the columns of a box")
    elif automl_csv.names_path_column(header) and not _names_texts(header, records):
        if _names_segments(header) and not _names_images(header, records):
            yield Clue(VideoClassification.name, f"{where} names the columns of a segment")
        else:
            _check_boxes(header, where)
            yield from _of_images(some, path)
    elif text_csv.names_text_column(header) and text_csv.knows_columns(header):
        yield from of_texts(some, path, header)
    elif _is_table(records):
        yield Clue(Tabular.name, f"{where} names columns, and the lines behind it fill them")
    elif text_csv.names_text_column(header):
        yield from of_texts(some, path, header)
    else:
        yield from _by_subject(some, path, records)


def _first(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the first lines, up to so many and so many bytes."""
    size = 0
    for line in islice(lines, _LINES_LOOKED_AT):
        yield line
        size += len(line)
        if size > _BYTES_LOOKED_AT:
            return


def _names_texts(header: Sequence[str], records: Sequence[Record]) -> bool:
    """Say whether a text stands beside a path that is none of an image or a video."""
    return text_csv.names_text_column(header) and not _names_images(header, records)


def _names_images(header: Sequence[str], records: Sequence[Record]) -> bool:
    """Say whether a header, or the fields behind it, name images."""
    return any(map(_OF_IMAGES.search, header)) or any(
        IMAGE_SUFFIX.search(field.strip()) for record in records[1:2] for field in record.fields
    )


def _names_segments(header: Sequence[str]) -> bool:
    names = {automl_csv.column_name(field) for field in header}
    columns = VideoClassification.columns
    return all(names & columns[role] for role in ("start", "end"))


def _check_boxes(header: Sequence[str], where: str) -> None:
    """Check that a header of images leaves no boxes out in silence. Raises: SourceError."""
    if boxes := ObjectDetection.other_boxes(header):
        raise SourceError(
            f"{where}: the columns {', '.join(boxes)} are boxes in a form that is not known; name "
            f"columns xmin, ymin, xmax and ymax, shares of the image, or say --task to leave them "
            f"out"
        )


def _by_subject(lines: Sequence[bytes], path: str, records: Sequence[Record]) -> Iterator[Clue]:
    """Yield the clues of a file without a header, by what its records are about."""
    _check_subjects(records, path)
    found: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        kind = _kind(_subject(record.fields))
        is_header = number == 0 and kind == "text" and len(records) > 1  # perhaps, of odd names
        if kind and not is_header:
            found.setdefault(kind, []).append(record.line)
    most = max(found, key=lambda kind: len(found[kind]), default="image")
    for kind, numbers in found.items():
        if kind != most:  # perhaps a mistake of few lines, perhaps another task
            for line in numbers:
                yield Clue(PLAIN[kind], f"{path}:{line} is about a {kind}", tells=False)
    if most == "video":
        for line in found[most]:
            reason = f"{path}:{line} names a video, or a list of them"
            yield Clue(VideoClassification.name, reason)
    elif most == "text":
        yield from of_texts(lines, path, ())
    else:
        yield from _of_images(lines, path)


def _check_subjects(records: Sequence[Record], path: str) -> None:
    """Check that a file is no list of JSONL files. Raises: SourceError."""
    named = [record for record in records if _JSONL.search(_subject(record.fields))]
    if len(named) * 2 > len(records):
        raise SourceError(
            f"{path}:{named[0].line}: this file lists JSONL files, as AutoML has it of entities; "
            f"name these files themselves"
        )


def _subject(fields: Sequence[str]) -> str:
    """Return the field that says what a record is about: behind ML_USE if that is there."""
    used = [field.strip() for field in fields]
    is_misspelt = len(used) > 1 and not _kind(used[0]) and _kind(used[1]) in ("image", "video")
    return used[1] if is_misspelt or (len(used) > 1 and is_ml_use(used[0])) else used[0]


def _kind(subject: str) -> str:
    """Return the kind of what a field names or holds; "" if it may be anything."""
    words = subject.split()
    if text_csv.has_url_inside(subject):
        return "text"
    if IMAGE_SUFFIX.search(subject):
        return "image"
    if VIDEO_SUFFIX.search(subject) or video_lists.is_list(subject):
        return "video"
    if subject.lower().endswith(".txt"):
        return "text"
    if _PATH.match(subject):
        return "image"
    if len(words) > _WORDS_OF_A_PATH:
        return "text"
    if "/" in subject or _SHORT_SUFFIX.search(subject):
        return "image" if len(words) == 1 else ""
    return "text" if len(words) > 1 else ""


def _is_table(records: Sequence[Record]) -> bool:
    """Say whether the first record names columns, and others fill them."""
    names = [field.strip() for field in records[0].fields]
    others = records[1:]
    whole = [record.fields for record in others if len(record.fields) == len(names)]
    if len(whole) * 2 < len(others) or not whole:
        return False
    if not names[0] and _are_numbers(fields[0] for fields in whole):
        # An index that pandas wrote; who reads the table asks for its name.
        names, whole = names[1:], [fields[1:] for fields in whole]
    names = list(automl_csv.without_padding(names))
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        return False
    if any(map(_NUMBER.fullmatch, names)) or is_ml_use(names[0]):
        return False
    if any(_is_file(name) or "/" in name for name in names):
        return False
    if any(map(_OF_IMAGES.search, names)):
        return False
    if any(_kind(field) in ("image", "video") for field in whole[0]):
        return False
    if any(_is_like(name, [fields[at] for fields in whole]) for at, name in enumerate(names)):
        return False
    has_numbers = any(
        _are_numbers(fields[index] for fields in whole) for index in range(len(names))
    )
    return has_numbers or (len(names) >= _COLUMNS_OF_A_TABLE and not _has_sentences(whole))


def _are_numbers(column: Iterable[str]) -> bool:
    """Say whether fields are numbers, but for empty ones, which are not all."""
    filled = [text for field in column if (text := field.strip())]
    return bool(filled) and all(map(_NUMBER.fullmatch, filled))


def _is_file(name: str) -> bool:
    return automl_csv.names_media(name) or video_lists.is_list(name)


def _is_like(name: str, values: Sequence[str]) -> bool:
    """Say whether a field is one of those below it, or counts on as they do: ``img0``, ``img1``."""
    pattern = _DIGITS.sub("#", name)
    return any(
        name == value.strip() or ("#" in pattern and pattern == _DIGITS.sub("#", value.strip()))
        for value in values
    )


def _has_sentences(rows: Iterable[Sequence[str]]) -> bool:
    return any(len(field.split()) > 3 for fields in rows for field in fields)


class _Fields(ImageMultiLabel):
    """Keeps all fields behind the path as they are."""

    def from_fields(self, fields: Sequence[str], adjusted: Counter[str]) -> str | None:
        return json.dumps(list(fields)) if fields else None


def _of_images(lines: Iterable[bytes], path: str) -> Iterator[Clue]:
    for row in automl_csv.parse_lines(lines, source=path, task=_Fields(), adjusted=Counter()):
        if isinstance(row, Row) and row.annotation is not None:
            fields = json.loads(row.annotation)
            labels = sum(map(bool, fields))
            if ObjectDetection.has_box(fields):
                yield Clue(ObjectDetection.name, f"{path}:{row.line} has a box")
            elif labels > 1:
                yield Clue(ImageMultiLabel.name, f"{path}:{row.line} has {labels} labels")
            else:
                yield Clue(ImageClassification.name, f"{path}:{row.line} has one label")
