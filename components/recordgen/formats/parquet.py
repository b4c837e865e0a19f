"""Parquet files with images, as Hugging Face's datasets and Recordgen's export write them.

    image {bytes, path}   label            objects {bbox, category}
    …, rex.jpg            1 (= dog)        [[10, 20, 30, 40]], [1]

becomes the picture ``train-00000-of-00002.parquet/0/rex.jpg`` with the label, or with the box of a
dog. The image stays in the file: an uncompressed page holds its length and its bytes, so it is a
range of the file. In a compressed column it is a range of the values of its row group
(:mod:`recordgen.payloads.parquet_values`).

Types, and the features that Hugging Face declares in the metadata of a schema, say which columns
hold images, labels and objects; then their names do. The schema also has the names of classes.
"""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from recordgen import storage
from recordgen.core.limits import NAME_BYTES, ROW_BYTES, ROWS, UNPACKED_BYTES, UNPACKED_TIMES
from recordgen.core.rows.row import Range, name_within
from recordgen.errors import RecordgenError, SourceError
from recordgen.formats import objects, pictures
from recordgen.formats.field_kinds import IMAGE_WORD
from recordgen.formats.format import Evidence
from recordgen.formats.header import NOTHING_GIVEN, Given, column_name, keys_without_blanks
from recordgen.formats.json_values import json_value
from recordgen.formats.listing import Listing
from recordgen.formats.proposal import unknown_columns
from recordgen.payloads.parquet_values import ROWS_AT_ONCE, parquet_file, rows_at_once
from recordgen.rejects import RejectCode
from recordgen.storage.copies import CACHE_BYTES
from recordgen.subjects.picture import Picture
from recordgen.tables.roles import LABEL, LABEL_COLUMNS, LABEL_TEXT, MASK_COLUMNS, SIZE_ROLES

#: The first bytes of a file.
MAGIC = b"PAR1"


@dataclass(frozen=True)
class ParquetColumns:
    """Which columns of a file hold what.

    Attributes:
        leaves: the paths of the bytes of images and masks, by column.
        mask: the column of masks; "" if there is none.
        label: the column of labels; "" if there is none.
        objects: the column of objects; "" if there is none.
        several: a row may have several labels.
        names: the names of classes by number.
    """

    image: str
    leaves: Mapping[str, str]
    mask: str
    label: str
    objects: str
    several: bool
    names: Sequence[str]
    read: Sequence[str]


def columns_of(listing: Listing, path: str, given: Given = NOTHING_GIVEN) -> ParquetColumns | None:
    """Return the columns of images, labels and objects; None without images.

    Raises: NotUnderstoodError: a column has no known role, or options name only others.
    """
    schema, features = schema_of(listing, path)
    leaves = image_leaves(schema, features)
    is_labelled = any(column_name(name) in LABEL_COLUMNS for name in schema.names)
    masks = [name for name in leaves if column_name(name) in MASK_COLUMNS and not is_labelled]
    mask = "".join(masks[:1])
    images = [name for name in leaves if name != mask]
    if not images:
        return None
    others = [field for field in schema if field.name not in leaves]
    boxes = next((field.name for field in others if _has_boxes(field.type)), "")
    declared = [field.name for field in others if objects.class_names(features.get(field.name))]
    usual = [field.name for field in others if field.name.strip().lower() in LABEL_COLUMNS]
    label = "" if boxes else next((found[0] for found in (declared, usual) if len(found) == 1), "")
    has_classes = bool(objects.class_names(features.get(label)))
    if label == LABEL and LABEL_TEXT in schema.names and not has_classes:
        label = LABEL_TEXT
    number = LABEL if label == LABEL_TEXT else ""
    known = {label, number, boxes, LABEL_TEXT, f"{mask}_source_id"}
    known |= {*SIZE_ROLES, *objects.IMAGE_NAMES}
    others = [field for field in others if field.name not in known]
    image, *more = images
    if more or others or given.roles or not (label or boxes or mask):
        unknown = [field.name for field in others] or more or [image]
        where = f"{listing.root}{path}"
        what = f"no role is known for {', '.join(unknown):.200} ({', '.join(schema.names):.200})"
        raise unknown_columns(where, what, images, unknown, given, label)
    names = classes_of(listing, path, boxes or label)
    label = "" if mask else label  # the pixels show the classes
    several = bool(label) and _is_list(schema.field(label).type)
    wanted = [image, mask, label, boxes, *SIZE_ROLES]
    read = [name for name in dict.fromkeys(wanted) if name in schema.names]
    return ParquetColumns(image, leaves, mask, label, boxes, several, names, read)


