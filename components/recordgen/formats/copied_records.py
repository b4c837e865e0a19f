"""Records of datasets that number their classes: Hugging Face's Parquet, tars of JSON, outputs.

    text: "Good", source_id: "sha256://…", label: 1       of Parquet whose schema names dog as 1
    {"text": "Good", "source_id": "…", "label": 1}        00000012.json of a tar beside labels.txt
    text: "Good", class/text: "dog", class/label: 1       a record of an output of Recordgen

are the text with the label dog. An entity is ``{"start": 0, "end": 4, "label": 1}``.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from recordgen import features, storage
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import Adjustments, Range, Row, name_within
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import Task
from recordgen.errors import RecordError
from recordgen.formats import tfrecord
from recordgen.formats.declared_rows import declared_row
from recordgen.formats.header import Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.json_values import mapping, text
from recordgen.formats.listing import Listing
from recordgen.formats.objects import class_names, labels_of, named, names_beside
from recordgen.formats.parquet import StoredFile, image_leaves, placed_rows, schema_of
from recordgen.formats.pictures import Problem
from recordgen.formats.webdataset import placed_records
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.columns import Table, image_suffix
from recordgen.tables.roles import LABEL, LABEL_TEXT
from recordgen.tasks import Declared
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
_COLUMNS = {
    features.TEXT: "text",
    features.CLASS_TEXT: "label",
    features.VIDEO_URI: "video",
    features.VIDEO_SEGMENT_START: "start",
    features.VIDEO_SEGMENT_END: "end",
    features.VIDEO_CLASS_TEXT: "label",
}

# The parts of an image in a record that say what it is, and where it is from.
_FILE = ("encoded", "format", "source_id")

#: The names of classes by number, by column.
Classes: TypeAlias = Mapping[str, Sequence[str]]
Record: TypeAlias = Mapping[str, Any]

_NO_CLASSES: Classes = {}


def without_repeats(record: Any, classes: Classes = _NO_CLASSES) -> Any:
    """Return a record of a text without the columns that repeat what others say.

    ``classes`` are those that the schema names; a column beside them may repeat the names.
    """
    if not isinstance(record, Mapping):
        return record
    repeated = {*(_REPEATED if ENTITIES in record else _REPEATED[:1])}
    if LABEL in classes:
        repeated.add(LABEL_TEXT)
    return {name: value for name, value in record.items() if name not in repeated}


def classes_in(declared: Mapping[str, Any]) -> Classes:
    """Return the classes of the columns whose features Hugging Face declares."""
    found = {name: class_names(feature) for name, feature in declared.items()}
    flat = {name for name, it in declared.items() if isinstance(it, dict) and "_type" in it}
    return {name: names for name, names in found.items() if names and name in flat | {ENTITIES}}


def with_names(record: Any, classes: Classes) -> Any:
    """Return a record with the names of classes for their numbers.

    It is what is wrong with it, if no class has one of the numbers.
    """
    if not isinstance(record, Mapping):
        return record
    try:
        return {
            name: _with_name(name, value, classes[name]) if name in classes else value
            for name, value in record.items()
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


def output_records(listing: Listing, name: str, dataset: Dataset) -> Iterator[Record]:
    """Yield the records of a shard of an output. Raises: RecordError: one is damaged."""
    path = f"{listing.root}{name}"
    for number, record in enumerate(RECORDS.read(path)):
        try:
            yield _output_record(parse_example(record), dataset)
        except ValueError as exc:
            raise RecordError(f"{path}: record {number}: {exc}") from exc


def _output_record(values: Mapping[str, Sequence[Any]], dataset: Dataset) -> Record:
    """Return the record of an example of an output. Raises: ValueError: its values do not fit."""
    if dataset.features:  # a table, whose columns have any name
        return {feature: _plain(each) for feature, each in values.items()}
    found = {
        column: _plain(values[feature]) for feature, column in _COLUMNS.items() if feature in values
    }
    if features.VIDEO_URI in values:
        uri = text(found["video"], features.VIDEO_URI)
        found["video"] = storage.resolve(uri, storage.join(dataset.folder, ""))
    if features.ENTITY_START in values:
        lists = (map(_as_text, values.get(feature, ())) for feature in _ENTITY)
        found[ENTITIES] = [
            dict(zip(_ENTITY.values(), each, strict=True)) for each in zip(*lists, strict=True)
        ]
    return found


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


def declared_rows(
    records: Iterator[tuple[int, Any] | Problem], source: str, task: Declared, given: Given
) -> Iterator[Row | Reject]:
    """Yield the rows of records with the columns of a schema.

    ``records`` are their numbers, from 1, and their values by column: of an image its path, or a
    :class:`StoredFile`, whose path is its uri.
    """
    columns = task.schema.columns
    if given.group:
        given.find_group([*columns], source)
    for item in records:
        if isinstance(item, Problem):
            yield Reject(source, item.line, item.uri, item.code.value, item.message)
            continue
        line, record = item
        if not isinstance(record, Mapping):
            message = f"expected an object with the columns of the schema (got {record!r:.80})"
            yield Reject(source, line, "", RejectCode.BAD_LINE.value, message)
            continue
        values = {name: record.get(name) for name in columns}
        places: list[str | None] = []
        for name in task.table.images:
            image, place = values[name], None
            if isinstance(image, StoredFile):
                values[name], place = image.path, image.place
            places.append(place and place.address)
        addresses = json.dumps(places) if any(places) else None
        group = str(values.get(given.group) or "")
        yield declared_row(values, source, line, task, group, addresses)


def placed_in_parquet(
    file: ImportFile,
    images: Sequence[str],
    names: Sequence[str],
    labels: Sequence[str] = (),
    container: str = "",
) -> Iterator[tuple[int, Any] | Problem]:
    """Yield the numbers and values of the rows of a Parquet file, with the places of images.

    Args:
        file: the file.
        images: the columns of images, as far as they hold any.
        names: the columns to read.
        labels: those whose numbers may have names in a file beside it.
        container: what the uris of images begin with; empty for the name of the file.
    """
    listing, name = file.around, file.around.only
    schema, features = schema_of(listing, name)
    found = (image_leaves(schema, features, image) for image in images)
    leaves = {image: leaf for each in found for image, leaf in each.items()}
    columns = [column for column in names if column in schema.names]
    classes = classes_in(features)
    beside = {column: names_beside(listing, name, column) for column in labels}
    classes = {**{column: each for column, each in beside.items() if each}, **classes}
    for item in placed_rows(listing, name, columns, leaves):
        if isinstance(item, Problem):
            yield item
            continue
        number, row = item
        files = {image: _within(name, number, row[image], container) for image in leaves}
        yield number + 1, with_names({**row, **files}, classes)


def placed_in_records(
    file: ImportFile, images: Sequence[str], labels: Sequence[str]
) -> Iterator[tuple[int, Any] | Problem]:
    """Yield the numbers and features of the records of a file, with the places of images.

    Args: as for :func:`placed_in_parquet`.
    """
    document = file.around.only
    names = tfrecord.names_of(file.around, document)
    for number, found in enumerate(tfrecord.read_records(file.path, document)):
        if isinstance(found, Problem):
            yield found
            continue
        place, record, values = found
        try:
            tfrecord.check_encoded(values)
            read = {
                name: [*map(names.named, each)] if name in labels else each
                for name, each in values.items()
            }
        except ValueError as exc:
            yield Problem(number + 1, str(exc), f"{document}/{number}")
            continue
        written = tfrecord.file_name_in(names, values)
        plain: dict[str, Any] = {}
        for name, each in read.items():
            one = each[0] if len(each) == 1 else each or None
            if name in images and isinstance(one, bytes):
                place_of_it = tfrecord.range_in(posixpath.basename(file.path), place, record, one)
                one = StoredFile(None, name_within(document, number, written), place_of_it)
            plain[name] = one
        yield number + 1, plain


def placed_in_tar(file: ImportFile, table: Table) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and values of the keys of a tar, with the places of images."""
    listing, name = file.around, file.around.only
    with listing.open(name) as raw:
        for number, (values, images) in enumerate(placed_records(raw)):
            if not isinstance(values, Mapping):
                yield number + 1, values
                continue
            files = {}
            for column in table.images:
                begin = "" if table.only_image else image_suffix(column, "")
                member = next((it for at, it in images.items() if at.startswith(begin)), None)
                if member is not None:
                    place = Range(name, member.offset, member.size)
                    files[column] = _within(name, number, StoredFile(None, member.name, place))
            yield number + 1, {**values, **files}


