"""Entities in texts: any number of labelled spans that do not overlap.

Vertex AI "Prepare text training data for entity extraction"; offsets count characters, the end is
the place behind the last one::

    {"textContent": "Anna flew to New York.", "textSegmentAnnotations":
     [{"startOffset": 13, "endOffset": 21, "displayName": "city"}]}

becomes ``entity/start: [13]``, ``entity/end: [21]``, ``entity/class/text: [b"city"]`` and, token by
token, ``tags/text: [b"O", b"O", b"O", b"B-city", b"I-city", b"O"]``. The annotation holds the
spans as ``[start, end, label]``; and, where tokens were given, that blanks part them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen import features
from recordgen.errors import PayloadError, UsageError
from recordgen.example import serialize_example
from recordgen.labels import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.rows import RejectCode, is_content_uri
from recordgen.tasks.tags import (
    Span,
    TagError,
    Token,
    cut_tokens,
    split_at_blanks,
    tag_names,
    tag_number,
    tags_of,
    tokenize,
)
from recordgen.tasks.task import (
    AnnotationError,
    Made,
    Merged,
    Said,
    Task,
    add_up,
    display_name,
    need_mixed_shards,
)
from recordgen.tasks.text_task import CONTENT_KEY, TextSaid, TextTask, said_of, text_of

if TYPE_CHECKING:
    from recordgen.resolving import PlannedRow

#: Names in ``rows.adjusted`` of ``dataset.json``.
TAGS_BEGUN = "tags_begun"
TOKENS_CUT = "spans_within_words"

#: The file of the output that says which number each tag has.
TAGS_FILE = "tags.txt"

_SPANS_KEY = "textSegmentAnnotations"

# What is said of a text.
_SPANS, _BLANKS = "spans", "blanks"


class TextEntities(TextTask):
    """Entity extraction."""

    name = "text_entities"
    kind = "entities"
    expected = '{"textContent": TEXT, "textSegmentAnnotations": [SPAN, …]}'
    columns: ClassVar = {}
    json_keys = (_SPANS_KEY,)
    features: ClassVar = features.TEXT_ENTITIES

    @classmethod
    def of(cls, options: ConvertOptions) -> Task:
        need_mixed_shards(cls.name, options)
        return cls()

    def from_fields(self, fields: Sequence[str], adjusted: Counter[str]) -> str | None:
        raise UsageError(
            f"{self.name} is read from JSONL or from files of tags, not from columns: write "
            f"{self.expected}, one object per line"
        )

    def from_record(self, record: Mapping[str, Any], adjusted: Counter[str]) -> Sequence[Said]:
        if "text_snippet" in record and CONTENT_KEY not in record:
            record = _as_of_today(record)
        _check_encodes(record.get(CONTENT_KEY))
        items = record.get(_SPANS_KEY) or []
        if not isinstance(items, list):
            raise _bad(f"{_SPANS_KEY} must be a list of objects (got {items!r:.80})")
        spans = sorted(set(map(_span, items)))
        said = said_of(record, _said(spans))
        text = TextSaid.decode(said.annotation).text
        if text is not None and spans:
            tokens = tokenize(text)
            try:
                _check(text, tokens, spans)
            except TagError as exc:
                raise _bad(str(exc)) from exc
            if cut := cut_tokens(tokens, spans):
                adjusted[TOKENS_CUT] += cut
        return [said]

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        found, duplicates = add_up(annotations, _spans)
        spans = sorted(found)
        try:
            _check_apart(spans)
        except TagError as exc:
            raise AnnotationError(
                RejectCode.CONFLICTING_LABELS, f"one text, several readings: {exc}"
            ) from exc
        text, said = TextSaid.decode(annotations[0])
        return Merged(TextSaid(text, _said(spans, _has_blanks(said))).encode(), duplicates)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return not set(_spans(annotation)) <= set(_spans(stored))

    def labels(self, annotation: str) -> Sequence[str]:
        return sorted({span.label for span in _spans(annotation)})

    def shown(self, annotation: str) -> str:
        return f"{', '.join(map(str, _spans(annotation))) or 'none'!s:.80}"

    def make(
        self, row: PlannedRow, payload: bytes, vocabulary: Vocabulary, options: ConvertOptions
    ) -> Made:
        text = text_of(row.annotation, payload)
        said = TextSaid.decode(row.annotation).said
        tokens = (split_at_blanks if _has_blanks(said) else tokenize)(text)
        if not tokens:
            raise PayloadError(RejectCode.EMPTY_FILE.value, "there is nothing but blanks in it")
        spans = _spans(row.annotation)
        try:
            tags = _check(text, tokens, spans)
        except TagError as exc:
            raise PayloadError(RejectCode.BAD_ANNOTATION.value, str(exc)) from exc
        numbers = [vocabulary.index(span.label) for span in spans]
        by_label = dict(zip((span.label for span in spans), numbers, strict=True))
        record = serialize_example(
            {
                features.TEXT: text.encode(),
                features.TEXT_SOURCE_ID: row.uri.encode(),
                features.TOKENS: [text[start:end].encode() for start, end in tokens],
                features.TAGS_TEXT: [tag.encode() for tag in tags],
                features.TAGS_LABEL: [tag_number(tag, by_label.get(tag[2:], 0)) for tag in tags],
                features.ENTITY_START: [span.start for span in spans],
                features.ENTITY_END: [span.end for span in spans],
                features.ENTITY_TEXT: [span.label.encode() for span in spans],
                features.ENTITY_LABEL: numbers,
            }
        )
        return Made(record, b"".join(record), sorted(by_label))

    def said(self, values: Mapping[str, Sequence[Any]]) -> Said:
        [uri], [stored] = values[features.TEXT_SOURCE_ID], values[features.TEXT]
        text = stored.decode()
        columns = (features.ENTITY_START, features.ENTITY_END, features.ENTITY_TEXT)
        spans = [
            Span(start, end, label.decode())
            for start, end, label in zip(*(values.get(name, ()) for name in columns), strict=True)
        ]
        tokens = [token.decode() for token in values[features.TOKENS]]
        own = [text[start:end] for start, end in tokenize(text)]
        is_inline = is_content_uri(uri.decode())
        said = TextSaid(text if is_inline else None, _said(spans, tokens != own))
        return Said(uri.decode(), said.encode())

    @classmethod
    def files(cls, labels: Sequence[str]) -> Mapping[str, str]:
        """Return the tags in the order of their numbers."""
        return {TAGS_FILE: "".join(f"{tag}\n" for tag in tag_names(labels))}


def said_of_tokens(tokens: Sequence[str], spans: Iterable[Span]) -> Said:
    """Return what a row says whose tokens are given, with spans of them with blanks between."""
    text = " ".join(tokens)
    own = [text[start:end] for start, end in tokenize(text)]
    return said_of({CONTENT_KEY: text}, _said(spans, own != list(tokens)))


def _said(spans: Iterable[Span], has_blanks: bool = False) -> dict[str, Any] | None:
    """Return what an annotation says of its text; the same spans give the same."""
    said: dict[str, Any] = {}
    if has_blanks:
        said[_BLANKS] = True
    if found := sorted(spans):
        said[_SPANS] = found
    return said or None


def _spans(annotation: str | None) -> list[Span]:
    said = TextSaid.decode(annotation).said or {}
    return [Span(*item) for item in said.get(_SPANS, ())]


def _has_blanks(said: Mapping[str, Any] | None) -> bool:
    return bool(said) and _BLANKS in (said or {})


def _check(text: str, tokens: Sequence[Token], spans: Sequence[Span]) -> list[str]:
    """Return the tags of tokens, whose spans are in order. Raises: TagError."""
    for span in spans:
        if span.end > len(text):
            raise TagError(
                f"the span {span} ends behind the text, which has {len(text)} characters; offsets "
                f"count characters, not bytes"
            )
    _check_apart(spans)
    return tags_of(tokens, spans)


def _check_apart(spans: Sequence[Span]) -> None:
    """Check that spans, which are in order, do not overlap. Raises: TagError."""
    for one, other in pairwise(spans):
        if other.start < one.end:
            raise TagError(f"the spans {one} and {other} overlap; a character is in one entity")


def _check_encodes(text: Any) -> None:
    """Refuse half a character, which JSON can say. Raises: AnnotationError."""
    try:
        str(text).encode()
    except UnicodeEncodeError as exc:
        raise AnnotationError(
            RejectCode.BAD_ENCODING,
            f"character {exc.start + 1} of the text is half a surrogate pair; write it whole",
        ) from exc


def _as_of_today(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line of AutoML Natural Language as Vertex AI has it."""
    snippet, items = record["text_snippet"], record.get("annotations") or []
    if not isinstance(snippet, Mapping) or not isinstance(items, list):
        raise _bad("text_snippet must be an object with content, and annotations a list")
    segments = []
    for item in items:
        extraction = item.get("text_extraction") if isinstance(item, Mapping) else None
        segment = extraction.get("text_segment") if isinstance(extraction, Mapping) else None
        if not isinstance(segment, Mapping):
            raise _bad(
                f"each of annotations must be an object with a text_extraction that has a "
                f"text_segment (got {item!r:.80})"
            )
        names = {"start_offset": "startOffset", "end_offset": "endOffset"}
        offsets = {names[key]: value for key, value in segment.items() if key in names}
        segments.append({**offsets, "displayName": item.get("display_name")})
    rest = {name: value for name, value in record.items() if name != "annotations"}
    return {**rest, CONTENT_KEY: snippet.get("content"), _SPANS_KEY: segments}


def _span(item: Any) -> Span:
    """Return the span that an object of JSON says. Raises: AnnotationError."""
    label = display_name(item, f"each of {_SPANS_KEY}")
    # protobuf's JSON leaves a 0 out.
    span = Span(_offset(item, "startOffset", 0), _offset(item, "endOffset", None), label)
    if span.start == span.end:
        raise _bad(f"the span {span} is empty; endOffset is the place behind its last character")
    if span.start > span.end:
        raise _bad(f"the span {span} ends before it begins; swap its offsets")
    return span


def _offset(item: Mapping[str, Any], key: str, missing: int | None) -> int:
    value = item.get(key, missing)
    if isinstance(value, int | str) and not isinstance(value, bool):
        try:
            number = int(value)
        except ValueError:
            number = -1
        if number >= 0:
            return number
    raise _bad(f"{key} must be a whole number, a place in the text from 0 (got {value!r:.40})")


def _bad(message: str) -> AnnotationError:
    return AnnotationError(RejectCode.BAD_ANNOTATION, message)
