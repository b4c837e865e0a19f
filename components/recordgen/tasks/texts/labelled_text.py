"""The tasks that label texts: one label, any number, or a sentiment: ``[ML_USE],TEXT,[LABEL]``.

Vertex AI "Prepare text training data for classification", single-label and multi-label, and
"… for sentiment analysis", where 0 is the worst::

    TRAIN,"Good, and cheap.",praise
    {"textContent": "Good, and cheap.", "classificationAnnotation": {"displayName": "praise"}}

    TRAIN,"Good, but late.",praise,delivery
    {"textContent": "Good, but late.",
     "classificationAnnotations": [{"displayName": "praise"}, {"displayName": "delivery"}]}

    TRAIN,"Good, and cheap.",2
    {"textContent": "Good, and cheap.", "sentimentAnnotation": {"sentiment": 2, "sentimentMax": 4}}

become ``class/text: [b"delivery", b"praise"]`` and ``class/label: [0, 1]``, in the order of the
vocabulary, which has all whole numbers up to the largest sentiment in the data. ``said`` of an
annotation (:mod:`recordgen.tasks.texts.text_task`) is the sorted list of labels.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from recordgen import features
from recordgen.core.dataset.counts import record_line
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records.example import parse_example, serialize_example
from recordgen.core.rows.planned import PlannedRow
from recordgen.core.rows.row import Adjustments
from recordgen.core.settings import PayloadSettings, TaskSettings
from recordgen.core.task.annotation import (
    AnnotationError,
    Merged,
    RowContent,
    bad_annotation,
    check_label,
)
from recordgen.core.task.annotations import ONE, SEVERAL
from recordgen.core.task.built import BuiltExample
from recordgen.core.task.examples import each_row
from recordgen.core.task.task import Task
from recordgen.errors import UsageError
from recordgen.messages import listed
from recordgen.rejects import RejectCode
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks.lines import (
    add_up,
    check_spelling,
    display_name,
    display_names,
    either,
    label_features,
    stored_uri,
)
from recordgen.tasks.texts.text_task import TextContent, TextTask, row_of_line, text_of

#: The key of the annotations in the older shape of a line.
OLDER_KEY = "annotations"
#: The keys of an annotation's label in that shape.
NAME_KEYS = ("display_name", "displayName")

_FEATURES = features.CLASS_TEXT, features.CLASS_LABEL

_IGNORED_KEYS = ("annotation_spec_id", "annotationSpecId")

# AutoML's limit. A line with more is an unquoted text full of commas.
_MAX_LABELS = 100

#: The largest sentiment in Vertex AI.
MAX_SENTIMENT = 10

_WHOLE = re.compile(r"([0-9]{1,9})(\.0{1,9})?", re.ASCII)
_OLDER_KEYS = ("text_sentiment", "textSentiment")


class LabelledText(TextTask):
    """A task that gives each text labels."""

    columns: ClassVar = {"label": LABEL_COLUMNS | {"sentiment"}}
    page = "docs/tasks/text_classification.md"

    @abstractmethod
    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        """Return the labels in a line of a JSONL file. Raises: AnnotationError."""

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        """Check and normalise the labels of a CSV line. Raises: AnnotationError."""
        return list(map(check_label, labels))

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        return _content(self.check_labels(filter(None, fields))).encode()

    def from_record(self, record: Mapping[str, Any], adjusted: Adjustments) -> Sequence[RowContent]:
        return [row_of_line(record, _content(self.from_json(record)).said)]

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        found, duplicates = add_up(map(_labels, annotations))
        text = TextContent.decode(annotations[0]).text  # equal in all: the uri is its hash
        return Merged(_content(found, text).encode(), duplicates)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return not set(_labels(annotation)) <= set(_labels(stored))

    def labels(self, annotation: str) -> Sequence[str]:
        return _labels(annotation)

    def shown(self, annotation: str) -> str:
        return listed(_labels(annotation))

    @each_row
    def make(
        self,
        row: PlannedRow,
        payloads: Sequence[bytes],
        vocabulary: Vocabulary,
        settings: PayloadSettings,
    ) -> BuiltExample:
        own = text_of(row.annotation, payloads, settings.text_encoding)
        text = own.encode()
        labels = _labels(row.annotation)
        record = serialize_example(
            {
                features.TEXT: text,
                features.TEXT_SOURCE_ID: row.uri.encode(),
                **label_features(labels, vocabulary, _FEATURES),
            }
        )
        return BuiltExample(
            record,
            _digested(text, labels, row.uri),
            labels,
            content=hashlib.sha256(text).digest(),
            seen=self.seen(own, text, settings),
        )

    @classmethod
    def digested(cls, record: bytes) -> bytes:
        values: Mapping[str, Any] = parse_example(record)
        [text], [uri] = (
            values.get(name, [b""]) for name in (features.TEXT, features.TEXT_SOURCE_ID)
        )
        labels = sorted(label.decode() for label in values.get(features.CLASS_TEXT, ()))
        return _digested(text, labels, stored_uri(uri))


class OneLabel(LabelledText):
    """A task that gives each text at most one label."""

    features: ClassVar = features.TEXT_CLASSIFICATION
    labelling = ONE
    trainer = "recordgen.tasks.texts.training:OneTextLabel"
    measure = "recordgen.training.measures:OneLabelAccumulator"

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        labels = sorted(set().union(*map(_labels, annotations)))
        if len(labels) > 1:
            raise AnnotationError(
                RejectCode.CONFLICTING_LABELS,
                f"one text, several labels: {listed(labels)}",
            )
        return super().merge(annotations)._replace(duplicates=len(annotations) - 1)

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        found = list(labels)
        if len(found) > 1:
            raise AnnotationError(
                RejectCode.TOO_MANY_FIELDS,
                f"expected {self.expected} (got {len(found)} fields after the text); quote a text "
                f"that holds a comma",
            )
        return super().check_labels(found)


class TextClassification(OneLabel):
    """Text classification with at most one label per text."""

    name = "text_classification"
    expected = "[ML_USE],TEXT,[LABEL]"
    json_keys = ("classificationAnnotation",)
    sample = "pipelines.samples.reviews:TOPICS"

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        if (one := record.get("classificationAnnotation")) is not None:
            return [display_name(one, "classificationAnnotation")]
        labels = older_labels(record)
        if len(labels) > 1:
            raise bad_annotation(
                f"expected one label per text (got {', '.join(map(repr, labels)):.80}); for "
                f"several, use --task text_multi_label",
            )
        return labels


class TextMultiLabel(LabelledText):
    """Text classification with any number of labels per text; those of its rows are merged."""

    name = "text_multi_label"
    expected = "[ML_USE],TEXT,[LABEL1,…,LABELn]"
    json_keys = ("classificationAnnotations", "classificationAnnotation")
    features: ClassVar = features.TEXT_MULTI_LABEL
    labelling = SEVERAL
    trainer = "recordgen.tasks.texts.training:ManyTextLabels"
    measure = "recordgen.training.measures:ManyLabelsAccumulator"
    sample = "pipelines.samples.reviews:TOPIC_SETS"

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        return self.check_labels(display_names(record, *self.json_keys) + older_labels(record))

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        found = super().check_labels(labels)
        if len(found) > _MAX_LABELS:
            raise AnnotationError(
                RejectCode.TOO_MANY_FIELDS,
                f"a text must have at most {_MAX_LABELS} labels (got {len(found)}); quote a text "
                f"that holds commas",
            )
        return found


class TextSentiment(OneLabel):
    """Text sentiment: at most one whole number from 0 to 10 per text."""

    name = "text_sentiment"
    expected = "[ML_USE],TEXT,[SENTIMENT]"
    json_keys = ("sentimentAnnotation",)
    sample = "pipelines.samples.reviews:SENTIMENTS"

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


def objects_in(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the list of objects under a key, or []. Raises: AnnotationError."""
    found = record.get(key) or []
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise bad_annotation(f"{key} must be a list of objects (got {found!r:.80})")
    return found


