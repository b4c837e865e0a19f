"""The base of all text tasks, and those that label whole texts: ``[ML_USE],TEXT,[LABEL]``.

The payload is in the row, or is a text file. An annotation is a JSON object with the ``text``,
unless it is in a file, and with the task's own annotation under ``said``, if there is one. Here it
is the sorted list of labels: one label, any number, or a sentiment.

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
vocabulary, which has all whole numbers up to the largest sentiment in the data.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from recordgen import features
from recordgen.core.dataset.counts import record_line
from recordgen.core.facts import MEASURES, TEXTS
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.records.example import parse_example, serialize_example
from recordgen.core.rows.row import Adjustments, content_uri, is_content_uri
from recordgen.core.task import task
from recordgen.core.task.annotation import (
    AnnotationError,
    Merged,
    RowContent,
    bad_annotation,
    check_label,
    check_uri,
    printable,
)
from recordgen.errors import PayloadError, UsageError
from recordgen.messages import listed
from recordgen.options import ConvertOptions
from recordgen.rejects import RejectCode
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import lines

if TYPE_CHECKING:
    from recordgen.measures.texts import SeenText

#: The key of text in a line of JSONL.
CONTENT_KEY = "textContent"

#: Keys of the older shape of a line: the object with the text, and the uri of the text's file.
_SNIPPET_KEYS = ("text_snippet", "textSnippet")
_SNIPPET_FILE_KEYS = ("content_uri", "contentUri")


# json.dumps would make one for each row.
_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


class TextContent(NamedTuple):
    """The decoded annotation of a text.

    Attributes:
        text: the payload; None if it is in a file.
        said: the task's own annotation, a JSON value, or None.
    """

    text: str | None
    said: Any

    def encode(self) -> str | None:
        """Return the annotation; None if it would be empty."""
        values = {name: value for name, value in self._asdict().items() if value is not None}
        return _JSON.encode(values) if values else None

    @classmethod
    def decode(cls, annotation: str | None) -> TextContent:
        """Return the content of an annotation, the inverse of :meth:`encode`."""
        values = json.loads(annotation) if annotation is not None else {}
        return cls(values.get("text"), values.get("said"))


class TextTask(task.Task):
    """A task whose payloads are texts."""

    kind = "text"
    noun = "text"
    uri_key = "textGcsUri"
    csv_parser: ClassVar[str | None] = "recordgen.formats.automl_csv:TextParser"
    reading = "recordgen.tasks.texts.reading:TEXTS"
    pairing: ClassVar[str | None] = "recordgen.tasks.pairing:texts"
    facts = (TEXTS, MEASURES)

    def preview(self, uri: str, annotation: str | None) -> tuple[str, str | None]:
        subject, shown = super().preview(uri, annotation)
        if is_content_uri(uri) and annotation is not None:
            subject = TextContent.decode(annotation).text or ""
        return subject, shown

    def uri_of(self, record: Mapping[str, Any]) -> str:
        try:
            is_text = self.labelling in task.ADDING  # or else the text is not needed
            return row_of_line(record, None).uri if is_text else super().uri_of(record)
        except AnnotationError:
            return ""

    def annotations_for_checks(self, annotations: task.Texts) -> Sequence[str | None]:
        contents = map(TextContent.decode, annotations.to_pylist())
        return [content._replace(text=None).encode() for content in contents]

    def seen(self, text: str, data: bytes, settings: PayloadSettings) -> SeenText | None:
        """Return the text for the checks, or None if no selected check reads texts.

        ``data`` is the text in UTF-8.
        """
        if not settings.needs_looks:
            return None
        from recordgen.measures.texts import SeenText  # reading rows does not need numpy

        return SeenText(data, len(text))


def inline(text: str, said: Any) -> RowContent:
    """Return the row of a text that it contains.

    Raises: AnnotationError: the text is empty, or not Unicode.
    """
    if not text.strip():
        raise AnnotationError(
            RejectCode.EMPTY_TEXT, "the text is empty; delete the row, or give it a text"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise AnnotationError(
            RejectCode.BAD_ENCODING,
            f"character {exc.start + 1} of the text is half of a surrogate pair, which UTF-8 "
            f"cannot hold; write the whole character",
        ) from exc
    return RowContent(content_uri(text), TextContent(text, said).encode())


def stored(uri: str, said: Any) -> RowContent:
    """Return the row of a text file."""
    return RowContent(uri, TextContent(None, said).encode())


def row_of_line(record: Mapping[str, Any], said: Any) -> RowContent:
    """Return the row of a line of JSONL, given its annotation ``said``.

    Raises: AnnotationError: as :func:`payload_of_line` and :func:`inline`.
    """
    text, uri = payload_of_line(record)
    return stored(uri, said) if text is None else inline(text, said)


def payload_of_line(record: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the text of a line of JSONL and "", or None and the uri of its text file.

    The text is ``textContent``, or the file ``textGcsUri``; in the older shape of AutoML Natural
    Language ``{"text_snippet": {"content": …}}``, or ``content_uri`` there.

    Raises: AnnotationError: the line has neither a text nor a text file, or both.
    """
    text, file = record.get(CONTENT_KEY), record.get(TextTask.uri_key)
    if (snippet := lines.either(record, _SNIPPET_KEYS)) is not None:
        if not isinstance(snippet, Mapping):
            raise bad_annotation(
                f'text_snippet must be an object, such as {{"content": "…"}} (got {snippet!r:.80})'
            )
        text = snippet.get("content") if text is None else text
        file = lines.either(snippet, _SNIPPET_FILE_KEYS) if file is None else file
    if text is not None and file is not None:
        raise bad_annotation(
            f"a line must have a text ({CONTENT_KEY}) or the uri of a text file "
            f"({TextTask.uri_key}), not both"
        )
    if text is not None:
        if not isinstance(text, str):
            raise bad_annotation(f"{CONTENT_KEY} must be a text (got {text!r:.80})")
        return text, ""
    if not isinstance(file, str) or not file.strip():
        raise AnnotationError(
            RejectCode.NO_PATH,
            f"each line needs {CONTENT_KEY}, the text, or {TextTask.uri_key}, a text file's path "
            f"or URL (got the keys {', '.join(map(printable, record)) or 'none'!s:.80})",
        )
    return None, check_uri(file.strip())


