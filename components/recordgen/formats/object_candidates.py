"""Evidence of the task in the keys of JSON objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordgen.core.task.task import Task
from recordgen.formats.head import Candidate, Head
from recordgen.formats.proposal import stop
from recordgen.tasks.image_segmentation.task import ImageSegmentation
from recordgen.tasks.images.task import ImageClassification, ImageMultiLabel
from recordgen.tasks.lines import either
from recordgen.tasks.object_detection.task import ObjectDetection
from recordgen.tasks.text_entities.task import TextEntities
from recordgen.tasks.texts.task import (
    CONTENT_KEY,
    OLDER_KEY,
    TextClassification,
    TextMultiLabel,
    TextSentiment,
)
from recordgen.tasks.video_classification.task import VideoClassification

# The keys of an object's payload, and the possible tasks of such an object.
_BY_KEY: Sequence[tuple[Sequence[str], Sequence[type[Task]]]] = (
    (
        (ImageClassification.uri_key,),
        (ImageClassification, ImageMultiLabel, ObjectDetection, ImageSegmentation),
    ),
    (
        (CONTENT_KEY, TextClassification.uri_key, "text_snippet", "textSnippet"),
        (TextClassification, TextMultiLabel, TextSentiment, TextEntities),
    ),
    ((VideoClassification.uri_key,), (VideoClassification,)),
)

_OFFSETS = frozenset({"start", "end", "start_offset", "end_offset", "offset", "length"})

# The published keys among them.
_SUBJECT_KEYS = tuple(key for keys, _ in _BY_KEY for key in keys[:2])


def of_objects(head: Head) -> Iterator[Candidate]:
    """Yield the tasks that AutoML's keys show. Raises: SourceError: no object has such a key."""
    readings = [
        reading
        for number, record in head.objects
        for reading in _read_object(record, f"{head.path}:{number}")
    ]
    if head.objects and not readings:
        _, record = head.objects[0]
        if pair := _tokens_and_tags(record):
            way = "write each token and its tag on a line of a CoNLL file"
            stop(head, f"{' and '.join(pair)} hold tokens and their tags; {way}", options={})
        if spans := next((key for key in record if _are_spans(record[key])), ""):
            stop(head, f"{spans} holds spans of a text, and not as AutoML writes them", options={})
        stop(head, f"no line has one of the keys {', '.join(_SUBJECT_KEYS)}")
    yield from readings


def _read_object(record: Mapping[str, Any], where: str) -> Iterator[Candidate]:
    """Yield the tasks that an object's keys show; without an annotation, a reading of 0 lines.

    Only the first kind of payload counts: the object of an image may also have a text.
    """
    for keys, tasks in _BY_KEY:
        if (key := next((key for key in keys if key in record), None)) is None:
            continue
        values = {task: record.get(task.json_keys[0]) for task in tasks}
        if values.get(ImageSegmentation, "") is None:  # an exported line has another key
            values[ImageSegmentation] = either(record, ImageSegmentation.json_keys)
        # An empty list also shows a task, unless another key has a value.
        found = [task for task in tasks if values[task] not in (None, [], {})]
        found = found or [task for task in tasks if values[task] is not None]
        for task in found:
            yield Candidate(task.name, f"{where} has {task.json_keys[0]}")
        older = record.get(OLDER_KEY)
        if not found and tasks[0].kind == "text" and isinstance(older, list) and older:
            task, what = _task_of_older(older)
            yield Candidate(task.name, f"{where} has {what}")
        elif not found:
            # Videos have only one task, so their key decides.
            yield Candidate(tasks[0].name, f"{where} has {key}", int(len(tasks) == 1))
        return


def _task_of_older(annotations: Sequence[Any]) -> tuple[type[Task], str]:
    kinds = {name for item in annotations if isinstance(item, Mapping) for name in item}
    if not kinds.isdisjoint({"text_extraction", "textExtraction"}):
        return TextEntities, f"{OLDER_KEY} of parts of a text"
    if not kinds.isdisjoint({"text_sentiment", "textSentiment"}):
        return TextSentiment, f"{OLDER_KEY} of a sentiment"
    if len(annotations) > 1:
        return TextMultiLabel, f"{len(annotations)} {OLDER_KEY}"
    return TextClassification, f"one of {OLDER_KEY}"


def _tokens_and_tags(record: Mapping[str, Any]) -> Sequence[str]:
    """Return two keys with lists of the same length, as tokens and their tags; none without."""
    lists = {key: value for key, value in record.items() if isinstance(value, list) and value}
    texts = [key for key, value in lists.items() if all(isinstance(each, str) for each in value)]
    flat = [key for key, value in lists.items() if isinstance(value[0], str | int)]
    pairs = ((one, key) for one in texts for key in flat if one != key)
    return next((pair for pair in pairs if len(lists[pair[0]]) == len(lists[pair[1]]) > 1), ())


def _are_spans(value: Any) -> bool:
    """Return whether a value is spans of a text, as doccano and spaCy write them."""
    items = value if isinstance(value, list) else []
    return bool(items) and all(
        [*map(type, item[:2])] == [int, int] and str in map(type, item)
        if isinstance(item, list)
        else isinstance(item, dict) and len(_OFFSETS.intersection(item)) > 1
        for item in items
    )
