"""What the keys of a JSON object say about its task: Vertex AI's keys, and AutoML's older ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from recordgen.sources.evidence import Reading
from recordgen.tasks.image_classification import ImageClassification
from recordgen.tasks.image_multi_label import ImageMultiLabel
from recordgen.tasks.labelled_text import OLDER_KEY
from recordgen.tasks.object_detection import ObjectDetection
from recordgen.tasks.text_classification import TextClassification
from recordgen.tasks.text_entities import TextEntities
from recordgen.tasks.text_multi_label import TextMultiLabel
from recordgen.tasks.text_sentiment import TextSentiment
from recordgen.tasks.text_task import CONTENT_KEY
from recordgen.tasks.video_classification import VideoClassification


def read_object(record: Mapping[str, Any], where: str) -> Iterator[Reading]:
    """Yield the tasks whose keys an object has; of one without annotations a count of 0.

    An object is about one thing: an image may have a text beside it.
    """
    for keys, of_record in _SUBJECTS:
        if key := next((key for key in keys if key in record), None):
            for reading in of_record(record, key):
                yield reading._replace(reason=f"{where} has {reading.reason}")
            return


def _of_image(record: Mapping[str, Any], key: str) -> Iterator[Reading]:
    tasks = (ImageClassification, ImageMultiLabel, ObjectDetection)
    found = [task for task in tasks if record.get(task.json_keys[0])]
    yield from (Reading(task.name, task.json_keys[0]) for task in found)
    if not found:
        yield Reading(ImageClassification.name, key, 0)


def _of_text(record: Mapping[str, Any], key: str) -> Iterator[Reading]:
    tasks = (TextClassification, TextMultiLabel, TextSentiment, TextEntities)
    found = [
        Reading(task.name, task.json_keys[0])
        for task in tasks
        if record.get(task.json_keys[0]) is not None
    ]
    older = record.get(OLDER_KEY)
    if not found and isinstance(older, list) and older:
        found = [_of_older(older)]
    yield from found or [Reading(TextClassification.name, key, 0)]


def _of_older(annotations: Sequence[Any]) -> Reading:
    kinds = {name for item in annotations if isinstance(item, Mapping) for name in item}
    if not kinds.isdisjoint({"text_extraction", "textExtraction"}):
        return Reading(TextEntities.name, f"{OLDER_KEY} of parts of a text")
    if not kinds.isdisjoint({"text_sentiment", "textSentiment"}):
        return Reading(TextSentiment.name, f"{OLDER_KEY} of a sentiment")
    if len(annotations) > 1:
        return Reading(TextMultiLabel.name, f"{len(annotations)} {OLDER_KEY}")
    return Reading(TextClassification.name, f"one of {OLDER_KEY}")


def _of_video(record: Mapping[str, Any], key: str) -> Iterator[Reading]:
    yield Reading(VideoClassification.name, key)


# Keys under which an object says what it is about, and what tells its task then.
_SUBJECTS: Sequence[tuple[Sequence[str], Callable[[Mapping[str, Any], str], Iterator[Reading]]]] = (
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
