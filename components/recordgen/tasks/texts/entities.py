"""Entities in texts: any number of labelled spans that do not overlap.

Vertex AI "Prepare text training data for entity extraction"; offsets count characters (or the units
that ``--columns offsets=…`` names, see :mod:`.offsets`), and the end is exclusive::

    {"textContent": "Anna flew to New York.", "textSegmentAnnotations":
     [{"startOffset": 13, "endOffset": 21, "displayName": "city"}]}

becomes ``entity/start: [13]``, ``entity/end: [21]``, ``entity/class/text: [b"city"]`` and, token by
token, ``tags/text: [b"O", b"O", b"O", b"B-city", b"I-city", b"O"]``. The annotation holds the
spans as ``[start, end, label]``, a flag if the source gave tokens, which blanks separate, and the
unit of the offsets if it is not the character, because the text is in a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recordgen import features
from recordgen.core.records.example import serialize_example
from recordgen.core.rows.row import Adjustments, is_content_uri
from recordgen.core.task import task
from recordgen.core.task.annotation import AnnotationError, Merged, RowContent, bad_annotation
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.rejects import RejectCode
from recordgen.tables.roles import AUTO
from recordgen.tasks.lines import check_spelling, display_name, either
from recordgen.tasks.texts import tags
from recordgen.tasks.texts.tags import CODEPOINTS, Span, TagError, tag_number, tokenize
from recordgen.tasks.texts.task import (
    NAME_KEYS,
    OLDER_KEY,
    TextContent,
    TextTask,
    inline,
    objects_in,
    payload_of_line,
    stored,
    text_of,
)

#: Names in ``rows.adjusted`` of ``dataset.json``.
TAGS_BEGUN = "tags_begun"
TOKENS_CUT = "spans_within_words"

#: The output file that lists the tags in the order of their numbers.
TAGS_FILE = "tags.txt"

_SPANS_KEY = "textSegmentAnnotations"
_SPAN_KEYS = ("startOffset", "endOffset", "displayName")
_OLDER_SPAN_KEYS = (("start_offset", "startOffset"), ("end_offset", "endOffset"))

# Keys of ``said`` in an annotation.
_SPANS, _BLANKS, _UNIT = "spans", "blanks", "offsets"


@dataclass(frozen=True)
class TextEntities(TextTask):
    """Entity extraction.

    Attributes:
        offsets: unit of the offsets in import files.
    """

    name = "text_entities"
    kind = "entities"
    expected = '{"textContent": TEXT, "textSegmentAnnotations": [SPAN, …]}'
    labelling = task.OWN_PARTS
    details_noun = "entities"
    json_keys = (_SPANS_KEY,)
    features: ClassVar = features.TEXT_ENTITIES
    csv_parser = None
    reading = "recordgen.tasks.texts.reading:ENTITIES"
    pairing = "recordgen.tasks.pairing:entities"
    trainer = "recordgen.tasks.texts.training:EntityTagger"
    measure = "recordgen.training.measures:EntityAccumulator"

    offsets: str = CODEPOINTS

    @classmethod
    def of(cls, options: ConvertOptions) -> task.Task:
        return cls(CODEPOINTS if options.columns.offsets == AUTO else options.columns.offsets)

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        raise bad_annotation(f"{self.name} needs lines such as {self.expected}")

    def from_record(self, record: Mapping[str, Any], adjusted: Adjustments) -> Sequence[RowContent]:
        spans = sorted(set(spans_in(record)))
        text, uri = payload_of_line(record)
        if text is None:
            return [stored(uri, _encode(spans, unit=self.offsets))]
        row = inline(text, _encode(spans))
        try:
            by_characters = tags.in_codepoints(text, spans, self.offsets)
            cut = tags.cut_spans_in(text, by_characters)
        except TagError as exc:
            raise bad_annotation(str(exc)) from exc
        for span in cut:
            adjusted.add(
                TOKENS_CUT,
                f"the entity {span} begins or ends within a word; whole words are tagged, the "
                f"span stays as it is",
            )
        return [row if by_characters == spans else inline(text, _encode(by_characters))]

    def part(self, uri: str, annotation: str | None) -> str:
        """Return all that a row with its text says: no other row adds to it, or contradicts it."""
        return repr(_spans(annotation)) if is_content_uri(uri) else ""

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        first, *others = annotations
        if any(_spans(other) != _spans(first) for other in others):
            raise AnnotationError(RejectCode.CONFLICTING_LABELS, "one file, several readings")
        return Merged(first, len(others))

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return _spans(annotation) != _spans(stored)

    def details(self, annotation: str) -> Sequence[Span]:
        return _spans(annotation)

    def labels(self, annotation: str) -> Sequence[str]:
        return sorted({span.label for span in _spans(annotation)})

    def shown(self, annotation: str) -> str:
        return f"{', '.join(map(str, _spans(annotation))) or 'none'!s:.80}"

    @task.each_row
    def make(self, fetched: task.FetchedRow) -> task.BuiltExample:
        row, payloads, vocabulary, settings = fetched
        text = text_of(row.annotation, payloads, settings.text_encoding)
        said = TextContent.decode(row.annotation).said or {}
        tokens = (tags.split_at_blanks if _BLANKS in said else tokenize)(text)
        spans = _spans(row.annotation)
        try:
            spans = tags.in_codepoints(text, spans, said.get(_UNIT, CODEPOINTS))
            tagged = tags.checked_tags(text, tokens, spans)
        except TagError as exc:
            raise PayloadError(RejectCode.BAD_ANNOTATION.value, str(exc)) from exc
        numbers = [vocabulary.index(span.label) for span in spans]
        by_label = dict(zip((span.label for span in spans), numbers, strict=True))
        record = serialize_example(
            {
                features.TEXT: text.encode(),
                features.TEXT_SOURCE_ID: row.uri.encode(),
                features.TOKENS: [text[start:end].encode() for start, end in tokens],
                features.TAGS_TEXT: [tag.encode() for tag in tagged],
                features.TAGS_LABEL: [tag_number(tag, by_label.get(tag[2:], 0)) for tag in tagged],
                features.ENTITY_START: [span.start for span in spans],
                features.ENTITY_END: [span.end for span in spans],
                features.ENTITY_TEXT: [span.label.encode() for span in spans],
                features.ENTITY_LABEL: numbers,
            }
        )
        data = text.encode()
        return task.BuiltExample(
            record,
            sorted(by_label),
            content=hashlib.sha256(data).digest(),
            seen=self.seen(text, data, settings),
        )

    @classmethod
    def files(cls, labels: Sequence[str]) -> Mapping[str, str]:
        return {TAGS_FILE: "".join(f"{tag}\n" for tag in tags.tag_names(labels))}


def said_of_tokens(tokens: Sequence[str], spans: Iterable[Span]) -> RowContent:
    """Return the row of a text given as tokens; spans refer to the tokens joined by blanks."""
    text = " ".join(tokens)
    own = [text[start:end] for start, end in tokenize(text)]
    return inline(text, _encode(spans, own != list(tokens)))


def _encode(
    spans: Iterable[Span], has_blanks: bool = False, unit: str = CODEPOINTS
) -> dict[str, Any] | None:
    """Return ``said`` of an annotation, the same for the same spans."""
    said: dict[str, Any] = {}
    if has_blanks:
        said[_BLANKS] = True
    if found := sorted(spans):
        said[_SPANS] = found
        if unit != CODEPOINTS:
            said[_UNIT] = unit
    return said or None


def _spans(annotation: str | None) -> list[Span]:
    said = TextContent.decode(annotation).said or {}
    return [Span(*item) for item in said.get(_SPANS, ())]


def spans_in(record: Mapping[str, Any]) -> Iterator[Span]:
    """Yield the spans of a line of JSONL, in today's shape and in the older one.

    Raises: AnnotationError: a span cannot be used.
    """
    for item in objects_in(record, _SPANS_KEY):
        label = display_name(item, f"each of {_SPANS_KEY}")
        check_spelling(item, _SPAN_KEYS, "a span", of_places=True)
        yield _span(item.get("startOffset"), item.get("endOffset"), label)
    for item in objects_in(record, OLDER_KEY):
        segment: Any = item
        for keys in (("text_extraction", "textExtraction"), ("text_segment", "textSegment")):
            segment = either(segment, keys)
            if not isinstance(segment, Mapping):
                raise bad_annotation(
                    f"each of {OLDER_KEY} must be an object with a {keys[0]} (got {item!r:.80})"
                )
        start, end = (either(segment, keys) for keys in _OLDER_SPAN_KEYS)
        if start is None:
            known = [key for keys in _OLDER_SPAN_KEYS for key in keys]
            check_spelling(segment, known, "a text_segment", of_places=True)
        yield _span(start, end, display_name(item, f"each of {OLDER_KEY}", NAME_KEYS))


def _span(start: Any, end: Any, label: str) -> Span:
    """Return a span whose offsets are numbers, or numbers as text. Raises: AnnotationError."""
    # protobuf's JSON omits a 0.
    first = _offset(0 if start is None else start, "startOffset")
    span = Span(first, _offset(end, "endOffset"), label)
    if span.start == span.end:
        raise bad_annotation(
            f"the span {span} is empty; endOffset is one more than the offset of its last character"
        )
    if span.start > span.end:
        raise bad_annotation(f"the span {span} ends before it begins; swap its offsets")
    return span


def _offset(value: Any, what: str) -> int:
    if isinstance(value, int | str) and not isinstance(value, bool):
        try:
            number = int(value)
        except ValueError:
            number = -1
        if number >= 0:
            return number
    raise bad_annotation(
        f"{what} must be a whole number, a position in the text from 0 (got {value!r:.40})"
    )
