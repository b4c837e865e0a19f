"""``croissant.json``: a description of a dataset in Croissant 1.1, for catalogues and loaders.

``mlcroissant.Dataset("OUT/croissant.json").records("labels")`` → the labels, record by record.

The record sets ``splits``, ``shards`` and ``labels`` contain their records. ``examples`` describes
the features of the TFRecords, which Croissant's own loader cannot read. ``rows`` has one record per
example, from ``examples.parquet``, which the loader can read: the place of the record, its
annotation, and measures of its image.

Rules: "Croissant Format Specification" 1.1, docs.mlcommons.org/croissant. Unknown properties, such
as the licence, are missing: a loader warns of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from recordgen.core.dataset.events import dataset_name
from recordgen.core.dataset.manifest import EXAMPLES_FILE, Dataset
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.core.task.stored import is_image, label_files, stored_features
from recordgen.exports.export import FileExport
from recordgen.exports.output import Output
from recordgen.features import FeatureSpec

_TYPES = {
    "bool": "sc:Boolean",
    "bytes": "sc:Text",
    **{f"float{bits}": f"cr:Float{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"cr:Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"cr:UInt{bits}" for bits in (8, 16, 32, 64)},
}

# The context of the specification's appendix, which sorts it.
_OF_CROISSANT = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty "
    "fileSet format includes isArray isLiveDataset jsonPath key md5 parentField path recordSet "
    "references regex repeated replace samplingRate separator source subField transform"
)
_CONTEXT = {
    **{name: f"cr:{name}" for name in _OF_CROISSANT.split()},
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}

# More records would make the description too large to read; they are in files anyway.
_MOST_EMBEDDED = 10_000

# Columns of record sets with their types; of examples.parquet for all tasks and for images only.
# The import file is missing, because it may be a path of this machine, and so are integer columns
# with gaps, which mlcroissant cannot read.
_SPLITS = {"name": "sc:Text", "url": "sc:URL", "examples": "cr:Int64", "bytes": "cr:Int64"}
_SHARDS = {
    **dict.fromkeys(("file", "split"), "sc:Text"),
    **dict.fromkeys(("examples", "bytes"), "cr:Int64"),
    "digest": "sc:Text",
}
_LABELS = {"number": "cr:Int64", "name": "sc:Text"}
_ROWS = {
    **dict.fromkeys(("split", "shard"), "sc:Text"),
    "record": "cr:Int32",
    "line": "cr:Int64",
    **dict.fromkeys(("uri", "annotation"), "sc:Text"),
    "content": "cr:UInt64",
}
_IMAGES = {
    "format": "sc:Text",
    **dict.fromkeys(("width", "height"), "cr:Int32"),
    **dict.fromkeys(("brightness", "contrast", "entropy", "sharpness"), "cr:Float32"),
}

# Croissant's names for the usual splits.
_SPLIT_URLS = {TRAIN: "cr:TrainingSplit", EVAL: "cr:ValidationSplit", TEST: "cr:TestSplit"}


class Croissant(FileExport):
    """``croissant.json``, which every conversion writes."""

    file = "croissant.json"

    def text(self, output: Output) -> str:
        dataset = output.dataset
        distribution, records = _distribution(dataset), _record_sets(dataset)
        if output.has_examples():
            files = _named("cr:FileSet", "examples-parquet")
            # Not a file object, which needs a sha256: the file has the paths of the import files,
            # so the same dataset from another folder would have another one.
            media = {"encodingFormat": "application/x-parquet", "includes": EXAMPLES_FILE}
            distribution.append({**files, **media})
            records.append(_rows(dataset))
        # Import files are not named: they may be paths of this machine.
        counts = ", ".join(f"{name} {split.examples:,}" for name, split in dataset.splits.items())
        described = {
            "@context": dict(sorted(_CONTEXT.items())),
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.1",
            "name": dataset_name(dataset),
            "description": f"{dataset.examples:,} examples of the task {dataset.task} as TFRecords "
            f"({counts}).",
            "identifier": f"sha256:{dataset.digest}",
            "distribution": distribution,
            "recordSet": records,
        }
        return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _named(kind: str, name: str) -> dict[str, Any]:
    """Return the start of a file, a record set or another part with a name."""
    return {"@type": kind, "@id": name, "name": name}


def _distribution(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the shards, and the files that name labels."""
    shards = {
        **_named("cr:FileSet", "tfrecords"),
        "description": f"Records of tf.train.Example, compression: {dataset.compression}.",
        "encodingFormat": "https://www.tensorflow.org/tutorials/load_data/tfrecord",
        "includes": "Split-*/data_tfrecord-*" + (".gz" if dataset.compression == "gzip" else ""),
    }
    texts = {name: text.encode() for name, text in label_files(dataset).items()}
    files = [
        {
            **_named("cr:FileObject", name),
            "contentUrl": name,
            "contentSize": f"{len(data)} B",
            "encodingFormat": "text/plain",
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        for name, data in texts.items()
        if data
    ]
    return [shards, *files]


def _record_sets(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the record sets that contain their records, and the features of the examples."""
    columns = dict(_SPLITS)
    # Croissant has no URL for other splits, and no null in a column of URLs.
    if not dataset.splits.keys() <= _SPLIT_URLS.keys():
        del columns["url"]
    splits = [
        {
            "name": name,
            "url": _SPLIT_URLS.get(name),
            "examples": split.examples,
            "bytes": split.bytes,
        }
        for name, split in dataset.splits.items()
    ]
    shards = [
        {name: split if name == "split" else getattr(shard, name) for name in _SHARDS}
        for split, found in dataset.splits.items()
        for shard in found.shards
    ]
    labels = [{"number": number, "name": label} for number, label in enumerate(dataset.labels)]
    return [
        *_embedded("splits", columns, splits, dataType="cr:Split"),
        *_embedded("shards", _SHARDS, shards),
        *_embedded("labels", _LABELS, labels, dataType="sc:Enumeration"),
        *_examples(dataset),
    ]


def _embedded(
    name: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], **more: str
) -> list[dict[str, Any]]:
    """Return a record set with its records; none if there are no records, or too many.

    The first of the columns is the key.
    """
    if not 0 < len(rows) <= _MOST_EMBEDDED:
        return []
    described = {
        **_named("cr:RecordSet", name),
        **more,
        "key": {"@id": f"{name}/{next(iter(columns))}"},
        "field": _fields(name, columns),
        "data": [{f"{name}/{column}": row[column] for column in columns} for row in rows],
    }
    return [described]


def _fields(
    record_set: str, columns: Mapping[str, str], source: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the fields for columns and their types; ``source`` is the file with the columns."""
    return [
        {
            "@type": "cr:Field",
            "@id": f"{record_set}/{name}",
            "name": name,
            "dataType": data_type,
            **({} if source is None else {"source": {**source, "extract": {"column": name}}}),
        }
        for name, data_type in columns.items()
    ]


def _rows(dataset: Dataset) -> dict[str, Any]:
    # Only if all examples have images, because of the gaps (see above).
    has_images = all(split.images is not None for split in dataset.splits.values())
    columns = {**_ROWS, **(_IMAGES if has_images else {})}
    return {
        **_named("cr:RecordSet", "rows"),
        "description": "One record per example, by import file and line: split, shard, the "
        "record's number there, line, uri, what the row says, a digest of the payload, and "
        "measures of the image.",
        "field": _fields("rows", columns, {"fileSet": {"@id": "examples-parquet"}}),
    }


def _examples(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the record set of the features; none for a task that is not installed here."""
    specs = stored_features(dataset)
    if not specs:
        return []
    source = {"fileSet": {"@id": "tfrecords"}}
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
    described = {
        **_named("cr:RecordSet", "examples"),
        "description": "Features of the TFRecords; each column is named as its feature.",
        "field": [split, *(_feature(dataset, name, spec) for name, spec in specs.items())],
    }
    return [described]


def _feature(dataset: Dataset, name: str, spec: FeatureSpec) -> dict[str, Any]:
    """Return the field for a feature."""
    found: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"examples/feature/{name}",
        "name": name,
        "dataType": "sc:ImageObject" if is_image(name) else _TYPES[spec.dtype],
        "source": {"fileSet": {"@id": "tfrecords"}, "extract": {"column": name}},
    }
    if spec.shape != ():
        sides = ",".join(map(str, spec.shape or (-1,)))
        found |= {"isArray": True, "arrayShape": sides}
    return found | _pixels(dataset, name)


def _pixels(dataset: Dataset, name: str) -> dict[str, Any]:
    """Return the changed properties of a field with images that may be stored as raw pixels."""
    pixels = dataset.encoding.pixels
    if not pixels or not is_image(name):
        return {}
    shape = ", ".join(name.removesuffix("encoded") + part for part in ("height", "width"))
    layout = f"uint8 [height, width, 3] in C order, RGB; its sides are in {shape}"
    if pixels == "raw":
        return {"dataType": _TYPES["bytes"], "description": f"Pixels: {layout}."}
    kind = name.removesuffix("encoded") + "format"
    return {"description": f"An image file or, where {kind} is raw, its pixels: {layout}."}
