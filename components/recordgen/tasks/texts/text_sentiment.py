"""Text sentiment, a whole number per text: ``[ML_USE],TEXT,[SENTIMENT]``.

Vertex AI "Prepare text training data for sentiment analysis"::

    TRAIN,"Good, and cheap.",2
    {"textContent": "Good, and cheap.", "sentimentAnnotation": {"sentiment": 2, "sentimentMax": 4}}

become ``class/text: b"2"`` and ``class/label: 2``. 0 is the worst, and the vocabulary has all whole
numbers up to the largest in the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recordgen.core.settings import TaskSettings
from recordgen.core.task.annotation import bad_annotation
from recordgen.core.task.annotations import ONE
from recordgen.core.task.task import Task
from recordgen.errors import UsageError
from recordgen.tasks.lines import either
from recordgen.tasks.spelling import check_spelling
from recordgen.tasks.texts.labelled_text import OneLabel, older_annotations

#: The largest sentiment in Vertex AI.
MAX_SENTIMENT = 10

_WHOLE = re.compile(r"([0-9]{1,9})(\.0{1,9})?", re.ASCII)
_OLDER_KEYS = ("text_sentiment", "textSentiment")


class TextSentiment(OneLabel):
    """Text sentiment: at most one whole number from 0 to 10 per text."""

    name = "text_sentiment"
    expected = "[ML_USE],TEXT,[SENTIMENT]"
    json_keys = ("sentimentAnnotation",)
    labelling = ONE
    trainer = "recordgen.tasks.texts.training:OneTextLabel"
    measure = "recordgen.training.measures:OneLabelAccumulator"
    sample = "pipelines.samples.reviews:SENTIMENTS"
    page = "docs/tasks/text_classification.md"

    @classmethod
    def of(cls, settings: TaskSettings) -> Task:
        if settings.labels == "text":
            raise UsageError(
                f"labels=text does not apply to {cls.name}: a sentiment is a number, and its own "
                f"number in the vocabulary; omit it"
            )
        return cls()

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        found = record.get("sentimentAnnotation")
        older = [either(item, _OLDER_KEYS) for item in older_annotations(record, _OLDER_KEYS)]
        if len(older) > 1 or (older and found is not None):
            raise bad_annotation("expected one sentiment per text (got several)")
        if found is None:
            if not older:
                return []
            [found] = older
        if not isinstance(found, Mapping):
            return [_sentiment(found, MAX_SENTIMENT)]
        most = either(found, ("sentimentMax", "sentiment_max"))
        check_spelling(found, ("sentiment", "sentimentMax", "sentiment_max"), "a sentiment")
        limit = MAX_SENTIMENT if most is None else int(_sentiment(most, MAX_SENTIMENT))
        # protobuf's JSON omits a 0.
        return [_sentiment(found.get("sentiment", None if most is None else 0), limit)]

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        return [_sentiment(label, MAX_SENTIMENT) for label in super().check_labels(labels)]


def _sentiment(value: Any, most: int) -> str:
    """Return the label of a sentiment: ``2``, ``2.0`` and ``"02"`` → ``"2"``.

    Raises: AnnotationError: it is not a whole number from 0 to ``most``.
    """
    whole = None if isinstance(value, bool) else _WHOLE.fullmatch(str(value))
    if whole is not None and int(whole[1]) <= most:
        return str(int(whole[1]))
    raise bad_annotation(
        f"a sentiment must be a whole number from 0 to {most} (got {value!r:.80})",
    )