def placed_in_output(file: ImportFile, table: Table) -> Iterator[tuple[int, Any] | Problem]:
    """Yield the numbers and values of the records of an output, with the places of images.

    Raises: SourceError: the file is packed, and has images; RecordError: a record is damaged.
    """
    if table.images:
        tfrecord.check_unpacked(file.path)
    is_placed = not RECORDS.is_gzip(file.path)
    records = tfrecord.read_records(file.path, file.around.only, is_placed=is_placed)
    names = {column.name: column.name for column in table.stored}
    if table.label is not None:
        names[table.label] = table.label_features[0]
    for number, found in enumerate(records, start=1):
        if isinstance(found, Problem):
            yield found
            continue
        place, record, values = found
        read = {name: _plain(values.get(feature, ())) for name, feature in names.items()}
        try:
            for image in table.images:
                parts = [values.get(table.image_feature(image, part)) for part in _FILE]
                read[image] = _image_in(file.path, place, record, parts)
        except ValueError as exc:
            yield Problem(number, str(exc))
        else:
            yield number, read


def _image_in(path: str, place: int, record: bytes, parts: Sequence[Any]) -> StoredFile:
    """Return the image of a record. Raises: ValueError: it is no image file."""
    data, kind, uri = (values[0] if values else b"" for values in parts)
    if not isinstance(data, bytes) or kind == features.RAW.encode():
        raise ValueError("the record holds raw pixels, and no image file")
    found = tfrecord.range_in(posixpath.basename(path), place, record, data)
    return StoredFile(None, str(_as_text(uri)), found)


def _within(name: str, number: int, found: StoredFile, container: str = "") -> StoredFile:
    """Return a file whose path is its uri; its container is named beside its folder."""
    if found.place is None:
        return found
    base = posixpath.basename(name)
    uri = name_within(container or base, number, found.path)
    return StoredFile(None, uri, found.place._replace(file=base))
