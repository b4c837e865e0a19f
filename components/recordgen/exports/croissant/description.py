"""``croissant.json``: a description of a dataset in Croissant 1.1, for catalogues and loaders.

``mlcroissant.Dataset("OUT/croissant.json").records("labels")`` → the labels, record by record.

The record sets ``splits``, ``shards`` and ``labels`` contain their records. ``examples`` describes
the features of the TFRecords, which Croissant's own loader cannot read. ``rows`` has one record per
example, from ``examples.parquet``, which the loader can read: the place of the record, its
annotation, and measures of its image. ``index`` (see :mod:`recordgen.exports.croissant.index`) has
the small features.

Rules: "Croissant Format Specification" 1.1, docs.mlcommons.org/croissant. Unknown properties, such
as the licence, are missing: a loader warns of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordgen.core.dataset.manifest import EXAMPLES_FILE, Dataset
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.core.task.stored import is_image, stored_features
from recordgen.exports.croissant.fields import (
    CONTEXT,
    TYPES,
    columns_of,
    embedded,
    field_of,
    file_object,
    named,
)
from recordgen.lineage.events import dataset_name

_ROWS_FILES = "examples-parquet"

# Columns of examples.parquet with their types in Croissant, for all tasks and for images only.
# The import file is missing, because it may be a path of this machine, and so are integer columns
# with gaps, which mlcroissant cannot read.
_ROW_COLUMNS: Mapping[str, str] = {
    "split": "sc:Text",
    "shard": "sc:Text",
    "record": "cr:Int32",
    "line": "cr:Int64",
    "uri": "sc:Text",
    "annotation": "sc:Text",
    "content": "cr:UInt64",
}
_IMAGE_COLUMNS: Mapping[str, str] = {
    "format": "sc:Text",
    **dict.fromkeys(("width", "height"), "cr:Int32"),
    **dict.fromkeys(("brightness", "contrast", "entropy", "sharpness"), "cr:Float32"),
}

#: The index of all examples, see :mod:`recordgen.exports.croissant.index`.
INDEX_FILE = "records.parquet"

#: Columns of the index in addition to the features, with their types in Croissant.
INDEX_COLUMNS: Mapping[str, str] = {
    "split": "sc:Text",
    "shard": "sc:Text",
    "offset": "cr:Int64",
    "length": "cr:Int64",
}


_TFRECORD = "https://www.tensorflow.org/tutorials/load_data/tfrecord"

_SHARDS = "tfrecords"

# Croissant's names for the usual splits.
_SPLIT_URLS = {TRAIN: "cr:TrainingSplit", EVAL: "cr:ValidationSplit", TEST: "cr:TestSplit"}


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The index of a dataset; ``features`` are those that are its columns."""

    sha256: str
    bytes: int
    features: Sequence[str]


def croissant_text(
    dataset: Dataset,
    files: Mapping[str, str],
    index: IndexFile | None = None,
    *,
    has_rows: bool = True,
) -> str:
    """Return the content of ``croissant.json``.

    ``files`` are the files that name labels; ``has_rows``: there is an ``examples.parquet``.
    """
    records = [_splits(dataset), _shards(dataset), _labels(dataset), _examples(dataset)]
    distribution = [_shard_files(dataset), *_text_files(files)]
    if has_rows:
        records.append(_rows(dataset))
        distribution.append(_rows_files())
    if index is not None:
        records.append(_index(dataset, index))
        distribution.append(
            file_object(INDEX_FILE, "application/x-parquet", index.sha256, index.bytes)
        )
    described = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": dataset_name(dataset),
        "description": _description(dataset),
        "identifier": f"sha256:{dataset.digest}",
        "distribution": distribution,
        "recordSet": [record for record in records if record is not None],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _description(dataset: Dataset) -> str:
    # Import files are not named: they may be paths of this machine.
    counts = ", ".join(f"{name} {split.examples:,}" for name, split in dataset.splits.items())
    return f"{dataset.examples:,} examples of the task {dataset.task} as TFRecords ({counts})."


def _shard_files(dataset: Dataset) -> dict[str, Any]:
    suffix = ".gz" if dataset.compression == "gzip" else ""
    return {
        **named("cr:FileSet", _SHARDS),
        "description": f"Records of tf.train.Example, compression: {dataset.compression}.",
        "encodingFormat": _TFRECORD,
        "includes": f"Split-*/data_tfrecord-*{suffix}",
    }


