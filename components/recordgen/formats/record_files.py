"""Files of named records: JSON documents, Parquet, Arrow and, with ``--columns``, TFRecords.

    [{"text": "Good", "label": "praise"}, …]             a JSON list of objects
    {"text": {"0": "Good"}, "label": {"0": "praise"}}    what ``DataFrame.to_json`` writes
    text, label                                          columns of Parquet, Feather or Arrow

They are read as a CSV with a header is: with ``--columns``, or without it if every column has a
known role. The columns are those of the first thousand objects, and those that Arrow declares.
Images in the columns that ``--columns`` names stay in the file: a row has the place of its image.
"""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from recordgen import features, storage
from recordgen.core.dataset.manifest import SPLIT_PREFIX, Dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import Adjustments, Row, RowBatch
from recordgen.core.task.annotation import AnnotationError, bad_line
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError, RecordError, SourceError
from recordgen.formats import objects, parquet, tfrecord, webdataset
from recordgen.formats.csv_records import BLOCK_LINES, Item
from recordgen.formats.declared_rows import rows_of_records
from recordgen.formats.format import Evidence, Format, Layout, OwnColumns, Rows
from recordgen.formats.frame_images import with_places
from recordgen.formats.header import NOTHING_GIVEN, Given, Head, keys_without_blanks
from recordgen.formats.import_file import Files, ImportFile, Samples, sampled
from recordgen.formats.json_values import is_document, json_rows, text
from recordgen.formats.label_fields import label_columns
from recordgen.formats.listing import Listing, dataset_of
from recordgen.formats.named_records import NamedRecords, Values, given_names, named_head, single
from recordgen.formats.pictures import Numbered, Problem
from recordgen.formats.row_parser import columns_of_table, has_row_parser
from recordgen.formats.table_columns import check_header, lines_of, named, table_items, table_of
from recordgen.formats.table_roles import schema_types
from recordgen.formats.tfrecord import first_records, names_of, plain_value, record_files
from recordgen.formats.webdataset import first_filled, json_records, tar_begins
from recordgen.messages import listed
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import Reject
from recordgen.tables.columns import Table
from recordgen.tables.roles import SIZE_ROLES
from recordgen.tasks import TASKS, Declared, Tabular, TextEntities
from recordgen.tasks.texts.task import CONTENT_KEY

# Records whose keys are the columns, and which detection reads.
_FIRST = 1000

# The kinds of tasks whose outputs it reads; those of images are read as other tools' records.
_OWN = ("text", "entities", "table", "video", "declared")

# Places of images that are kept: two for each record of a block, while the next one is read.
_PLACES_KEPT = 4 * BLOCK_LINES

# Records with images that detection reads, as their bytes are read with them.
_FIRST_IMAGES = 100

# Records of a tar that must have the same keys.
_PROBED = 8

_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")


# The types of features in tables.
_DTYPES = {int: "int64", float: "float32", bytes: "bytes"}

_NO_TYPES: Mapping[str, str] = {}


class Columns(NamedTuple):
    """The columns of a file, and its records.

    Attributes:
        types: the types of columns in tables, by name, as far as the file declares them.
        records: their numbers, from 1, and their values by column.
    """

    names: Sequence[str]
    types: Mapping[str, str]
    records: Numbered


