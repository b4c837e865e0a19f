"""Named records → rows: texts with entities, and the columns of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import Task
from recordgen.formats import objects
from recordgen.formats.declared_rows import declared_row
from recordgen.formats.format import Rows
from recordgen.formats.header import Given
from recordgen.formats.pictures import Numbered, Problem, in_addresses
from recordgen.rejects import Reject, RejectCode
from recordgen.tasks import Declared
from recordgen.tasks.texts.task import CONTENT_KEY


def records_of(
    records: Numbered, source: str, what: str, keys: Set[str] | None = None
) -> Iterator[tuple[int, Any] | Reject]:
    """Yield the records that are objects, with some of the keys, and rejects of others.

    ``what`` was expected.
    """
    for item in records:
        if isinstance(item, Problem):
            yield item.reject(source)
        elif not isinstance(item[1], Mapping) or not (keys is None or item[1].keys() <= keys):
            message = f"expected {what} (got {item[1]!r:.80})"
            yield Reject(source, item[0], "", RejectCode.BAD_LINE.value, message)
        else:
            yield item


def text_rows(records: Numbered, source: str, task: Task, adjusted: Adjustments) -> Rows:
    """Yield the rows of texts whose entities are objects."""
    for item in records_of(records, source, "a text and its entities"):
        if isinstance(item, Reject):
            yield item
            continue
        line, record = item
        entities = record.get(objects.ENTITIES) or []
        if not (isinstance(entities, list) and all(isinstance(it, dict) for it in entities)):
            message = f"expected a text and its entities (got {record!r:.80})"
            yield Reject(source, line, "", RejectCode.BAD_LINE.value, message)
            continue
        keys = {"startOffset": "start", "endOffset": "end", "displayName": "label"}
        spans = [{key: it.get(name) for key, name in keys.items()} for it in entities]
        try:
            content = {CONTENT_KEY: record.get("text"), task.json_keys[0]: spans}
            for each in task.from_record(content, adjusted):
                if not isinstance(each, AnnotationError):  # raised, as there is one annotation
                    yield Row(source, line, None, *each)
        except AnnotationError as exc:
            yield exc.reject(source, line)


def declared_rows(records: Numbered, source: str, task: Declared, given: Given) -> Rows:
    """Yield the rows of records with the columns of a schema.

    An image is its path, or a :class:`recordgen.formats.objects.StoredFile`, whose path is its uri.
    """
    columns = task.schema.columns
    if given.group:
        given.find_group([*columns], source)
    for item in records_of(records, source, "an object with the columns of the schema"):
        if isinstance(item, Reject):
            yield item
            continue
        line, record = item
        values = {name: record.get(name) for name in columns}
        files = {name: values[name] for name in task.table.images}
        stored = {name: it for name, it in files.items() if isinstance(it, objects.StoredFile)}
        values |= {name: image.path for name, image in stored.items()}
        places = (stored[name].place if name in stored else None for name in files)
        group = str(values.get(given.group) or "")
        yield declared_row(values, source, line, task, group, in_addresses([*places]))