def image_leaves(schema: Any, features: Mapping[str, Any], given: str = "") -> Mapping[str, str]:
    """Return the columns of images in a schema of Arrow, and the path of their bytes.

    ``given`` is the only one, if it is not empty.
    """
    import pyarrow as pa

    leaves = {}
    for field in schema:
        kind, declared = field.type, features.get(field.name)
        inside = [kind.field(at).name for at in range(kind.num_fields)]
        is_struct = pa.types.is_struct(kind) and "bytes" in inside
        form = declared.get("_type") if isinstance(declared, dict) else None
        is_image = form == "Image"
        is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if given not in ("", field.name):
            continue
        if is_struct and (is_image or form is None or given):
            leaves[field.name] = f"{field.name}.bytes"
        elif is_binary and (is_image or given or IMAGE_WORD.search(field.name)):
            leaves[field.name] = field.name
    return leaves


def _has_boxes(kind: Any) -> bool:
    """Return whether a column has a field ``bbox`` in a struct, or in a list of structs."""
    import pyarrow as pa

    kind = kind.value_type if _is_list(kind) else kind
    return pa.types.is_struct(kind) and kind.get_field_index("bbox") >= 0


def _is_list(kind: Any) -> bool:
    """Return whether the values of a column are lists; those of Polars are large ones."""
    import pyarrow as pa

    return isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)


def schema_of(listing: Listing, name: str) -> tuple[Any, Mapping[str, Any]]:
    """Return the schema of a file, and the features that Hugging Face declares in its metadata."""
    with opened(listing, name) as file:
        schema = file.schema_arrow
    return schema, features_of(schema)