class RecordFiles(Format):
    """A JSON list of objects, pandas' JSON, Parquet, Feather, Arrow or TFRecords."""

    name = "named_records"
    has_columns = True

    def detect(self, listing: Listing, given: Given = NOTHING_GIVEN) -> Evidence | None:
        found = listing.candidates(".parquet") or listing.candidates(".arrow", ".feather", ".tar")
        is_named = given.is_table or not given.roles.keys().isdisjoint({"path", "text"})
        if is_named and not found:
            files = [it for it in record_files(listing) if [*first_records(listing.root + it)]]
            if files:
                classes = _classes_of(listing, files[0], given)
                return Evidence(f"{files[0]} holds examples", "", files, classes)
        if not listing.only and "" in listing.tree.datasets and (dataset := dataset_of(listing)):
            task = TASKS[dataset.task]
            if task.kind not in _OWN or not self.accepts(task):
                return None
            shards = record_files(listing)
            return Evidence(f"{listing.root} is an output", dataset.task, shards, dataset.labels)
        is_json = bool(listing.only) and not found
        has_names = given.is_table or given.are_declared  # other tasks have AutoML's keys
        lines = (".jsonl", ".ndjson") if has_names else ()
        found = listing.candidates(".json", *lines) if is_json else found
        if not found or (not listing.only and listing.images):
            return None
        first = first_filled(listing, found)
        if not (given.are_declared or self._is_mine(listing, first, given)):
            return None
        classes = _classes_of(listing, first, given)
        return Evidence(f"{first} holds records", "", found, classes, is_weak=is_json)

    detect_given = detect

    def _is_mine(self, listing: Listing, name: str, given: Given) -> bool:
        begin = listing.head(name)
        if begin.startswith(parquet.MAGIC):
            is_named = not given.roles.keys().isdisjoint({"path", "text"})
            return is_named or not parquet.image_leaves(*parquet.schema_of(listing, name))
        if tar_begins(begin):
            with listing.open(name) as raw:
                found = list(islice(json_records(raw), _PROBED))
            keys = {frozenset(it) if isinstance(it, dict) else None for it in found}
            return len(keys) == 1 and None not in keys  # documents among others have other keys
        return begin.startswith(_ARROW) or given.is_table or is_document(begin)

    def accepts(self, task: type[Task]) -> bool:
        has_columns = has_row_parser(task) and bool(task.columns)
        return has_columns or issubclass(task, Tabular | TextEntities | Declared)

    def heads(self, files: Files, options: ConvertOptions, samples: Samples) -> Sequence[Head]:
        if options.task != AUTO and not has_row_parser(TASKS[options.task]):
            return ()
        given, heads = Given.of(options), []
        for file in sampled(files):
            with _columns_of(samples.begun(file), given=given) as (names, _, records):
                if objects.ENTITIES in names:
                    return ()
                places, values = dict[str, str](), list[Sequence[Any]]()
                for item in _values(file, names, islice(records, _FIRST), given, places):
                    values += [] if isinstance(item, Reject) else [item[1]]
                    if len(places) > _FIRST_IMAGES:
                        break
                head = named_head(file.path, names, values, given)
            heads.append(head)
        return heads

    def layout(self, own: type[OwnColumns], files: Files, options: ConvertOptions) -> Layout:
        if (schema := options.declared_schema) is not None:
            return Layout(options, columns_of_table(schema.table), True)
        table = _table_of(files, options)
        return Layout(replace(options, table=table.to_json()), columns_of_table(table), True)

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        if isinstance(task, Declared):
            expected = "an object with the columns of the schema"
            placed = records_of(_placed(file, task.table), file.path, expected)
            yield from rows_of_records(placed, file.path, task, given)
            return
        table = task.table if isinstance(task, Tabular) else None
        with _columns_of(file, table, given) as (names, _, records):
            if table is not None:
                stored = dict(zip(named(names), names, strict=True))
                if stored and (missing := {*table.names} - {*stored}):
                    raise SourceError(f"{file.path}: it has no columns {listed(sorted(missing))}")
                columns = [stored.get(name, name) for name in table.names]
                yield from lines_of(_lines(columns, records, file.path), file.path, table)
                return
            if isinstance(task, TextEntities):
                yield from _text_rows(records, file.path, task, adjusted)
                return
            reader = NamedRecords(file.path, names, task, adjusted, given)
            places: dict[str, str] = {}
            for item in reader.rows(_values(file, names, records, given, places)):
                if not places or isinstance(item, Reject):
                    yield item
                    continue
                batch = RowBatch.of([item]) if isinstance(item, Row) else item
                batch = with_places(batch, task, places.get)
                yield next(batch.rows) if isinstance(item, Row) else batch


