"""AutoML's JSONL files: one JSON object per payload and line. The task reads the annotations.

The format is Vertex AI's "Prepare image training data"; exports of managed datasets are the same::

    {"imageGcsUri": "gs://bucket/1.jpg",
     "classificationAnnotation": {"displayName": "cat"},
     "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "training"}}

become ``Row(split="train", uri="gs://bucket/1.jpg", annotation="cat")``. Only the uri is required.

``--columns`` names the keys of other tools' objects. With ``path=file,label=breed``,
``{"file": "gs://bucket/1.jpg", "breed": "cat"}`` is the row above without its split.

The keys of the first objects show the task, and their spans the unit of offsets. A tool in
JavaScript counts an emoji as two: read as code points, its spans after an emoji are shifted, so
that they cut words. If most spans do so, and nearly none in another unit, the run stops.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from recordgen.core.dataset.splits import parse_ml_use
from recordgen.core.facts import TEXTS
from recordgen.core.rows.row import Adjustments, Row, RowBatch
from recordgen.core.task.annotation import AnnotationError, bad_annotation, bad_line, printable
from recordgen.core.task.task import Task
from recordgen.errors import SourceError, UsageError
from recordgen.formats.field_kinds import known_words
from recordgen.formats.header import Candidate, Given, Head, keys_without_blanks
from recordgen.formats.json_values import json_value
from recordgen.formats.lines import decode_line
from recordgen.formats.named_records import NamedRecords, Values, given_names, single
from recordgen.formats.refusal import stop
from recordgen.formats.row_parser import note_unused
from recordgen.rejects import FIRST_MARK, INNER_MARK, Reject, RejectCode
from recordgen.tasks.image_segmentation.task import ImageSegmentation
from recordgen.tasks.images.task import ImageClassification, ImageMultiLabel
from recordgen.tasks.lines import check_spelling, either
from recordgen.tasks.object_detection.task import ObjectDetection
from recordgen.tasks.texts import tags
from recordgen.tasks.texts import task as texts
from recordgen.tasks.texts.entities import TextEntities, spans_in
from recordgen.tasks.texts.task import CONTENT_KEY, OLDER_KEY
from recordgen.tasks.video_classification.task import VideoClassification

# The parts of a line that name keys and their texts; a text that does not end is one, too.
_TEXT_OR_COLON = re.compile(r'"(?:[^"\\]|\\[\s\S]?)*"?|:')

LABELS_KEY = "dataItemResourceLabels"
ML_USE_KEY = "aiplatform.googleapis.com/ml_use"

_NOT_ACCEPTED = ("reject", "ignore")

# Suffixes of Vertex AI's annotation keys, in both spellings.
_ANNOTATIONS = ("Annotation", "Annotations")
_SNAKE_ANNOTATIONS = ("_annotation", "_annotations")

# Names of the column with the splits of AutoML's objects; others may be keys of the user.
_SPLIT_NAMES = ("split", "ml_use", "data_split", "dataset_split")

# Keys that can only name the split.
_SPLIT_KEYS = known_words("keys_of_splits") | {LABELS_KEY, ML_USE_KEY}


def parse_lines(
    lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[Row | RowBatch | Reject]:
    r"""Parse the physical lines of a JSONL file.

    Args: as :meth:`recordgen.formats.format.CsvParser.parse_lines`; lines may have their ending
    (``\n`` or ``\r\n``), and a UTF-8 byte order mark at the start of a line is skipped.

    Raises:
        SourceError: the file is one JSON document with all objects.
        UsageError: the task does not have a given role.
    """
    if given.roles:
        yield from _named_rows(_numbered(lines, source, adjusted), source, task, adjusted, given)
        return
    for number, raw in _numbered(lines, source, adjusted):
        parsed = parse_line(raw, source, number, task, adjusted, given.group)
        # In a readable line, the mark is a character of some text.
        if BOM_UTF8 in raw and all(isinstance(item, Reject) for item in parsed):
            adjusted.add_line(source, number, *INNER_MARK)
        yield from parsed


def _numbered(
    lines: Iterable[bytes], source: str, adjusted: Adjustments
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, without a byte order mark, and their numbers."""
    for number, raw in enumerate(lines, start=1):
        if number == 1:
            raw = raw.removeprefix(BOM_UTF8)
        line = raw.removeprefix(BOM_UTF8)
        if number == 1 and (line.lstrip().startswith(b"[") or line.strip() == b"{"):
            raise SourceError(f"{source}: this is one JSON document; write one object per line")
        if line != raw:
            adjusted.add_line(source, number, *FIRST_MARK)
        if line.strip():
            yield number, line


