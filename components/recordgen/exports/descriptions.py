"""Descriptions of a dataset for people and other tools, each one file beside the shards.

Templates say most of them: ``exports/templates``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

from recordgen import features
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.annotation import is_image, label_files, stored_features
from recordgen.exports.export import FileExport, Output, environment
from recordgen.features import LIST_DTYPES, FeatureSpec, statistics_features
from recordgen.lineage import dataset_name
from recordgen.tables.columns import label_features, table_of


class Croissant(FileExport):
    """``croissant.json``: a description of a dataset in Croissant 1.1, for catalogues and loaders.

    ``mlcroissant.Dataset("OUT/croissant.json").records("labels")`` → the labels, record by record.

    The template ``croissant.json`` says all of it. The record sets ``splits``, ``shards`` and
    ``labels`` contain their records. ``examples`` describes the features of the TFRecords, which
    Croissant's own loader cannot read. ``rows`` has one record per example, from
    ``examples.parquet``, which the loader can read: the place of the record, its annotation, and
    measures of its image. Its import file is missing, because it may be a path of this machine, and
    so are integer columns with gaps, which mlcroissant cannot read.

    Rules: "Croissant Format Specification" 1.1, docs.mlcommons.org/croissant. Unknown properties,
    such as the licence, are missing: a loader warns of them.
    """

    file = "croissant.json"

    def text(self, output: Output) -> str:
        dataset, texts = output.dataset, environment()
        texts.tests["image"] = is_image
        texts.filters["sha256"] = lambda data: hashlib.sha256(data).hexdigest()
        described = texts.get_template(self.file).render(
            dataset=dataset,
            name=dataset_name(dataset),
            files={name: text.encode() for name, text in label_files(dataset).items()},
            features=stored_features(dataset),
            has_examples=output.has_examples(),
            is_measured=all(split.images is not None for split in dataset.splits.values()),
        )
        return json.dumps(json.loads(described), indent=2, ensure_ascii=False) + "\n"


# --- schema.pbtxt --------------------------------------------------------------------------------


_TYPES = {"bytes": "BYTES", "int64": "INT", "float32": "FLOAT"}

# TFDV compares each value with the whole domain; larger vocabularies get no domain.
_MOST_VALUES = 10_000

_LABELS, _TAGS, _FORMATS = "labels", "tags", "formats"

_IMAGE_FORMATS = ("bmp", "gif", "jpeg", "png")

_SIDES = (features.IMAGE_HEIGHT, features.IMAGE_WIDTH)

# Smallest and largest possible values of features.
_BOUNDS: Mapping[str, Mapping[str, float]] = {
    **{name: {"min": 1} for name in _SIDES},
    **{name: {"min": 0} for name in (features.ENTITY_START, features.ENTITY_END)},
    **{name: {"min": 0.0, "max": 1.0} for name in features.BBOX},
    **{name: {"min": 0.0} for name in (features.VIDEO_SEGMENT_START, features.VIDEO_SEGMENT_END)},
}

#: The numbers of a message of protobuf, by name.
_Numbers = Mapping[str, float]


class Tfdv(FileExport):
    """``schema.pbtxt``: a TensorFlow Data Validation schema for this dataset and the next spans.

        feature {
          name: "image/class/text"
          type: BYTES
          value_count { min: 1 max: 1 }
          presence { min_fraction: 1 min_count: 1 }
          domain: "labels"
        }
        string_domain { name: "labels" value: "cat" value: "dog" }

    A schema that TFDV infers from statistics describes whatever the data happens to contain. This
    one follows from the task: labels are in ``labels.txt``, corners are inside the image, times and
    sizes are not negative, and a feature that every record has must be present. Payloads and unique
    names have a type and no rule: statistics skip them, and Transform reads them by this schema.

    Format: tensorflow_metadata/proto/v0/schema.proto, as text.
    """

    file = "schema.pbtxt"

    def text(self, output: Output) -> str:
        dataset = output.dataset
        specs, domains = stored_features(dataset), _domains(dataset)
        text, number = label_features(dataset)
        domain_of = {features.TAGS_TEXT: _TAGS, features.IMAGE_FORMAT: _FORMATS, text: _LABELS}
        used = {name: domain_of[name] for name in specs if domain_of.get(name) in domains}
        bounds = {**_BOUNDS}
        if dataset.labels:
            bounds[str(number)] = {"min": 0, "max": len(dataset.labels) - 1}
        presences = _presences(dataset, specs)
        allowed = statistics_features(dataset.task, specs)
        rows = []
        for name, spec in specs.items():
            is_checked = allowed is None or name in allowed
            # An array of another dtype is one value of raw bytes.
            count = math.prod(spec.shape or ()) if spec.dtype in LIST_DTYPES else 1
            rules = {
                "value_count": None if spec.shape is None else {"min": count, "max": count},
                "presence": presences.get(name),
                "domain": used.get(name),
                "int_domain" if spec.dtype == "int64" else "float_domain": bounds.get(name),
            }
            kind = _TYPES.get(spec.dtype, "BYTES")
            rows.append({"name": name, "type": kind, "rules": rules if is_checked else {}})
        texts = environment()
        texts.filters["quoted"] = _quoted
        named = [{"name": domain, "values": domains[domain]} for domain in sorted({*used.values()})]
        return texts.get_template("schema.txt").render(features=rows, domains=named)


def _presences(dataset: Dataset, specs: Mapping[str, FeatureSpec]) -> Mapping[str, _Numbers]:
    """Return the required presence of features, without lists, which may always be empty."""
    table = table_of(dataset)
    # The gaps of a table's columns; more may be missing in later examples.
    declared = {**specs, **({} if table is None else table.features())}
    # The default of sizes is for other tools' records; ours always have them.
    always = {name for name in specs if declared[name].default is None} | {*_SIDES}
    labels = {str(name) for name in label_features(dataset)}
    is_labelled = not any(split.unlabelled for split in dataset.splits.values())
    always = always | labels if is_labelled else always - labels
    # A column of a table may have gaps, but must not be missing entirely.
    return {
        name: {"min_fraction": 1, "min_count": 1} if name in always else {"min_count": 1}
        for name, spec in specs.items()
        if spec.shape is not None
    }


def _domains(dataset: Dataset) -> Mapping[str, Sequence[str]]:
    """Return the values of each domain by name, if they are known and not too many."""
    stats = [split.images for split in dataset.splits.values()]
    formats = {kind for images in stats if images is not None for kind in images.formats}
    is_known = stats and None not in stats
    found = {
        _LABELS: dataset.labels,
        _TAGS: label_files(dataset).get("tags.txt", "").splitlines(),
        _FORMATS: sorted(formats) if is_known else _IMAGE_FORMATS,
    }
    return {name: values for name, values in found.items() if 0 < len(values) <= _MOST_VALUES}


def _quoted(text: str) -> str:
    """Return text as a string of protobuf's text format: UTF-8, control characters in octal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " else f"\\{ord(char):03o}" for char in escaped) + '"'