def _values(
    file: ImportFile, names: Sequence[str], records: Numbered, given: Given, places: dict[str, str]
) -> Iterator[Values]:
    """Yield the values of records; ``places`` gets those of their images by uri."""
    is_whole, known = given.roles.keys().isdisjoint({"path", "text"}), frozenset(names)
    expected = f"an object with the keys {', '.join(names):.80}"
    for item in records_of(records, file.path, expected, known if is_whole else None):
        if isinstance(item, Reject):
            yield item
        else:
            values = _with_paths(item[1], *_given_images(given), places)
            yield item[0], [*map(values.get, names)]


def records_of(
    records: Numbered, source: str, expected: str, keys: Set[str] | None = None
) -> Iterator[tuple[int, Any] | Reject]:
    """Yield the records that are objects, with some of the keys, and rejects of others."""
    for item in records:
        if isinstance(item, Problem):
            yield item.reject(source)
        elif isinstance(item[1], Mapping) and (keys is None or item[1].keys() <= keys):
            yield item
        else:
            yield _bad_record(source, *item, expected)


def _bad_record(source: str, line: int, record: Any, expected: str) -> Reject:
    return bad_line(f"expected {expected} (got {record!r:.80})").reject(source, line)


def _text_rows(records: Numbered, source: str, task: Task, adjusted: Adjustments) -> Rows:
    """Yield the rows of texts whose entities are objects."""
    expected, keys = "a text and its entities", ("startOffset", "endOffset", "displayName")
    for item in records_of(records, source, expected):
        if isinstance(item, Reject):
            yield item
            continue
        line, record = item
        entities = record.get(objects.ENTITIES) or []
        if not (isinstance(entities, list) and all(isinstance(it, dict) for it in entities)):
            yield _bad_record(source, line, record, expected)
            continue
        spans = [dict(zip(keys, map(it.get, _ENTITY.values()), strict=True)) for it in entities]
        try:
            content = {CONTENT_KEY: record.get("text"), task.json_keys[0]: spans}
            for each in task.from_record(content, adjusted):
                if not isinstance(each, AnnotationError):  # raised, as there is one annotation
                    yield Row(source, line, None, *each)
        except AnnotationError as exc:
            yield exc.reject(source, line)


def _with_paths(
    record: Mapping[str, Any], image: str, mask: str, places: dict[str, str]
) -> Mapping[str, Any]:
    """Return a record with paths of its image and mask; ``places`` gets where those in it are."""
    values = dict(record)
    for name, end in ((image, ""), (mask, "/mask")):
        stored, owner = record.get(name), record.get(image)
        if isinstance(stored, objects.StoredFile):
            owner = owner if isinstance(owner, objects.StoredFile) else stored
            values[name] = path = f"{owner.path}{end}"
            if stored.place is not None:
                places[path] = stored.place.address
    while len(places) > _PLACES_KEPT:  # the rows of earlier blocks have been made
        del places[next(iter(places))]
    return values


def _lines(names: Sequence[str], records: Numbered, source: str) -> Iterator[Item]:
    """Yield records as lines of a table."""

    def fields(item: tuple[int, Any] | Reject) -> tuple[int, list[str] | Reject]:
        if isinstance(item, Reject):
            return item.line, item
        line, record = item
        try:
            return line, [single(record.get(name), name) for name in names]
        except AnnotationError as exc:
            return line, exc.reject(source, line)

    return table_items(map(fields, records_of(records, source, "an object")), source)


def _table_of(files: Files, options: ConvertOptions) -> Table:
    """Return the columns of a table. Raises: SourceError: the files have different ones."""
    path = files[0].path
    if (known := options.inferred_table) is not None:
        # Its records have their splits in the names of their files.
        bare = replace(known, columns=tuple(known.stored), split=None, group=None, is_bare=False)
        return replace(bare, notes=(), markers=())
    with _columns_of(files[0]) as (names, types, _):
        header = named(names)
        if not header:
            raise SourceError(f"{path}: this table has no columns")

    def items() -> Iterator[Item]:
        for file in files:
            with _columns_of(file) as (names, _, records):
                if named(names) != header:
                    got, expected = (f"{', '.join(each):.200}" for each in (names, header))
                    what = f"expected the columns {expected} of {path} (got {got})"
                    raise SourceError(f"{file.path}: {what}; convert it alone")
                yield from _lines(names, records, file.path)

    types = schema_types(header, options) or types
    return table_of(check_header(header, path), items(), options, types)


