"""Parquet as Hugging Face's hub lays it out: ``data/train-00000-of-00012.parquet``.

    image {bytes, path} · label ClassLabel(cat, dog) · label_text string · source_id string

The schema's metadata say the types, so that ``load_dataset("parquet", data_files=…)`` decodes
images and names classes, and the hub's viewer shows them; pandas and SQL see ``label_text``.
Rules: "Structure your repository" and "Create an image dataset" of Hugging Face's datasets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar

from recordgen.errors import RecordError
from recordgen.exports.columns import IMAGE, Column, columns_of
from recordgen.exports.copying import PARTS, Copy, ShardCopyExport, Stored, check_sizes
from recordgen.tables.roles import LABEL, LABEL_TEXT

# A group is in memory at once, here and in readers; a reader of one image reads its group.
_IMAGES_AT_ONCE = 100
_ROWS_AT_ONCE = 10_000
_BYTES_AT_ONCE = 64 << 20


class Parquet(ShardCopyExport):
    """A Parquet file for each shard."""

    name = "parquet"
    keeps = PARTS
    words: ClassVar = {"eval": "validation"}  # the hub takes eval for a name of test

    def check(self, copy: Copy) -> None:
        columns_of(copy.dataset)
        check_sizes(copy)

    def shard_name(self, split: str, at: int, count: int) -> str:
        return f"data/{self.word(split)}-{at:05d}-of-{count:05d}.parquet"

    def write_shard(self, copy: Copy, file: IO[bytes], examples: Iterator[Stored]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = _with_names(columns_of(copy.dataset))
        images = [column.name for column in columns if column.feature == IMAGE]
        declared = {"info": {"features": {column.name: column.feature for column in columns}}}
        fields = [(column.name, _arrow_type(column.feature)) for column in columns]
        schema = pa.schema(fields, {"huggingface": json.dumps(declared)})
        # Images are compressed already, and their least and largest bytes say nothing.
        parts = [f"{name}.bytes" for name in images]
        others = [path for path in _leaves(schema) if path not in parts]
        with pq.ParquetWriter(
            file,
            schema,
            compression={path: "NONE" if path in parts else "SNAPPY" for path in (*parts, *others)},
            use_dictionary=others,
            write_statistics=others,
        ) as writer:
            at_once = _IMAGES_AT_ONCE if images else _ROWS_AT_ONCE
            for rows in _groups(examples, columns, at_once):
                writer.write_table(pa.Table.from_pylist(rows, schema), row_group_size=at_once)


def _with_names(columns: Sequence[Column]) -> Sequence[Column]:
    """Return the columns, and the name of each label, for readers that see no schema."""
    label = next((each for each in columns if each.name == LABEL), None)
    if label is None or "names" not in label.feature or LABEL_TEXT in {it.name for it in columns}:
        return columns
    names = dict(enumerate(label.feature["names"]))
    text = {"dtype": "string", "_type": "Value"}
    return [*columns, Column(LABEL_TEXT, text, lambda values: names.get(label.read(values)))]


def _groups(
    examples: Iterator[Stored], columns: Sequence[Column], at_once: int
) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the rows of each row group."""
    rows: list[Mapping[str, Any]] = []
    size = 0
    for example in examples:
        values = example.values()
        try:
            rows.append({column.name: column.read(values) for column in columns})
        except (TypeError, ValueError) as exc:
            raise RecordError(f"{example.where}: {exc}") from exc
        size += len(example.record)
        if len(rows) == at_once or size >= _BYTES_AT_ONCE:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _arrow_type(feature: Any) -> Any:
    """Return the type of a feature, see :mod:`recordgen.exports.columns`."""
    import pyarrow as pa

    if isinstance(feature, list):
        return pa.list_(_arrow_type(feature[0]))
    if "_type" not in feature:
        return pa.struct([(name, _arrow_type(each)) for name, each in feature.items()])
    kind = feature["_type"]
    if kind == "Sequence":
        return pa.list_(_arrow_type(feature["feature"]))
    if kind == "Image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    dtype = feature.get("dtype", "int64")  # of a class
    return pa.bool_() if dtype == "bool" else getattr(pa, dtype)()


def _leaves(schema: Any) -> Sequence[str]:
    """Return the paths of all leaves of a schema, as Parquet names them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pa.BufferOutputStream() as out:
        pq.write_table(schema.empty_table(), out)
        found = pq.ParquetFile(pa.BufferReader(out.getvalue())).schema
    return [found.column(at).path for at in range(len(found))]
