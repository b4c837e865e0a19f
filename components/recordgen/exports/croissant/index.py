"""``records.parquet``: one row per example, for tools that do not read TFRecords.

    split  shard                                    offset  length  image/class/text  …
    train  Split-train/data_tfrecord-00000-of-00001      0     392  3                 …

``offset`` and ``length`` locate the record in its shard (before compression): the ``length`` bytes
of the tf.train.Example begin at ``offset`` + 12. Bytes of images and arrays are omitted; text that
is not UTF-8 is null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any

from recordgen import storage
from recordgen.core.records import RECORDS
from recordgen.core.task.stored import (
    declared_values,
    is_image,
    label_files,
    stored_features,
)
from recordgen.exports.croissant.description import (
    INDEX_COLUMNS,
    INDEX_FILE,
    IndexFile,
    croissant_text,
)
from recordgen.exports.export import Exported, ExportOptions, FileExport
from recordgen.exports.output import Output
from recordgen.features import LIST_DTYPES, FeatureSpec

# Rows of a row group, which is in memory at once.
_ROWS_AT_ONCE = 10_000

_PART_BYTES = 1 << 20

_Row = dict[str, Any]


class Croissant(FileExport):
    """``croissant.json``, which every conversion writes; on request with the index."""

    file = "croissant.json"
    outdated = (INDEX_FILE,)
    takes = ()

    def text(self, output: Output) -> str:
        return _described(output, None)

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Write the index, and name it in ``croissant.json``.

        All shards are read once, including payloads.

        Raises:
            SourceError: there is no finished dataset.
            RecordError: a shard is damaged.
            StorageError: storage failed.
        """
        output = Output.open(place)
        index = storage.inside(output.root, INDEX_FILE)
        description = storage.inside(output.root, self.file)
        columns = _columns(stored_features(output.dataset))
        with storage.replacing(index) as file:
            _write_rows(file, columns, _rows(output, columns))
        found = IndexFile(*_sha256_and_bytes(index), tuple(columns))
        storage.write_text(description, _described(output, found))
        return Exported(files=(index, description))


def _described(output: Output, index: IndexFile | None) -> str:
    files = label_files(output.dataset)
    return croissant_text(output.dataset, files, index, has_rows=output.has_examples())


def _sha256_and_bytes(path: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with storage.open_read(path) as file:
        while part := file.read(_PART_BYTES):
            digest.update(part)
            size += len(part)
    return digest.hexdigest(), size


def _columns(features: Mapping[str, FeatureSpec]) -> Mapping[str, FeatureSpec]:
    return {
        name: spec
        for name, spec in features.items()
        if spec.dtype in LIST_DTYPES and not is_image(name) and name not in INDEX_COLUMNS
    }


def _rows(output: Output, columns: Mapping[str, FeatureSpec]) -> Iterator[_Row]:
    for split_name, split in output.dataset.splits.items():
        for shard in split.shards:
            offset, path = 0, output.path_of(shard.file)
            for number, record in enumerate(output.records(shard.file)):
                values = declared_values(record, f"{path}: record {number}", columns)
                yield {
                    "split": split_name,
                    "shard": shard.file,
                    "offset": offset,
                    "length": len(record),
                    **{name: _plain(values.get(name, ()), columns[name]) for name in columns},
                }
                offset += sum(map(len, RECORDS.frame([record])))


def _plain(values: Sequence[Any], spec: FeatureSpec) -> Any:
    """Return a feature's value, or its list of values; bytes as text."""
    plain = [_text(value) if isinstance(value, bytes) else value for value in values]
    if spec.shape != ():
        return plain
    missing = None if spec.has_gaps else "" if spec.dtype == "bytes" else spec.default
    return plain[0] if plain else missing


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _write_rows(file: IO[bytes], columns: Mapping[str, FeatureSpec], rows: Iterator[_Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"bytes": pa.string(), "int64": pa.int64(), "float32": pa.float32()}
    places = {"sc:Text": pa.string(), "cr:Int64": pa.int64()}
    fields = [(name, places[kind]) for name, kind in INDEX_COLUMNS.items()]
    for name, spec in columns.items():
        kind = types[spec.dtype]
        fields.append((name, kind if spec.shape == () else pa.list_(kind)))
    schema = pa.schema(fields)
    with pq.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