def text_of(annotation: str | None, files: Sequence[bytes], encoding: str = "") -> str:
    """Return the text of a row, from its annotation or its only file, which is UTF-8 by default.

    Raises: PayloadError: the file does not have the encoding, or contains only blanks.
    """
    own = TextContent.decode(annotation).text
    if own is not None:
        return own
    [data] = files
    try:
        text = data.decode(encoding or "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as exc:
        raise PayloadError(
            RejectCode.BAD_ENCODING.value,
            f"byte {exc.start + 1} of the text is not {encoding or 'UTF-8'}; save the file as UTF-8"
            f"; if all texts of a folder have another encoding, name it with --encoding",
        ) from exc
    if not text.strip():
        raise PayloadError(
            RejectCode.EMPTY_TEXT.value, "the text is empty; delete the row, or give it a text"
        )
    return text


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
        found, duplicates = lines.add_up(map(_labels, annotations))
        text = TextContent.decode(annotations[0]).text  # equal in all: the uri is its hash
        return Merged(_content(found, text).encode(), duplicates)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return not set(_labels(annotation)) <= set(_labels(stored))

    def labels(self, annotation: str) -> Sequence[str]:
        return _labels(annotation)

    @task.each_row
    def make(self, fetched: task.FetchedRow) -> task.BuiltExample:
        row, payloads, vocabulary, settings = fetched
        own = text_of(row.annotation, payloads, settings.text_encoding)
        text = own.encode()
        labels = _labels(row.annotation)
        record = serialize_example(
            {
                features.TEXT: text,
                features.TEXT_SOURCE_ID: row.uri.encode(),
                **vocabulary.features(labels, _FEATURES),
            }
        )
        return task.BuiltExample(
            record,
            labels,
            _digested(text, labels, row.uri),
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
        return _digested(text, labels, lines.stored_uri(uri))


class OneLabel(LabelledText):
    """A task that gives each text at most one label."""

    features: ClassVar = features.TEXT_CLASSIFICATION
    labelling = task.ONE
    trainer = "recordgen.tasks.texts.training:OneTextLabel"
    measure = "recordgen.training.measures:OneLabelAccumulator"

    def part(self, uri: str, annotation: str | None) -> str:
        """Return all that a row with its text says: no other row adds to it, or contradicts it."""
        return listed(_labels(annotation)) if is_content_uri(uri) else ""

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        labels = sorted(set().union(*map(_labels, annotations)))
        if len(labels) > 1:
            message = f"one text, several labels: {listed(labels)}"
            raise AnnotationError(RejectCode.CONFLICTING_LABELS, message)
        return super().merge(annotations)._replace(duplicates=len(annotations) - 1)

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        found = list(labels)
        if len(found) > 1:
            raise lines.too_many_fields(
                f"expected {self.expected} (got {len(found)} fields after the text); quote a text "
                f"that holds a comma"
            )
        return super().check_labels(found)


class TextClassification(OneLabel):
    """Text classification with at most one label per text."""

    name = "text_classification"
    expected = "[ML_USE],TEXT,[LABEL]"
    json_keys = ("classificationAnnotation",)

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        if (one := record.get("classificationAnnotation")) is not None:
            return [lines.display_name(one, "classificationAnnotation")]
        labels = older_labels(record)
        if len(labels) > 1:
            raise bad_annotation(
                f"expected one label per text (got {', '.join(map(repr, labels)):.80}); for "
                f"several, use --task text_multi_label"
            )
        return labels


class TextMultiLabel(LabelledText):
    """Text classification with any number of labels per text; those of its rows are merged."""

    name = "text_multi_label"
    expected = "[ML_USE],TEXT,[LABEL1,…,LABELn]"
    json_keys = ("classificationAnnotations", "classificationAnnotation")
    features: ClassVar = features.TEXT_MULTI_LABEL
    labelling = task.SEVERAL
    trainer = "recordgen.tasks.texts.training:ManyTextLabels"
    measure = "recordgen.training.measures:ManyLabelsAccumulator"

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        return self.check_labels(
            lines.display_names(record, *self.json_keys) + older_labels(record)
        )

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        found = super().check_labels(labels)
        if len(found) > _MAX_LABELS:
            raise lines.too_many_fields(
                f"a text must have at most {_MAX_LABELS} labels (got {len(found)}); quote a text "
                f"that holds commas"
            )
        return found


class TextSentiment(OneLabel):
    """Text sentiment: at most one whole number from 0 to 10 per text."""

    name = "text_sentiment"
    expected = "[ML_USE],TEXT,[SENTIMENT]"
    json_keys = ("sentimentAnnotation",)

    @classmethod
    def of(cls, options: ConvertOptions) -> task.Task:
        if options.labels == "text":
            raise UsageError(
                f"labels=text does not apply to {cls.name}: a sentiment is a number, and its own "
                f"number in the vocabulary; omit it"
            )
        return cls()

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        found = record.get("sentimentAnnotation")
        older = [lines.either(item, _OLDER_KEYS) for item in older_annotations(record, _OLDER_KEYS)]
        if len(older) > 1 or (older and found is not None):
            raise bad_annotation("expected one sentiment per text (got several)")
        if found is None:
            if not older:
                return []
            [found] = older
        if not isinstance(found, Mapping):
            return [_sentiment(found, MAX_SENTIMENT)]
        most = lines.either(found, ("sentimentMax", "sentiment_max"))
        lines.check_spelling(found, ("sentiment", "sentimentMax", "sentiment_max"), "a sentiment")
        limit = MAX_SENTIMENT if most is None else int(_sentiment(most, MAX_SENTIMENT))
        # protobuf's JSON omits a 0.
        return [_sentiment(found.get("sentiment", None if most is None else 0), limit)]

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        return [_sentiment(label, MAX_SENTIMENT) for label in super().check_labels(labels)]


def objects_in(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the list of objects under a key, or []. Raises: AnnotationError."""
    found = lines.list_in(record, key)
    if not all(isinstance(item, Mapping) for item in found):
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
                f"separate files"
            )
    return found


def older_labels(record: Mapping[str, Any]) -> list[str]:
    """Return the labels of annotations in the older shape. Raises: AnnotationError."""
    found = older_annotations(record, ("classification",))
    return [lines.display_name(item, f"each of {OLDER_KEY}", NAME_KEYS) for item in found]


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
    raise bad_annotation(f"a sentiment must be a whole number from 0 to {most} (got {value!r:.80})")
