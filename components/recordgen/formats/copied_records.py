"""Records of datasets that number their classes: Hugging Face's Parquet, tars of JSON, outputs.

    text: "Good", source_id: "sha256://…", label: 1       of Parquet whose schema names dog as 1
    {"text": "Good", "source_id": "…", "label": 1}        00000012.json of a tar beside labels.txt
    text: "Good", class/text: "dog", class/label: 1       a record of an output of Recordgen

are the text with the label dog. An entity is ``{"start": 0, "end": 4, "label": 1}``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from recordgen import features
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import Task
from recordgen.formats.json_values import mapping
from recordgen.formats.listing import Listing
from recordgen.formats.objects import class_names, labels_of, named
from recordgen.rejects import Reject, RejectCode
from recordgen.tasks.texts.task import CONTENT_KEY

#: The column of the spans of a text.
ENTITIES = "entities"

# Columns that repeat what others say; the last ones beside entities only.
_REPEATED = (features.TEXT_SOURCE_ID, features.TOKENS, "ner_tags")

_ENTITY = {
    features.ENTITY_START: "start",
    features.ENTITY_END: "end",
    features.ENTITY_TEXT: "label",
}
_COLUMNS = {features.TEXT: "text", features.CLASS_TEXT: "label"}

#: The names of classes by number, by column.
Classes: TypeAlias = Mapping[str, Sequence[str]]
Record: TypeAlias = Mapping[str, Any]


def repeated_in(names: Collection[str]) -> Sequence[str]:
    """Return the columns among these that repeat what others say."""
    return _REPEATED if ENTITIES in names else _REPEATED[:1]


def classes_in(declared: Mapping[str, Any]) -> Classes:
    """Return the classes of the columns whose features Hugging Face declares."""
    found = {name: class_names(feature) for name, feature in declared.items()}
    flat = {name for name, it in declared.items() if isinstance(it, dict) and "_type" in it}
    return {name: names for name, names in found.items() if names and name in flat | {ENTITIES}}


def with_names(record: Any, classes: Classes) -> Any:
    """Return a record with the names of classes for their numbers, and no repeated columns.

    It is what is wrong with it, if no class has one of the numbers.
    """
    if not isinstance(record, Mapping):
        return record
    repeated = repeated_in(record)
    try:
        return {
            name: _with_name(name, value, classes[name]) if name in classes else value
            for name, value in record.items()
            if name not in repeated
        }
    except ValueError as exc:
        return str(exc)


def _with_name(column: str, value: Any, names: Sequence[str]) -> Any:
    if not isinstance(value, list):
        return "".join(labels_of(value, names))
    if column == ENTITIES:
        found = (mapping(item, "an entity") for item in value)
        return [{**item, "label": named(item.get("label"), names)} for item in found]
    return [named(item, names) for item in value if item not in (None, features.NO_LABEL)]


def output_records(listing: Listing, name: str) -> Iterator[Record]:
    """Yield the records of a shard of an output. Raises: RecordError: one is damaged."""
    for record in RECORDS.read(f"{listing.root}{name}"):
        values = parse_example(record)
        found = {
            _COLUMNS.get(feature, feature): _plain(each)
            for feature, each in values.items()
            if feature in _COLUMNS or not ("/" in feature or feature in _REPEATED)
        }
        if features.ENTITY_START in values:
            lists = (map(_as_text, values.get(feature, ())) for feature in _ENTITY)
            found[ENTITIES] = [
                dict(zip(_ENTITY.values(), each, strict=True)) for each in zip(*lists, strict=True)
            ]
        yield found


def _plain(values: Sequence[Any]) -> Any:
    """Return one value, a list of several, or None."""
    found = list(map(_as_text, values))
    return found[0] if len(found) == 1 else found or None


def _as_text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def text_rows(
    records: Iterator[tuple[int, Any]], source: str, task: Task, adjusted: Adjustments
) -> Iterator[Row | Reject]:
    """Yield the rows of texts whose entities are objects."""
    for line, record in records:
        entities = (record.get(ENTITIES) or []) if isinstance(record, dict) else None
        if not (isinstance(entities, list) and all(isinstance(it, dict) for it in entities)):
            message = f"expected a text and its entities (got {record!r:.80})"
            yield Reject(source, line, "", RejectCode.BAD_LINE.value, message)
            continue
        spans = [
            {
                "startOffset": it.get("start"),
                "endOffset": it.get("end"),
                "displayName": it.get("label"),
            }
            for it in entities
        ]
        said = {CONTENT_KEY: record.get("text"), task.json_keys[0]: spans}
        try:
            for content in task.from_record(said, adjusted):
                if not isinstance(content, AnnotationError):  # raised, as there is one annotation
                    yield Row(source, line, None, *content)
        except AnnotationError as exc:
            yield exc.reject(source, line)