def older_annotations(
    record: Mapping[str, Any], keys: Sequence[str]
) -> Sequence[Mapping[str, Any]]:
    """Return the annotations of the older shape: ``[{"display_name": "a", "classification": {}}]``.

    ``keys`` are the keys that such an annotation may have in addition to its name.

    Raises: AnnotationError: the annotations are not a list of objects, or of another task.
    """
    found = objects_in(record, OLDER_KEY)
    for item in found:
        other = sorted(set(item) - {*keys, *NAME_KEYS, *_IGNORED_KEYS})
        if other:
            raise bad_annotation(
                f"each of {OLDER_KEY} must hold {keys[0]} (got "
                f"{', '.join(map(ascii, other)):.80}); keep the rows of different tasks in "
                f"separate files",
            )
    return found


def older_labels(record: Mapping[str, Any]) -> list[str]:
    """Return the labels of annotations in the older shape. Raises: AnnotationError."""
    found = older_annotations(record, ("classification",))
    return [display_name(item, f"each of {OLDER_KEY}", NAME_KEYS) for item in found]


def _content(labels: Iterable[str], text: str | None = None) -> TextContent:
    return TextContent(text, sorted(set(labels)) or None)


def _labels(annotation: str | None) -> Sequence[str]:
    return TextContent.decode(annotation).said or []


def _digested(text: bytes, labels: Sequence[str], uri: str) -> bytes:
    annotation = json.dumps(list(labels), ensure_ascii=False) if labels else None
    return record_line(hashlib.sha256(text).hexdigest(), annotation, uri)


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
