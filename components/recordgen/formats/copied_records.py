"""Records of datasets that number their classes: Hugging Face's Parquet, tars of JSON, outputs.

    text: "Good", source_id: "sha256://…", label: 1       of Parquet whose schema names dog as 1
    {"text": "Good", "source_id": "…", "label": 1}        00000012.json of a tar beside labels.txt
    text: "Good", class/text: "dog", class/label: 1       a record of an output of Recordgen

are the text with the label dog. An entity is ``{"start": 0, "end": 4, "label": 1}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from recordgen import features
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import Task
from recordgen.formats.listing import Listing
from recordgen.formats.objects import class_names, labels_of, named
from recordgen.rejects import Reject, RejectCode
from recordgen.tasks.texts.text_task import CONTENT_KEY

#: The column of the spans of a text.
ENTITIES = "entities"

#: Columns that repeat what others say.
REPEATED = (features.TEXT_SOURCE_ID, features.TOKENS, "ner_tags")

_ENTITY = {
    features.ENTITY_START: "start",
    features.ENTITY_END: "end",
    features.ENTITY_TEXT: "label",
}
_COLUMNS = {features.TEXT: "text", features.CLASS_TEXT: "label"}

#: The names of classes by number, by column.
Classes: TypeAlias = Mapping[str, Sequence[str]]
Record: TypeAlias = Mapping[str, Any]


def classes_in(declared: Mapping[str, Any]) -> Classes:
    """Return the classes of the columns whose features Hugging Face declares."""
    found = {name: class_names(feature) for name, feature in declared.items()}
    return {name: names for name, names in found.items() if names}


def with_names(record: Any, classes: Classes) -> Any:
    """Return a record with the names of classes for their numbers, and no repeated columns.

    It is what is wrong with it, if no class has one of the numbers.
    """
    if not isinstance(record, Mapping):
        return record
    try:
        return {
            name: _with_name(value, classes[name]) if name in classes else value
            for name, value in record.items()
            if name not in REPEATED
        }
    except ValueError as exc:
        return str(exc)


def _with_name(value: Any, names: Sequence[str]) -> Any:
    if not isinstance(value, list):
        return "".join(labels_of(value, names))
    if all(isinstance(item, Mapping) for item in value):
        return [{**item, "label": named(item.get("label"), names)} for item in value]
    return [named(item, names) for item in value]


def output_records(listing: Listing, name: str) -> Iterator[Record]:
    """Yield the records of a shard of an output. Raises: RecordError: one is damaged."""
    for record in RECORDS.read(f"{listing.root}{name}"):
        values = parse_example(record)
        found = {
            _COLUMNS.get(feature, feature): _plain(each)
            for feature, each in values.items()
            if feature in _COLUMNS or not ("/" in feature or feature in REPEATED)
        }
        if found.keys() == {features.TEXT}:
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
        if not isinstance(record, dict):
            message = f"expected a text and its entities (got {record!r:.80})"
            yield Reject(source, line, "", RejectCode.BAD_LINE.value, message)
            continue
        spans = [
            {
                "startOffset": it.get("start"),
                "endOffset": it.get("end"),
                "displayName": it.get("label"),
            }
            for it in record.get(ENTITIES) or ()
        ]
        said = {CONTENT_KEY: record.get("text"), task.json_keys[0]: spans}
        try:
            for content in task.from_record(said, adjusted):
                if not isinstance(content, AnnotationError):  # raised, as there is one annotation
                    yield Row(source, line, None, *content)
        except AnnotationError as exc:
            yield exc.reject(source, line)