def _named_rows(
    lines: Iterable[tuple[int, bytes]], source: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[Row | RowBatch | Reject]:
    """Yield the rows of objects whose keys options name; the other keys are AutoML's."""
    names = [*given_names(given)]
    if not given.roles.keys() & {"path", "text"}:
        names += [task.uri_key, *([CONTENT_KEY] if TEXTS in task.facts else [])]
    keys = [*names]
    if "split" not in given.roles:
        names.append(next(name for name in _SPLIT_NAMES if name not in names))
    reader = NamedRecords(source, names, task, adjusted, given)
    has_verdict = "label" in given.roles and "answer" not in keys  # of Prodigy

    def values() -> Iterator[Values]:
        is_first = True
        for number, raw in lines:
            record: Mapping[str, Any] = {}
            try:
                record = parse_object(raw)
                if is_first:
                    others = [key for key in record if key not in (*names, LABELS_KEY)]
                    note_unused(others, adjusted, source, number)
                    is_first = False
                if has_verdict and (answer := record.get("answer")) in _NOT_ACCEPTED:
                    raise bad_annotation(f"answer must be accept to give a label (got {answer})")
                word = _split(record) or "" if len(keys) < len(names) else ""
            except AnnotationError as exc:
                if BOM_UTF8 in raw:
                    adjusted.add_line(source, number, *INNER_MARK)
                uri = reader.uri_of([*map((record or _readable(raw)).get, keys)])
                yield exc.reject(source, number, uri)
            else:
                yield number, [*map(record.get, keys), word][: len(names)]

    return reader.rows(values())


def parse_line(
    raw: bytes, source: str, line: int, task: Task, adjusted: Adjustments, group_key: str = ""
) -> list[Row | Reject]:
    """Parse one line; see the module's example. ``group_key`` is the key of the row's group."""
    record: Mapping[str, Any] = {}
    try:
        record = parse_object(raw)
        split = _split(record)
        group = single(record.get(group_key), group_key).strip() or None if group_key else None
        _check_kinds(record, task)
        found = task.from_record(record, adjusted)
    except AnnotationError as exc:
        return [exc.reject(source, line, task.uri_of(record or _readable(raw)))]
    return [
        item.reject(source, line, task.uri_of(record))
        if isinstance(item, AnnotationError)
        else Row(source, line, split, *item, group)
        for item in found
    ]


def parse_object(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a line, without blanks around keys. Raises: AnnotationError."""
    text = decode_line(raw, "line", "is this a JSONL file?")
    problem = ""
    try:
        found = json_value(text.removeprefix("\ufeff"))
    except ValueError as exc:
        found, problem = None, f" ({exc})"
    if isinstance(found, dict):
        return keys_without_blanks(found)
    start = ascii(raw[:80].decode("utf-8", "replace"))
    raise bad_line(f"each line must be one JSON object{problem}: {start}")


def _readable(raw: bytes) -> Mapping[str, Any]:
    """Return the texts by their keys in a line that is no JSON object: it is cut, or not UTF-8."""
    parts = _TEXT_OR_COLON.findall(raw.decode("utf-8", "replace"))
    found: dict[str, str] = {}
    for key, colon, value in zip(parts, parts[1:], parts[2:], strict=False):
        if colon == ":" != value:
            with suppress(ValueError):
                found.setdefault(json.loads(key), json.loads(value))
    return keys_without_blanks({key: it for key, it in found.items() if "\ufffd" not in it})


def split_word(record: Mapping[str, Any]) -> str:
    """Return the ML_USE of an object as written, or ""."""
    labels = record.get(LABELS_KEY)
    return str(labels.get(ML_USE_KEY, "")) if isinstance(labels, Mapping) else ""


def _split(record: Mapping[str, Any]) -> str | None:
    labels = record.get(LABELS_KEY) or {}
    ml_use = labels.get(ML_USE_KEY, "") if isinstance(labels, Mapping) else labels
    try:
        if not ml_use:  # else the line has its split, and other keys are the user's own
            _check_split_keys(record, LABELS_KEY)
            _check_split_keys(labels, ML_USE_KEY)
        if not isinstance(ml_use, str):
            raise ValueError(f"{LABELS_KEY} must hold texts by name (got {labels!r:.80})")
        return parse_ml_use(ml_use.strip())
    except ValueError as exc:
        raise AnnotationError(RejectCode.UNKNOWN_ML_USE, str(exc)) from exc


def _check_split_keys(record: Mapping[str, Any], known: str) -> None:
    """Check that no key but ``known`` names a split. Raises: ValueError."""
    for key in sorted(key for key in record.keys() & _SPLIT_KEYS - {known} if record[key]):
        expected = f'a split must be named as "{LABELS_KEY}": {{"{ML_USE_KEY}": "training"}}'
        raise ValueError(f"{expected} (got {key}; if it is the split: --columns split={key})")


def _check_kinds(record: Mapping[str, Any], task: Task) -> None:
    """Check that an object has no annotations of another task, and no misspelt keys.

    Raises: AnnotationError.
    """
    for key, value in record.items():
        is_other = (
            key.endswith(_ANNOTATIONS)
            or (key.endswith(_SNAKE_ANNOTATIONS) and isinstance(value, dict | list))
            or (key == OLDER_KEY and TEXTS not in task.facts)
        )
        if is_other and value and key not in task.json_keys:
            known = ", ".join(task.json_keys)
            what = f"{printable(key)} is no annotation of {task.name}, which has {known}"
            raise bad_annotation(f"{what}; keep different tasks in separate files")
    check_spelling(record, (task.uri_key, *task.json_keys, LABELS_KEY, CONTENT_KEY), "the line")
    if isinstance(labels := record.get(LABELS_KEY), Mapping):
        names = {key.rpartition("/")[2]: value for key, value in labels.items()}
        check_spelling(names, (ML_USE_KEY.rpartition("/")[2],), LABELS_KEY)


# --- the task that keys show ---------------------------------------------------------------------

# The keys of an object's payload, and the possible tasks of such an object.
_OF_IMAGES = (ImageClassification, ImageMultiLabel, ObjectDetection)
_OF_TEXTS = (texts.TextClassification, texts.TextMultiLabel, texts.TextSentiment)
_TEXT_KEYS = (CONTENT_KEY, texts.TextClassification.uri_key, "text_snippet", "textSnippet")
_BY_KEY: Sequence[tuple[Sequence[str], Sequence[type[Task]]]] = (
    ([ImageClassification.uri_key], [*_OF_IMAGES, ImageSegmentation]),
    (_TEXT_KEYS, [*_OF_TEXTS, TextEntities]),
    ([VideoClassification.uri_key], [VideoClassification]),
)

# The published keys among them.
_SUBJECT_KEYS = tuple(key for keys, _ in _BY_KEY for key in keys[:2])


def of_objects(head: Head, task: Task | None = None) -> Iterator[Candidate]:
    """Yield the tasks that AutoML's keys show. Raises: SourceError: no object has such a key.

    ``task``: the given one, as in :func:`recordgen.formats.refusal.stop`.
    """
    wheres = ((record, f"{head.path}:{number}") for number, record in head.objects)
    readings = [reading for each in wheres for reading in _read_object(*each)]
    if head.objects and not readings:
        keys = ", ".join(_SUBJECT_KEYS)
        stop(head, f"no line has one of {keys}; CoNLL's files hold tokens and tags", task=task)
    yield from readings


def _read_object(record: Mapping[str, Any], where: str) -> Iterator[Candidate]:
    """Yield the tasks that an object's keys show; without an annotation, a reading of 0 lines.

    Only the first kind of payload counts: the object of an image may also have a text.
    """
    for keys, possible in _BY_KEY:
        if (key := next((key for key in keys if key in record), None)) is None:
            continue
        values = {task: record.get(task.json_keys[0]) for task in possible}
        if ImageSegmentation in values:  # an exported line has another key
            values[ImageSegmentation] = either(record, ImageSegmentation.json_keys)
        there = [task for task in possible if values[task] is not None]
        # An empty list also shows a task, unless another key has a value.
        found = [task for task in there if values[task] not in ([], {})] or there
        for task in found:
            yield Candidate(task.name, f"{where} has {task.json_keys[0]}")
        older = record.get(OLDER_KEY)
        if not found and TEXTS in possible[0].facts and isinstance(older, list) and older:
            task, what = _task_of_older(older)
            yield Candidate(task.name, f"{where} has {what}")
        elif not found:
            # Videos have only one task, so their key decides.
            yield Candidate(possible[0].name, f"{where} has {key}", int(len(possible) == 1))
        return


def _task_of_older(annotations: Sequence[Any]) -> tuple[type[Task], str]:
    kinds = {name for item in annotations if isinstance(item, Mapping) for name in item}
    if not kinds.isdisjoint({"text_extraction", "textExtraction"}):
        return TextEntities, f"{OLDER_KEY} of parts of a text"
    if not kinds.isdisjoint({"text_sentiment", "textSentiment"}):
        return texts.TextSentiment, f"{OLDER_KEY} of a sentiment"
    if len(annotations) > 1:
        return texts.TextMultiLabel, f"{len(annotations)} {OLDER_KEY}"
    return texts.TextClassification, f"one of {OLDER_KEY}"


# --- the unit of offsets -------------------------------------------------------------------------

# The share of spans that may cut words in the right unit: annotators sometimes mark part of a word.
_MAY_CUT = 0.05


def check_offsets(heads: Iterable[Head]) -> None:
    """Check that offsets of entities count characters. Raises: UsageError: another unit fits."""
    for head in heads:
        for unit in (tags.UTF16, tags.BYTES):
            moved = [*_moved_spans(head, unit)]
            cut = [f"{text[slice(*it[:2])]!r:.60}" for text, it, _ in moved if _cuts(text, it)]
            cut_in_unit = sum(_cuts(text, other) for text, _, other in moved)
            if len(cut) * 2 > len(moved) and cut_in_unit <= _MAY_CUT * len(moved):
                what = f"offsets of entities seem to count {tags.NAMES[unit]}"
                why = f"as characters, {len(cut):,} of {len(moved):,} spans cut words ({cut[0]})"
                remedy = f"use --columns offsets={unit}, or offsets=codepoints for characters"
                raise UsageError(f"{head.path}: {what}: {why}, else {cut_in_unit:,} do; {remedy}")


def _moved_spans(head: Head, unit: str) -> Iterator[tuple[str, tags.Span, tags.Span]]:
    """Yield the spans that are others in another unit: their text, and the span in both."""
    for _, record in head.objects:
        with suppress(AnnotationError):  # the reader of the rows reports it
            text = texts.TextContent.decode(texts.row_of_line(record, None).annotation).text or ""
            if (place_of := tags.places(text, unit)) is None:
                continue
            for span in spans_in(record):
                start, end = (place_of.get(place, -1) for place in (span.start, span.end))
                if (other := tags.Span(start, end, span.label)) != span:
                    yield text, span, other


def _cuts(text: str, span: tags.Span) -> bool:
    """Return whether a span cuts words, or characters."""
    try:
        return min(span.start, span.end) < 0 or bool(tags.cut_spans_in(text, [span]))
    except tags.TagError:
        return True