def _text_files(files: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    for name, text in files.items():
        if data := text.encode():
            yield file_object(name, "text/plain", hashlib.sha256(data).hexdigest(), len(data))


def _splits(dataset: Dataset) -> dict[str, Any] | None:
    columns = {"name": "sc:Text", "url": "sc:URL", "examples": "cr:Int64", "bytes": "cr:Int64"}
    # Croissant has no URL for other splits, and no null in a column of URLs.
    if not dataset.splits.keys() <= _SPLIT_URLS.keys():
        del columns["url"]
    rows = [
        {
            "name": name,
            "url": _SPLIT_URLS.get(name),
            "examples": split.examples,
            "bytes": split.bytes,
        }
        for name, split in dataset.splits.items()
    ]
    return embedded("splits", columns, rows, key="name", kind="cr:Split")


def _shards(dataset: Dataset) -> dict[str, Any] | None:
    columns = {
        "file": "sc:Text",
        "split": "sc:Text",
        "examples": "cr:Int64",
        "bytes": "cr:Int64",
        "digest": "sc:Text",
    }
    rows = [
        {column: name if column == "split" else getattr(shard, column) for column in columns}
        for name, split in dataset.splits.items()
        for shard in split.shards
    ]
    return embedded("shards", columns, rows, key="file")


def _labels(dataset: Dataset) -> dict[str, Any] | None:
    columns = {"number": "cr:Int64", "name": "sc:Text"}
    rows = [{"number": number, "name": label} for number, label in enumerate(dataset.labels)]
    return embedded("labels", columns, rows, key="number", kind="sc:Enumeration")


def _examples(dataset: Dataset) -> dict[str, Any] | None:
    features = stored_features(dataset)
    if not features:  # a task of a package that is not installed here
        return None
    source = {"fileSet": {"@id": _SHARDS}}
    split = {
        "@type": "cr:Field",
        "@id": "examples/split",
        "name": "split",
        "dataType": "sc:Text",
        "source": {
            **source,
            "extract": {"fileProperty": "fullpath"},
            "transform": {"regex": "^(?:.*/)?Split-([^/]+)/.*$"},
        },
    }
    return {
        **named("cr:RecordSet", "examples"),
        "description": "Features of the TFRecords; each column is named as its feature.",
        "field": [
            split,
            *(
                field_of("examples", *item, source) | _pixels(dataset, item[0])
                for item in features.items()
            ),
        ],
    }


def _pixels(dataset: Dataset, name: str) -> dict[str, Any]:
    """Return the changed properties of a field with images that may be stored as raw pixels."""
    pixels = dataset.encoding.pixels
    if not pixels or not is_image(name):
        return {}
    shape = ", ".join(name.removesuffix("encoded") + part for part in ("height", "width"))
    layout = f"uint8 [height, width, 3] in C order, RGB; its sides are in {shape}"
    if pixels == "raw":
        return {"dataType": TYPES["bytes"], "description": f"Pixels: {layout}."}
    kind = name.removesuffix("encoded") + "format"
    return {"description": f"An image file or, where {kind} is raw, its pixels: {layout}."}


def _rows_files() -> dict[str, Any]:
    # Not a file object, which needs a sha256: the file has the paths of the import files, so the
    # same dataset from another folder would have another one.
    return {
        **named("cr:FileSet", _ROWS_FILES),
        "encodingFormat": "application/x-parquet",
        "includes": EXAMPLES_FILE,
    }


def _rows(dataset: Dataset) -> dict[str, Any]:
    source = {"fileSet": {"@id": _ROWS_FILES}}
    # Only if all examples have images, because of the gaps (see above).
    has_images = all(split.images is not None for split in dataset.splits.values())
    columns = {**_ROW_COLUMNS, **(_IMAGE_COLUMNS if has_images else {})}
    return {
        **named("cr:RecordSet", "rows"),
        "description": "One record per example, by import file and line: split, shard, the "
        "record's number there, line, uri, what the row says, a digest of the payload, and "
        "measures of the image.",
        "field": columns_of("rows", columns, source),
    }


def _index(dataset: Dataset, index: IndexFile) -> dict[str, Any]:
    features = stored_features(dataset)
    source = {"fileObject": {"@id": INDEX_FILE}}
    specs = {name: features[name] for name in index.features}
    places = columns_of("index", INDEX_COLUMNS, source)
    return {
        **named("cr:RecordSet", "index"),
        "description": "One record per example, in the order of the shards: the shard, the record's"
        " offset and length there in bytes (before compression), and its small features.",
        "field": [*places, *(field_of("index", *item, source) for item in specs.items())],
    }
