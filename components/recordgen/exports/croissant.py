"""``croissant.json``: a description of a dataset in Croissant 1.1, for catalogues and loaders.

``mlcroissant.Dataset("OUT/croissant.json").records("labels")`` → the labels, record by record.

The template ``croissant.json`` has all that every description says. The record sets ``splits``,
``shards`` and ``labels`` contain their records. ``examples`` describes the features of the
TFRecords, which Croissant's own loader cannot read. ``rows`` has one record per example, from
``examples.parquet``, which the loader can read: the place of the record, its annotation, and
measures of its image. Its import file is missing, because it may be a path of this machine, and so
are integer columns with gaps, which mlcroissant cannot read.

Rules: "Croissant Format Specification" 1.1, docs.mlcommons.org/croissant. Unknown properties, such
as the licence, are missing: a loader warns of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordgen.core.dataset.manifest import Dataset
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.core.task.annotation import is_image, label_files, stored_features
from recordgen.exports.export import FileExport
from recordgen.exports.output import Output
from recordgen.exports.templates import file_text
from recordgen.features import FeatureSpec
from recordgen.lineage.events import dataset_name

_TYPES = {
    "bool": "sc:Boolean",
    "bytes": "sc:Text",
    **{f"float{bits}": f"cr:Float{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"cr:Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"cr:UInt{bits}" for bits in (8, 16, 32, 64)},
}

# More records would make the description too large to read; they are in files anyway.
_MOST_EMBEDDED = 10_000

# The first fields of the rows, which are not about images.
_ROW_FIELDS = 7

# What a shard says of itself.
_SHARD = ("file", "examples", "bytes", "digest")

# Croissant's names for the usual splits.
_SPLIT_URLS = {TRAIN: "cr:TrainingSplit", EVAL: "cr:ValidationSplit", TEST: "cr:TestSplit"}


class Croissant(FileExport):
    """``croissant.json``, which every conversion writes."""

    file = "croissant.json"

    def text(self, output: Output) -> str:
        dataset, described = output.dataset, json.loads(file_text(self.file))
        counts = ", ".join(f"{name} {split.examples:,}" for name, split in dataset.splits.items())
        described["name"] = dataset_name(dataset)
        described["description"] = (
            f"{dataset.examples:,} examples of the task {dataset.task} as TFRecords ({counts})."
        )
        described["identifier"] = f"sha256:{dataset.digest}"
        shards, label_file, table = described["distribution"]
        shards["description"] += f"{dataset.compression}."
        shards["includes"] += ".gz" if dataset.compression == "gzip" else ""
        # A table is a set and not a file object, which needs a sha256: the file has the paths of
        # the import files, so the same dataset from another folder would have another one.
        tables = [table] if output.has_examples() else []
        described["distribution"] = [shards, *_label_files(dataset, label_file), *tables]
        *sets, rows = described["recordSet"]
        described["recordSet"] = [*_record_sets(dataset, *sets), *([rows] if tables else [])]
        if any(split.images is None for split in dataset.splits.values()):  # gaps
            del rows["field"][_ROW_FIELDS:]
        return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _label_files(dataset: Dataset, described: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the files that name labels, given the template of one."""
    for name, text in label_files(dataset).items():
        if data := text.encode():
            named = dict.fromkeys(("@id", "name", "contentUrl"), name)
            measured = {"contentSize": f"{len(data)} B", "sha256": hashlib.sha256(data).hexdigest()}
            yield {**described, **named, **measured}


def _record_sets(
    dataset: Dataset, splits: Any, shards: Any, labels: Any, examples: Any
) -> Iterator[Mapping[str, Any]]:
    """Yield the record sets of a dataset, given those of the template."""
    # Croissant has no URL for other splits, and no null in a column of URLs.
    if not dataset.splits.keys() <= _SPLIT_URLS.keys():
        splits["field"] = [field for field in splits["field"] if field["name"] != "url"]
    found = [
        {"name": name, "url": _SPLIT_URLS.get(name), "examples": it.examples, "bytes": it.bytes}
        for name, it in dataset.splits.items()
    ]
    yield from _embedded(splits, found)
    found = [
        {"split": split, **{name: getattr(shard, name) for name in _SHARD}}
        for split, each in dataset.splits.items()
        for shard in each.shards
    ]
    yield from _embedded(shards, found)
    found = [{"number": number, "name": label} for number, label in enumerate(dataset.labels)]
    yield from _embedded(labels, found)
    specs = stored_features(dataset)
    examples["field"] += [_feature(dataset, name, spec) for name, spec in specs.items()]
    if specs:  # of a task that is not installed here, none is known
        yield examples


def _embedded(
    described: dict[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield a record set with its records; nothing if there are no records, or too many."""
    columns = {field["name"]: field["@id"] for field in described["field"]}
    if 0 < len(rows) <= _MOST_EMBEDDED:
        data = [{key: row[name] for name, key in columns.items()} for row in rows]
        yield {**described, "data": data}


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
