"""The base of the tasks that label texts: labels, and the features of an example.

``said`` of an annotation (:mod:`recordgen.tasks.texts.text_task`) is the sorted list of labels.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from recordgen import features
from recordgen.core.dataset.counts import record_line
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records.example import FeatureValue, parse_example, serialize_example
from recordgen.core.rows.planned import PlannedRow
from recordgen.core.rows.row import Adjustments
from recordgen.core.settings import PayloadSettings
from recordgen.core.task.annotation import (
    AnnotationError,
    Merged,
    RowContent,
    bad_annotation,
    check_label,
)
from recordgen.core.task.built import BuiltExample
from recordgen.core.task.examples import each_row
from recordgen.messages import listed
from recordgen.rejects import RejectCode
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks.lines import add_up, display_name, stored_uri
from recordgen.tasks.texts.text_task import TextContent, TextTask, row_of_line, text_of

#: The key of the annotations in the older shape of a line.
OLDER_KEY = "annotations"
#: The keys of an annotation's label in that shape.
NAME_KEYS = ("display_name", "displayName")

_IGNORED_KEYS = ("annotation_spec_id", "annotationSpecId")


class LabelledText(TextTask):
    """A task that gives each text labels."""

    columns: ClassVar = {"label": LABEL_COLUMNS | {"sentiment"}}

    @abstractmethod
    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        """Return the labels in a line of a JSONL file. Raises: AnnotationError."""

    @abstractmethod
    def class_features(self, texts: Sequence[bytes], numbers: Sequence[int]) -> dict[str, Any]:
        """Return the features of at least one label, in the order of their numbers."""

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
        values: dict[str, FeatureValue] = {
            features.TEXT: text,
            features.TEXT_SOURCE_ID: row.uri.encode(),
        }
        if labels:
            numbered = sorted((vocabulary.index(label), label) for label in labels)
            values |= self.class_features(
                [label.encode() for _, label in numbered], [number for number, _ in numbered]
            )
        return BuiltExample(
            serialize_example(values),
            _digested(text, labels, row.uri),
            labels,
            content=hashlib.sha256(text).digest(),
            seen=self.seen(own, text, vocabulary, settings),
        )

    def digested(self, record: bytes) -> bytes:
        values: Mapping[str, Any] = parse_example(record)
        [text], [uri] = (
            values.get(name, [b""]) for name in (features.TEXT, features.TEXT_SOURCE_ID)
        )
        labels = sorted(label.decode() for label in values.get(features.CLASS_TEXT, ()))
        return _digested(text, labels, stored_uri(uri))


class OneLabel(LabelledText):
    """A task that gives each text at most one label."""

    features: ClassVar = features.TEXT_CLASSIFICATION

    def class_features(self, texts: Sequence[bytes], numbers: Sequence[int]) -> dict[str, Any]:
        return {features.CLASS_TEXT: texts[0], features.CLASS_LABEL: numbers[0]}

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