def features_of(schema: Any) -> Mapping[str, Any]:
    """Return the features that Hugging Face declares in the metadata of a schema of Arrow."""
    try:
        found = json_value((schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        found = {}
    return found if isinstance(found, dict) else {}


def stored_names(schema: Any) -> Mapping[str, str]:
    """Return the names of columns as they are stored, also by their names without blanks."""
    names = [*map(str.strip, schema.names)]
    return {**dict(zip(names, schema.names, strict=True)), **{it: it for it in schema.names}}


def classes_of(listing: Listing, name: str, column: str) -> Sequence[str]:
    """Return the names of the numbers in a column, which the features or a file beside declare."""
    declared = schema_of(listing, name)[1] if listing.head(name).startswith(MAGIC) else {}
    return objects.class_names(declared.get(column)) or objects.names_beside(listing, name, column)


# Between two values of a column there may be the header of a page, and its levels.
_BETWEEN = 1 << 16
_MAX_DICTIONARY = 8 << 20
_TABLE_ROWS = 1024  # rows without images that are held in memory at once
_EMBED = "let datasets write them with save_to_disk, load_from_disk and to_parquet"


class Parquet(pictures.PictureFormat):
    """Parquet with a column of images and one of labels or objects."""

    name = "parquet"
    tasks = objects.TASKS_OF_IMAGES
    in_pixels = True
    has_roles = True

    def detect(self, listing: Listing, given: Given = NOTHING_GIVEN) -> Evidence | None:
        found = listing.candidates(".parquet")
        if not found or not listing.head(found[0]).startswith(b"PAR1\x15"):
            return None
        listing.check_ranges(found[0])
        columns = columns_of(listing, found[0], given)
        if columns is None:
            return None
        single, several, boxes, masks = self.tasks
        task = boxes if columns.objects else several if columns.several else single
        task = masks if columns.mask else task
        used = columns.mask or columns.objects or columns.label
        return Evidence(f"{found[0]} has {columns.image} and {used}", task, found, columns.names)

    detect_given = detect

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        columns = columns_of(listing, document)
        if columns is None:
            raise SourceError(f"{listing.root}{document}: there is no column of images")
        rows = placed_rows(listing, document, columns.read, columns.leaves)
        yield from pictures.examples(rows, partial(_picture, listing, document, columns))


def placed_rows(
    listing: Listing, document: str, read: Sequence[str], leaves: Mapping[str, str]
) -> pictures.Numbered:
    """Yield the numbers of rows, from 1, and their values by column.

    ``read`` are the columns, ``leaves`` the paths of the bytes of files by column, whose values are
    :class:`recordgen.formats.objects.StoredFile`.

    Raises: SourceError: the file is damaged as a whole.
    """
    line, used = 0, frozenset(read)
    with opened(listing, document) as file, listing.open(document) as raw:
        is_far = not storage.is_local(listing.root)
        file_bytes, unpacked = raw.seek(0, io.SEEK_END), 0
        most = max(CACHE_BYTES, UNPACKED_TIMES.most * file_bytes)
        for group in range(file.num_row_groups):
            first, line = line, line + file.metadata.row_group(group).num_rows
            try:
                if line > file_bytes // ROW_BYTES.most:
                    ROWS.check(line)
                leaf = next(iter(leaves.values()), "")
                at_once = rows_at_once(raw, file, group, used, leaf, ROWS_AT_ONCE, is_far=is_far)
                chunk_of = partial(_Chunk, raw, document, file, group)
                chunks = {name: chunk_of(path) for name, path in leaves.items()}
            except ValueError as exc:
                yield _lost(document, first, group, RejectCode.TOO_MANY_BYTES, str(exc))
                continue
            for number, row in enumerate(_rows(file, group, read, at_once), start=first):
                if isinstance(row, SourceError):
                    yield _lost(document, number, group, RejectCode.CORRUPT, str(row))
                    break
                files = {name: chunk.file_of(row.get(name)) for name, chunk in chunks.items()}
                yield number + 1, {**row, **files}
                if unpacked + sum(chunk.total for chunk in chunks.values()) > most:
                    why = f"with those of later row groups, images have more than {most:,} bytes"
                    yield _lost(document, number, group, RejectCode.TOO_MANY_BYTES, why)
                    return
            unpacked += sum(chunk.total for chunk in chunks.values())


def named_rows(
    listing: Listing,
    document: str,
    container: str,
    images: Sequence[str],
    names: Sequence[str],
    labels: Sequence[str] = (),
) -> pictures.Numbered:
    """Yield the numbers of rows, from 1, and their values, with the names of classes.

    Args:
        listing: the files beside the document.
        document: the file.
        container: what the uris of images begin with.
        images: the columns of images, as far as they hold any.
        names: the columns to read.
        labels: those whose numbers may have names in a file beside it.
    """
    schema, features = schema_of(listing, document)
    stored = stored_names(schema)
    leaves: dict[str, str] = {}
    for image in images:
        leaves |= image_leaves(schema, features, stored.get(image, image))
    beside = {column: objects.names_beside(listing, document, column) for column in labels}
    classes = {column: each for column, each in beside.items() if each}
    classes |= keys_without_blanks(objects.classes_in(features))
    columns = [stored[name] for name in names if name in stored]

    def values(line: int, row: Mapping[str, Any]) -> tuple[int, Any]:
        files = {image: row[image].in_row(container, line - 1) for image in leaves}
        return line, objects.with_names(keys_without_blanks({**row, **files}), classes)

    return pictures.examples(placed_rows(listing, document, columns, leaves), values)


def _lost(document: str, number: int, group: int, code: RejectCode, why: str) -> pictures.Problem:
    """Return the reject of the rows of a row group from one on."""
    message = f"row group {group} is not read from here on: {why}; write smaller row groups"
    return pictures.Problem(number + 1, message, f"{document}/{number}", code)


def table_rows(listing: Listing, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a Parquet file without images. Raises: SourceError: it is damaged."""
    is_far = not storage.is_local(listing.root)
    with opened(listing, name) as file, listing.open(name) as raw:
        groups = range(file.num_row_groups)
        count = sum(file.metadata.row_group(group).num_rows for group in groups)
        if count > raw.seek(0, io.SEEK_END):
            ROWS.check(count)
        for group in groups:
            rows = rows_at_once(raw, file, group, frozenset(), "", _TABLE_ROWS, is_far=is_far)
            for batch in file.iter_batches(rows, row_groups=[group]):
                yield from batch.to_pylist()


@contextmanager
def opened(listing: Listing, name: str) -> Iterator[Any]:
    """Open a Parquet file. Raises: SourceError: it is damaged."""
    with listing.open(name) as raw, arrow_errors(f"{listing.root}{name}", "Parquet"):
        yield parquet_file(raw)


def arrow_rows(batches: Iterable[Any], stored: int, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of Arrow's batches in a file of ``stored`` bytes.

    Raises: SourceError: the file is damaged, or unpacks to far more bytes or rows than it has.
    """
    count = unpacked = 0
    with arrow_errors(path, "Arrow"):
        for batch in batches:
            batch.validate(full=True)  # offsets of a damaged file lead anywhere
            count += batch.num_rows
            unpacked += sum(map(_unpacked_bytes, batch.columns))
            if count > stored:
                ROWS.check(count)
            if unpacked > UNPACKED_TIMES.most * stored:
                UNPACKED_BYTES.check(unpacked)
            for at in range(0, batch.num_rows, _TABLE_ROWS):
                yield from batch.slice(at, _TABLE_ROWS).to_pylist()


def _unpacked_bytes(column: Any) -> int:
    """Return the bytes of a column, in which each row of a dictionary has its own text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type) or pa.types.is_primitive(column.type.value_type):
        return int(column.nbytes)
    return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)


@contextmanager
def arrow_errors(path: str, kind: str) -> Iterator[None]:
    """Map the errors of reading a file with PyArrow. Raises: SourceError: it is damaged."""
    import pyarrow as pa

    try:
        yield
    except RecordgenError:
        raise
    # Arrow has dates, times and zones that Python has not.
    except (pa.ArrowException, OSError, ValueError, ArithmeticError, LookupError) as exc:
        raise SourceError(f"{path}: damaged {kind} file: {exc}") from exc
    except MemoryError as exc:
        message = "it announces more bytes than memory holds; write it again, in smaller batches"
        raise SourceError(f"{path}: damaged {kind} file: {message}") from exc


def _rows(
    file: Any, group: int, names: Sequence[str], at_once: int
) -> Iterator[Mapping[str, Any] | SourceError]:
    """Yield the rows of a row group, or the error about its first damaged page."""
    batches = file.iter_batches(at_once, row_groups=[group], columns=list(names))
    try:
        with arrow_errors("its next page", "Parquet"):
            while (batch := next(batches, None)) is not None:
                rows = batch.to_pylist()
                del batch  # before the next one: values may be large
                yield from rows
                del rows
    except SourceError as exc:
        yield exc


def _picture(
    listing: Listing, document: str, columns: ParquetColumns, line: int, row: Mapping[str, Any]
) -> Picture:
    """Return the image of a row. Raises: ValueError: it cannot be used."""
    from recordgen.payloads.opening import file_header

    data, path, payload = row[columns.image]
    number = line - 1
    if len(path) > NAME_BYTES.most:
        message = f"row {number} has a path of {len(path):,} letters"
        raise pictures.ExampleError(message, f"{document}/{number}", RejectCode.TOO_MANY_PARTS)
    uri = name_within(document, number, path)
    if data is None and not path:
        message = f"row {number} has no image: neither bytes nor a path"
        raise pictures.ExampleError(message, uri, RejectCode.MISSING_FILE)
    if data is None:
        try:
            uri = pictures.image_named(listing, path, posixpath.dirname(document))
        except pictures.ExampleError as exc:
            message = f"{exc}; the row has this path and no bytes: {_EMBED}"
            raise pictures.ExampleError(message, uri, exc.code) from exc
    with pictures.about(uri):
        marked = objects.read_objects(row.get(columns.objects) or [], columns.names)
        labels = objects.labels_of(row[columns.label] if columns.label else None, columns.names)
        size = pictures.size_of(*map(row.get, SIZE_ROLES)) if marked else None
        if data is not None and marked and size is None:
            header = file_header(data)
            size = header.width, header.height
    mask = row[columns.mask].place if columns.mask else None
    files = [payload, mask] if mask else [payload]
    masked = "" if columns.objects and not columns.mask else None
    return Picture(line, uri, None, size, marked, labels, payloads=files, mask=masked)


class _Chunk:
    """Where the images of one row group are.

    In an uncompressed column, values follow each other as a length and bytes, with a page's header
    here and there. A value is searched behind the one before, and all its bytes are compared, so
    nothing depends on how pages are laid out.
    """

    def __init__(self, raw: IO[bytes], document: str, file: Any, group: int, leaf: str) -> None:
        found = file.metadata.row_group(group)
        chunks = enumerate(map(found.column, range(found.num_columns)))
        column, chunk = next((it for it in chunks if it[1].path_in_schema == leaf), (0, None))
        if chunk is None:
            raise ValueError(f"there is no column {leaf}")
        self._raw, self._document = raw, document
        self._values = f"{group}.{column}"
        self.total = 0  # bytes of the values so far
        self._is_plain = chunk.compression == "UNCOMPRESSED"
        first = chunk.data_page_offset
        self._start = min(first, chunk.dictionary_page_offset or first)
        self._end = self._start + chunk.total_compressed_size
        self._at = self._start
        # Of the packed bytes, each row has the same share.
        self._packed = chunk.total_compressed_size // max(1, chunk.num_values)

    def file_of(self, value: Any) -> objects.StoredFile:
        """Return the file in the value of the next row."""
        found = value if isinstance(value, Mapping) else {"bytes": value}
        data = found.get("bytes")
        place = None if data is None else self._place_of(data)
        return objects.StoredFile(data, found.get("path") or "", place)

    def _place_of(self, data: bytes) -> Range:
        """Return where the next value is, which follows those before."""
        offset = self.total
        self.total += len(data)
        found = self._place_in_file(data) if self._is_plain else -1
        if found >= 0:
            return Range(self._document, found, len(data))
        self._is_plain = False  # another encoding than PLAIN: do not search in vain
        return Range(self._document, offset, min(len(data), self._packed), len(data), self._values)

    def _place_in_file(self, data: bytes) -> int:
        """Return where the next value begins in the file, or -1 if it is not there as it is."""
        wanted = len(data).to_bytes(4, "little") + data
        found = self._find(wanted, self._at, len(wanted))
        if found < 0:
            found = self._find(wanted, self._at, len(wanted) + _BETWEEN)
        if found >= 0:
            self._at = found + len(wanted)
        else:  # a value that occurs often is only in the dictionary, before all pages
            found = self._find(wanted, self._start, len(wanted) + _MAX_DICTIONARY)
        return found if found < 0 else found + 4

    def _find(self, wanted: bytes, start: int, size: int) -> int:
        """Return where bytes are within ``size`` bytes of the file, or -1."""
        self._raw.seek(start)
        at = self._raw.read(max(0, min(size, self._end - start))).find(wanted)
        return at if at < 0 else start + at