def _placed(file: ImportFile, table: Table) -> Numbered:
    """Yield the records of a file whose columns are declared, with the places of its images."""
    listing, name = file.around, file.around.only
    begin = listing.head(name)
    if name.startswith(SPLIT_PREFIX) and dataset_of(listing) is not None:
        yield from tfrecord.copied_records(file, table)
    elif begin.startswith(parquet.MAGIC):
        container = posixpath.basename(name)
        yield from parquet.named_rows(listing, name, container, table.images, table.names)
    elif tar_begins(begin):
        yield from webdataset.named_records(listing, name, table)
    else:
        with _columns_of(file) as (_, _, records):
            yield from records


def _given_images(given: Given) -> tuple[str, str]:
    """Return the columns that may hold images and masks; "" if they are not given."""
    return given.roles.get("path", ("",))[0], given.roles.get("mask", ("",))[0]


def _given_labels(given: Given) -> Sequence[str]:
    """Return the columns of labels, which are no one-hot columns."""
    labels = given.roles.get("label", ())
    return [name for name in labels if not any(label_columns(name, ()).values())]


def _classes_of(listing: Listing, name: str, given: Given) -> Sequence[str]:
    """Return the declared classes of the given column of labels, in the order of their numbers."""
    labels = _given_labels(given)[:1]
    if labels and listing.head(name).startswith(parquet.MAGIC):
        return parquet.classes_of(listing, name, labels[0])
    return names_of(listing, name).in_order if labels and record_files(listing.at(name)) else ()


@contextmanager
def _columns_of(
    file: ImportFile, table: Table | None = None, given: Given = NOTHING_GIVEN
) -> Iterator[Columns]:
    """Open a file; the numbers in a table whose columns are known name no classes.

    Raises: SourceError: it is unreadable, or another document.
    """
    listing, name = file.around, file.around.only
    begin = listing.head(name)
    if begin.startswith(parquet.MAGIC):
        schema, _ = parquet.schema_of(listing, name)
        stored = parquet.stored_names(schema)
        given_images = [stored[name] for name in _given_images(given) if name in stored]
        images = [name for name in given_images if parquet.image_leaves(schema, {}, name)]
        if images and table is None:
            names, labels = [*map(str.strip, schema.names)], _given_labels(given)
            group = given.find_group(names, file.path)  # its number may be given
            columns = [*given_names(given), *names[group : group + 1], *SIZE_ROLES]
            rows = parquet.named_rows(listing, name, name, images, columns, labels)
            yield Columns(names, _NO_TYPES, rows)
            return
        yield _declared(parquet.table_rows(listing, name), schema, table)
        return
    dataset = dataset_of(listing) if name.startswith(SPLIT_PREFIX) else None
    if dataset is not None and TASKS[dataset.task].kind in _OWN:
        types = {name: spec.dtype for name, spec in dataset.features.items()}
        yield _named(_output_records(file.path, dataset), types=types)
        return
    if record_files(listing) and (first := [*first_records(file.path)]):
        types = {key: _DTYPES[type(it[0])] for each in first for key, it in each.items() if it}
        found = tfrecord.named_records(file, _given_images(given), _given_labels(given))
        yield Columns([*dict.fromkeys(chain.from_iterable(first))], types, found)
        return
    with listing.open(name) as raw:
        if begin.startswith(_ARROW):
            schema, rows = _arrow_rows(raw, begin, file.path)
            yield _declared(rows, schema, table)
        elif tar_begins(begin):
            records = json_records(raw)
            if table is not None:
                yield _named(records)
                return
            keys = (*objects.CLASSES, objects.ENTITIES)
            classes = dict.fromkeys(keys, objects.names_beside(listing, name))
            yield _named(map(objects.without_repeats, records), classes)
        else:
            yield _named(json_rows(raw, begin, file.path))


def _declared(records: Iterator[Any], schema: Any, table: Table | None) -> Columns:
    """Return the columns of records whose types and classes a schema of Arrow declares."""
    classes = objects.classes_in(parquet.features_of(schema))
    types = _types(schema) | dict.fromkeys(classes, "bytes")
    if classes and table is None:
        types = objects.without_repeats(types, classes)
        records = (objects.without_repeats(row, classes) for row in records)
    return _named(records, classes, types)


def _arrow_rows(raw: IO[bytes], begin: bytes, path: str) -> tuple[Any, Iterator[Any]]:
    """Return the schema and the rows of a file of Arrow. Raises: SourceError."""
    import pyarrow as pa

    size = raw.seek(0, io.SEEK_END)
    raw.seek(0)
    with parquet.arrow_errors(path, "Arrow"):
        is_file = begin.startswith(_ARROW[0])
        # Arrow allocates what packed values claim: without threads, which end the process if that
        # fails, and from a pool that keeps nothing.
        options, pool = pa.ipc.IpcReadOptions(use_threads=False), pa.system_memory_pool()
        open_arrow = pa.ipc.open_file if is_file else pa.ipc.open_stream
        reader = open_arrow(raw, options=options, memory_pool=pool)
        if parquet.image_leaves(reader.schema, {}):
            remedy = "datasets.load_from_disk(…).to_parquet(…)"
            raise NotUnderstoodError(f"{path}: Arrow with images: write Parquet with {remedy}")
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    return reader.schema, parquet.arrow_rows(batches, size, path)


def _types(schema: Any) -> dict[str, str]:
    """Return the types of columns that Arrow declares, as tables have them."""
    import pyarrow as pa

    def dtype(kind: Any) -> str:
        if pa.types.is_integer(kind):
            return "int64"
        if pa.types.is_decimal(kind):
            return ""  # digits decide
        return "float32" if pa.types.is_floating(kind) else "bytes"

    return {field.name: dtype(field.type) for field in schema}


def _named(
    records: Iterator[Any],
    classes: objects.Classes = objects.NO_CLASSES,
    types: Mapping[str, str] = _NO_TYPES,
) -> Columns:
    """Return the columns of records.

    Args:
        records: of which the first have the names of all columns that ``types`` has not.
        classes: the names of the classes in columns of numbers.
        types: the declared types of columns.
    """
    records = (objects.with_names(record, classes) for record in records) if classes else records
    records = (keys_without_blanks(it) if isinstance(it, dict) else it for it in records)
    types, begin = keys_without_blanks(types), list(islice(records, _FIRST))
    first = [record for record in begin if isinstance(record, dict)]
    names = dict.fromkeys(chain(types, *first))
    filled = {name: [it[name] for it in first if it.get(name) is not None] for name in names}
    texts = [name for name, found in filled.items() if all(isinstance(it, str) for it in found)]
    types = types or dict.fromkeys(texts, "bytes")
    return Columns([*names], types, enumerate(chain(begin, records), start=1))


# --- outputs --------------------------------------------------------------------------------------

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


def _output_records(path: str, dataset: Dataset) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a shard of an output. Raises: RecordError: one is damaged."""
    for number, record in enumerate(RECORDS.read(path)):
        try:
            yield _output_record(parse_example(record), dataset)
        except ValueError as exc:
            raise RecordError(f"{path}: record {number}: {exc}") from exc


def _output_record(values: Mapping[str, Sequence[Any]], dataset: Dataset) -> Mapping[str, Any]:
    """Return the record of an example of an output. Raises: ValueError: its values do not fit."""
    plain = {feature: plain_value(each) for feature, each in values.items()}
    if dataset.features:  # a table, whose columns have any name
        return plain
    record = {column: plain[feature] for feature, column in _COLUMNS.items() if feature in plain}
    if features.VIDEO_URI in values:
        uri = text(record["video"], features.VIDEO_URI)
        record["video"] = storage.resolve(uri, storage.join(dataset.folder, ""))
    if features.ENTITY_START in values:
        lists = [[plain_value([it]) for it in values.get(feature, ())] for feature in _ENTITY]
        rows = zip(*lists, strict=True)
        record[objects.ENTITIES] = [dict(zip(_ENTITY.values(), it, strict=True)) for it in rows]
    return record
